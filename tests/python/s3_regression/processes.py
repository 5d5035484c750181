"""Ends of processes, forks, and what is left unfinished."""
import contextlib
import os
import time

from s3_common import MIB, check, fails, wait_for
from s3_regression.case import case, gfile, read, tensorflow, write


@case("a process that has used s3:// aborts at its end: 'pure virtual method called', status 134 (io#1912, io#2039)",
      own_process=True)
def the_end_of_a_process(place):
    write(place("file"), os.urandom(20 * MIB))
    reader = gfile().GFile(place("file"), "rb")
    reader.read(10)
    list(tensorflow().data.TextLineDataset(place("file")).take(1))
    # The parent process checks the exit status.


@case("use in a forked child after use in the parent hangs", own_process=True)
def a_forked_child(place):
    write(place("file"), b"content")
    child = os.fork()
    if child == 0:
        signal_by = 1
        with contextlib.suppress(BaseException):
            if read(place("file")) == b"content" and gfile().exists(place("file")):
                write(place("child"), b"from the child")
                signal_by = 0
        os._exit(signal_by)
    check(wait_for(child, 20), 0, "the child's exit status")
    check((read(place("child")), read(place("file"))), (b"from the child", b"content"), "the contents afterwards")


@case("what was not closed is lost, and nothing says so (tfx#3265)", own_process=True,
      stderr=["W ", "never-closed", "12345 bytes"])
def a_file_that_is_never_closed(place):
    writer = gfile().GFile(place("never-closed"), "wb")
    writer.write(b"x" * 12345)
    del writer
    check(place.stored(), [], "the keys")
    check(place.control.uploads(place.bucket), [], "unfinished uploads")


@case("an upload that fails or is dropped leaves its parts behind, which cost money")
def unfinished_uploads(place):
    writer = gfile().GFile(place("dropped"), "wb")
    for _ in range(20):
        writer.write(b"x" * MIB)
    del writer
    place.control.fault(what="status", status=403, code="AccessDenied", operation="UploadPart", **{"from": 2})
    try:
        fails(tensorflow().errors.PermissionDeniedError, ["AccessDenied"], write, place("denied"), b"x" * (40 * MIB))
    finally:
        place.control.clear()
    end = time.monotonic() + 10
    while place.control.uploads(place.bucket) and time.monotonic() < end:
        time.sleep(0.05)
    check(place.control.uploads(place.bucket), [], "unfinished uploads")
    check(place.stored(), [], "the keys")
