"""Contents of objects, and what they cost on the way; servers that misbehave."""
import os
import tempfile
import time

from s3_common import MIB, check, resident
from s3_regression.case import case, gfile, read, tensorflow, write


@case("copy of 100 MiB + 1 loses the last byte, rename then deletes the source (float32 arithmetic)")
def copy_of_100_mib_and_one_byte(place):
    block = os.urandom(MIB)
    with gfile().GFile(place("source"), "wb") as file:
        for _ in range(100):
            file.write(block)
        file.write(b"!")
    for operation, target in ((gfile().copy, "copy"), (gfile().rename, "moved")):
        operation(place("source"), place(target))
        check(gfile().stat(place(target)).length, 100 * MIB + 1, "the length of the " + target)
        with gfile().GFile(place(target), "rb") as file:
            file.seek(100 * MIB - 3)
            check(file.read(), block[-3:] + b"!", "the end of the " + target)
    check(place.stored(), ["copy", "moved"], "the keys")


@case("an object that is replaced between two reads of an open file gives old and new bytes mixed")
def a_torn_read(place):
    size = 48 * MIB
    write(place("file"), b"a" * size)
    errors = tensorflow().errors
    for at in (0, MIB, 5 * MIB):
        write(place("file"), b"a" * size)
        with gfile().GFile(place("file"), "rb") as file:
            begin = file.read(at) if at else b""
            file.seek(at)
            write(place("file"), b"b" * size)
            try:
                rest = file.read()
            except (errors.FailedPreconditionError, errors.AbortedError) as error:
                check("changed" in error.message, True, "%r says that it changed" % error.message)
                continue
            whole = begin + rest
            check(len(whole), size, "the length")
            check(len(set(whole[::4096])), 1, "the number of versions in one read")


@case("writes go through a file in /tmp of the whole size (io#1519, tf#51935)")
def temporary_files(place):
    before = set(os.listdir(tempfile.gettempdir()))
    with gfile().GFile(place("file"), "wb") as file:
        for _ in range(32):
            file.write(b"x" * MIB)
            open_files = [os.readlink("/proc/self/fd/%s" % fd) for fd in os.listdir("/proc/self/fd")
                          if os.path.islink("/proc/self/fd/%s" % fd)]
            large = [path for path in open_files if path.startswith(tempfile.gettempdir()) and "s3" in path]
            check(large, [], "open temporary files")
    new = [name for name in set(os.listdir(tempfile.gettempdir())) - before if "s3_filesystem" in name]
    check(new, [], "new temporary files")


@case("reading takes 1.3 GB of memory (io#1856)", own_process=True)
def memory_of_a_read(place):
    block = os.urandom(MIB)
    paths = [place(str(number)) for number in range(4)]
    for path in paths:
        with gfile().GFile(path, "wb") as file:
            for _ in range(128):
                file.write(block)
    before = resident()
    most = before
    files = [gfile().GFile(path, "rb") for path in paths]
    for _ in range(128):
        for file in files:
            check(file.read(MIB) == block, True, "a block")
        most = max(most, resident())
    grown = (most - before) // MIB
    check(grown <= 256 + 64, True, "the process has grown by %d MiB, at most the budget of 256 and 64" % grown)


@case("a server that ignores the range overflows the caller's buffer (s3_filesystem.cc:289)")
def a_whole_answer_to_a_range(place):
    data = os.urandom(3 * MIB)
    write(place("file"), data)
    time.sleep(1.1)
    place.control.fault(what="whole-for-206", operation="GetObject")
    try:
        with gfile().GFile(place("file"), "rb") as file:
            file.seek(MIB)
            try:
                check(file.read(1000) == data[MIB:MIB + 1000], True, "the bytes in the middle")
            except tensorflow().errors.OpError as error:
                check(bool(error.message), True, "a message")
    finally:
        place.control.clear()
    check(read(place("file")) == data, True, "the content, once the server behaves")


@case("503 SlowDown: slow for ever, or given up (io#1953)")
def slow_down(place):
    data = os.urandom(20 * MIB)
    place.control.fault(what="status", status=503, code="SlowDown", every=3)
    try:
        write(place("file"), data)
        check(read(place("file")) == data, True, "the content")
        gfile().rename(place("file"), place("moved"))
        check(gfile().listdir(place()), ["moved"], "the listing")
    finally:
        place.control.clear()
