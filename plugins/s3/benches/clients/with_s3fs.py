"""The operations by s3fs, each on what is in the bucket and not in a listing that it kept."""
import os
import random

import s3fs

VERSION = "s3fs " + s3fs.__version__
KIB, MIB = 1 << 10, 1 << 20
BUCKET = "bench"


class Client:
    def __init__(self, arguments):
        self.fs = s3fs.S3FileSystem()
        self.chunk = os.urandom(MIB)

    def forget(self):
        self.fs.invalidate_cache()

    def _small(self, first, count):
        return ["%s/small/f-%05d" % (BUCKET, index) for index in range(first, first + count)]

    def read_chunks(self, part):
        total = 0
        with self.fs.open("%s/big/%s" % (BUCKET, part), "rb") as file:
            while chunk := file.read(MIB):
                total += len(chunk)
        return total

    def read_whole(self, part):
        path = "%s/big/%s" % (BUCKET, part)
        length = self.fs.size(path)
        starts = list(range(0, length, 8 * MIB))
        ends = [min(start + 8 * MIB, length) for start in starts]
        return len(b"".join(self.fs.cat_ranges([path] * len(starts), starts, ends)))

    read_file = read_whole

    def records(self):
        for index in range(16):
            self.fs.cat_file("%s/tfrecord/part-%02d" % (BUCKET, index))
        return 16 * 1023

    def records_parallel(self):
        self.fs.cat(["%s/tfrecord/part-%02d" % (BUCKET, index) for index in range(16)])
        return 16 * 1023

    def read_random(self, count):
        places = random.Random(7)
        total = 0
        for _ in range(count):
            place = places.randrange(256 * MIB - 64 * KIB)
            total += len(self.fs.cat_file(BUCKET + "/big/whole", start=place, end=place + 64 * KIB))
        return total

    def write_large(self, out):
        with self.fs.open("%s/%s/large" % (BUCKET, out), "wb") as file:
            for _ in range(256):
                file.write(self.chunk)

    def write_small(self, out, first, count):
        for index in range(first, first + count):
            self.fs.pipe_file("%s/%s/small-%05d" % (BUCKET, out, index), b"y" * KIB)

    def listdir(self, part):
        return len(self.fs.ls("%s/listed-%s" % (BUCKET, part), detail=False))

    def glob(self, part):
        return len(self.fs.glob("%s/listed-%s/*" % (BUCKET, part)))

    def glob_tree(self, part):
        return len(self.fs.glob("%s/tree-%s/*/*/*" % (BUCKET, part)))

    def walk(self, part):
        return sum(len(files) for _, _, files in self.fs.walk("%s/tree-%s" % (BUCKET, part)))

    def stat(self, first, count):
        return sum(self.fs.info(path)["size"] for path in self._small(first, count))

    def exists(self, first, count):
        return sum(self.fs.exists(path) for path in self._small(first, count))

    def exists_missing(self, first, count):
        return sum(self.fs.exists(path + ".missing") for path in self._small(first, count))

    def isdir(self, first, count):
        return sum(self.fs.isdir("%s/dirs/d-%05d" % (BUCKET, index)) for index in range(first, first + count))

    def read_small(self, first, count):
        return sum(len(self.fs.cat_file(path)) for path in self._small(first, count))

    def copy(self, out):
        self.fs.cp_file(BUCKET + "/copy/source", "%s/%s/copied" % (BUCKET, out))

    def rename(self, out):
        self.fs.mv("%s/%s/before" % (BUCKET, out), "%s/%s/after" % (BUCKET, out))

    def rmtree(self, out, part):
        self.fs.rm("%s/%s/many-%s" % (BUCKET, out, part), recursive=True)
