"""The operations by s3fs, each on what is in the bucket and not in a listing that it kept."""
import os

import s3fs
from objects import BUCKET, MIB, RECORDS, Objects, small

VERSION = "s3fs " + s3fs.__version__


class Client(Objects):
    def __init__(self, arguments):
        self.fs = s3fs.S3FileSystem()
        self.chunk = os.urandom(MIB)

    def forget(self):
        self.fs.invalidate_cache()

    def _length(self, key, start=None, end=None):
        return len(self.fs.cat_file("%s/%s" % (BUCKET, key), start=start, end=end))

    def _put(self, key, data):
        self.fs.pipe_file("%s/%s" % (BUCKET, key), data)

    def _small(self, first, count):
        return ["%s/%s" % (BUCKET, key) for key in small(first, count)]

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

    def records_parallel(self):
        self.fs.cat(["%s/%s" % (BUCKET, key) for key in RECORDS])
        return 16 * 1023

    def write_large(self, out):
        with self.fs.open("%s/%s/large" % (BUCKET, out), "wb") as file:
            for _ in range(256):
                file.write(self.chunk)

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

    def copy(self, out):
        self.fs.cp_file(BUCKET + "/copy/source", "%s/%s/copied" % (BUCKET, out))

    def rename(self, out):
        self.fs.mv("%s/%s/before" % (BUCKET, out), "%s/%s/after" % (BUCKET, out))

    def rmtree(self, out, part):
        self.fs.rm("%s/%s/many-%s" % (BUCKET, out, part), recursive=True)
