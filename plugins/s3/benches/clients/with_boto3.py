"""The operations as boto3 does them best."""
import io
import os

import boto3
import botocore.config
import botocore.exceptions
from boto3.s3.transfer import TransferConfig
from objects import BUCKET, MIB, Objects, small

VERSION = "boto3 " + boto3.__version__
PARTS = TransferConfig(multipart_chunksize=8 * MIB, max_concurrency=10)


class Client(Objects):
    def __init__(self, arguments):
        self.s3 = boto3.client("s3", config=botocore.config.Config(max_pool_connections=32))
        self.data = os.urandom(256 * MIB)

    def _length(self, key, *span):
        options = {"Range": "bytes=%d-%d" % (span[0], span[1] - 1)} if span else {}
        return len(self.s3.get_object(Bucket=BUCKET, Key=key, **options)["Body"].read())

    def _put(self, key, data):
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=data)

    def _download(self, key):
        data = io.BytesIO()
        self.s3.download_fileobj(BUCKET, key, data, Config=PARTS)
        return len(data.getbuffer())

    _records = _download

    def _keys(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def read_chunks(self, part):
        body = self.s3.get_object(Bucket=BUCKET, Key="big/" + part)["Body"]
        return sum(len(chunk) for chunk in body.iter_chunks(MIB))

    def read_whole(self, part):
        return self._download("big/" + part)

    read_file = read_whole

    def write_large(self, out):
        self.s3.upload_fileobj(io.BytesIO(self.data), BUCKET, out + "/large", Config=PARTS)

    def listdir(self, part):
        return len(self._keys("listed-%s/" % part))

    def stat(self, first, count):
        return sum(self.s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] for key in small(first, count))

    def _exists(self, key):
        try:
            self.s3.head_object(Bucket=BUCKET, Key=key)
            return True
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "404":
                raise
            return False

    def exists(self, first, count):
        return sum(self._exists(key) for key in small(first, count))

    def exists_missing(self, first, count):
        return sum(self._exists(key + ".missing") for key in small(first, count))

    def isdir(self, first, count):
        def one(index):
            prefix = "dirs/d-%05d/" % index
            return self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix, MaxKeys=1)["KeyCount"]

        return sum(one(index) for index in range(first, first + count))

    def copy(self, out):
        source = {"Bucket": BUCKET, "Key": "copy/source"}
        self.s3.copy_object(Bucket=BUCKET, Key=out + "/copied", CopySource=source)

    def rename(self, out):
        source = {"Bucket": BUCKET, "Key": out + "/before"}
        self.s3.copy_object(Bucket=BUCKET, Key=out + "/after", CopySource=source)
        self.s3.delete_object(**source)

    def rmtree(self, out, part):
        keys = [{"Key": key} for key in self._keys("%s/many-%s/" % (out, part))]
        self.s3.delete_objects(Bucket=BUCKET, Delete={"Objects": keys, "Quiet": True})
