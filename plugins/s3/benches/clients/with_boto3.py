"""The operations as boto3 does them best."""
import concurrent.futures
import io
import os
import random

import boto3
import botocore.config
import botocore.exceptions
from boto3.s3.transfer import TransferConfig

VERSION = "boto3 " + boto3.__version__
KIB, MIB = 1 << 10, 1 << 20
BUCKET = "bench"
PARTS = TransferConfig(multipart_chunksize=8 * MIB, max_concurrency=10)


class Client:
    def __init__(self, arguments):
        self.s3 = boto3.client("s3", config=botocore.config.Config(max_pool_connections=32))
        self.data = os.urandom(256 * MIB)

    def _get(self, key):
        return self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def _download(self, key):
        data = io.BytesIO()
        self.s3.download_fileobj(BUCKET, key, data, Config=PARTS)
        return len(data.getbuffer())

    def _small(self, first, count):
        return ["small/f-%05d" % index for index in range(first, first + count)]

    def _keys(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def read_chunks(self, part):
        body = self.s3.get_object(Bucket=BUCKET, Key="big/" + part)["Body"]
        return sum(len(chunk) for chunk in body.iter_chunks(MIB))

    def read_whole(self, part):
        return self._download("big/" + part)

    read_file = read_whole

    def records(self):
        for index in range(16):
            self._download("tfrecord/part-%02d" % index)
        return 16 * 1023

    def records_parallel(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._get, ["tfrecord/part-%02d" % index for index in range(16)]))
        return 16 * 1023

    def read_random(self, count):
        places = random.Random(7)
        total = 0
        for _ in range(count):
            place = places.randrange(256 * MIB - 64 * KIB)
            span = "bytes=%d-%d" % (place, place + 64 * KIB - 1)
            total += len(self.s3.get_object(Bucket=BUCKET, Key="big/whole", Range=span)["Body"].read())
        return total

    def write_large(self, out):
        self.s3.upload_fileobj(io.BytesIO(self.data), BUCKET, out + "/large", Config=PARTS)

    def write_small(self, out, first, count):
        for index in range(first, first + count):
            self.s3.put_object(Bucket=BUCKET, Key="%s/small-%05d" % (out, index), Body=b"y" * KIB)

    def listdir(self, part):
        return len(self._keys("listed-%s/" % part))

    def stat(self, first, count):
        return sum(self.s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] for key in self._small(first, count))

    def _exists(self, key):
        try:
            self.s3.head_object(Bucket=BUCKET, Key=key)
            return True
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "404":
                raise
            return False

    def exists(self, first, count):
        return sum(self._exists(key) for key in self._small(first, count))

    def exists_missing(self, first, count):
        return sum(self._exists(key + ".missing") for key in self._small(first, count))

    def isdir(self, first, count):
        def one(index):
            prefix = "dirs/d-%05d/" % index
            return self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix, MaxKeys=1)["KeyCount"]

        return sum(one(index) for index in range(first, first + count))

    def read_small(self, first, count):
        return sum(len(self._get(key)) for key in self._small(first, count))

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
