"""How many requests are sent, and how many bytes."""
import os
import time

from s3_common import MIB, check
from s3_regression.case import case, gfile, read, write


@case("a listing asks for 100 keys at a time, a glob asks for each child twice (tf#57939: 20,050 requests for 5,000)")
def requests_of_listings(place):
    for number in range(1200):
        write(place("many", "%04d" % number), b"")
    time.sleep(1.1)
    place.control.reset()
    check(len(gfile().glob(place("many", "*"))), 1200, "the number of matches")
    counters = place.control.reset()
    check(counters["operations"], {"ListObjectsV2": 2}, "the requests of the glob")
    time.sleep(1.1)
    check(len(gfile().listdir(place("many"))), 1200, "the number of names")
    # TensorFlow asks first whether it is a directory.
    requests = place.control.reset()["requests"]
    check(requests <= 3, True, "the listing took %d requests, at most 3" % requests)
    gfile().rmtree(place("many"))
    counters = place.control.reset()["operations"]
    check(counters.get("DeleteObjects"), 2, "deletions in %r" % counters)
    check(sum(counters.values()) <= 4, True, "at most 4 requests in %r" % counters)


@case("stat and exists of a file are a HEAD and a LIST, always")
def requests_of_queries(place):
    write(place("file"), b"content")
    for query in (gfile().stat, gfile().exists):
        time.sleep(1.1)
        place.control.reset()
        query(place("file"))
        counters = place.control.reset()
        check(counters["requests"], 1, "requests of %s: %r" % (query.__name__, counters["operations"]))


@case("each read is a HEAD and a GET of 512 KiB (tf#14572, aws-sdk-cpp#1302)")
def requests_of_a_read(place):
    data = os.urandom(64 * MIB)
    write(place("file"), data)
    time.sleep(1.1)
    place.control.reset()
    check(read(place("file")) == data, True, "the content")
    operations = place.control.reset()["operations"]
    check(sum(operations.values()) <= 14, True, "at most 14 requests in %r" % operations)
    check(operations.get("HeadObject", 0), 0, "HEAD requests")


@case("each flush sends the whole file again: 50 flushes of 200 kB are 255 MB (tb#5655, tb#6564)")
def bytes_of_flushes(place):
    place.control.reset()
    with gfile().GFile(place("events"), "wb") as file:
        for number in range(50):
            file.write(bytes([number]) * 200000)
            file.flush()
    sent = place.control.reset()["bytes_in"]
    check(sent <= 81 * 1000 * 1000, True, "%d bytes were sent, at most 81,000,000" % sent)
    check(read(place("events")) == b"".join(bytes([number]) * 200000 for number in range(50)), True, "the content")
