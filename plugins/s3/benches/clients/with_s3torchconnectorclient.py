"""The operations by the client beneath s3torchconnector, the AWS Common Runtime, without PyTorch around it."""
import concurrent.futures
import os
import random

import s3torchconnectorclient
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

VERSION = "s3torchconnectorclient " + s3torchconnectorclient.__version__
KIB, MIB = 1 << 10, 1 << 20
BUCKET = "bench"


class Client:
    def __init__(self, arguments):
        self.s3 = MountpointS3Client(
            os.environ["AWS_REGION"], endpoint=os.environ["AWS_ENDPOINT_URL"], force_path_style=True
        )
        self.chunk = os.urandom(MIB)

    def _length(self, key, *span):
        return sum(len(part) for part in self.s3.get_object(BUCKET, key, *span))

    def _small(self, first, count):
        return ["small/f-%05d" % index for index in range(first, first + count)]

    def _put(self, key, chunks):
        stream = self.s3.put_object(BUCKET, key)
        for chunk in chunks:
            stream.write(chunk)
        stream.close()

    def read_chunks(self, part):
        return self._length("big/" + part)

    def read_whole(self, part):
        return len(b"".join(self.s3.get_object(BUCKET, "big/" + part)))

    read_file = read_whole

    def records(self):
        for index in range(16):
            self._length("tfrecord/part-%02d" % index)
        return 16 * 1023

    def records_parallel(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._length, ["tfrecord/part-%02d" % index for index in range(16)]))
        return 16 * 1023

    def read_random(self, count):
        places = random.Random(7)
        total = 0
        for _ in range(count):
            place = places.randrange(256 * MIB - 64 * KIB)
            total += self._length("big/whole", place, place + 64 * KIB)
        return total

    def write_large(self, out):
        self._put(out + "/large", (self.chunk for _ in range(256)))

    def write_small(self, out, first, count):
        for index in range(first, first + count):
            self._put("%s/small-%05d" % (out, index), [b"y" * KIB])

    def listdir(self, part):
        pages = self.s3.list_objects(BUCKET, prefix="listed-%s/" % part, delimiter="/")
        return sum(len(page.object_info) for page in pages)

    def stat(self, first, count):
        return sum(self.s3.head_object(BUCKET, key).size for key in self._small(first, count))

    def exists(self, first, count):
        return sum(self.s3.head_object(BUCKET, key).size > 0 for key in self._small(first, count))

    def read_small(self, first, count):
        return sum(self._length(key) for key in self._small(first, count))

    def copy(self, out):
        self.s3.copy_object(BUCKET, "copy/source", BUCKET, out + "/copied")

    def rename(self, out):
        self.s3.copy_object(BUCKET, out + "/before", BUCKET, out + "/after")
        self.s3.delete_object(BUCKET, out + "/before")
