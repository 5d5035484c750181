"""The operations that are the same in each client of objects, but for how it requests one."""
import concurrent.futures
import random

KIB, MIB = 1 << 10, 1 << 20
BUCKET = "bench"
RECORDS = ["tfrecord/part-%02d" % index for index in range(16)]


def small(first, count):
    return ["small/f-%05d" % index for index in range(first, first + count)]


class Objects:
    """A client reads an object with `_length(key)`, and a range of it with `_length(key, start, end)`."""

    def _records(self, key):
        return self._length(key)

    def records(self):
        for key in RECORDS:
            self._records(key)
        return 16 * 1023

    def records_parallel(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._length, RECORDS))
        return 16 * 1023

    def read_random(self, count):
        places = random.Random(7)
        starts = (places.randrange(256 * MIB - 64 * KIB) for _ in range(count))
        return sum(self._length("big/whole", start, start + 64 * KIB) for start in starts)

    def read_small(self, first, count):
        return sum(self._length(key) for key in small(first, count))

    def write_small(self, out, first, count):
        for index in range(first, first + count):
            self._put("%s/small-%05d" % (out, index), b"y" * KIB)
