"""What users of tensorflow-io's s3:// have suffered from, one case a defect: none of it may come back.

    python s3_regressions.py --root s3://bucket/regressions --control http://127.0.0.1:PORT [--only NAME]

The plugin is loaded at import, with settings from the environment as a user gives them; `--control` is the test
server's control interface, which shows what really was sent and stored. Cases that need another environment run first,
in forks of a process in which the plugin is loaded and not used; such a fork ends without any clean-up. Cases that look
at the end of a process run in a process of their own. One line a case on standard output:

    ok NAME 0.12s
    FAILED NAME 0.12s: the exception       (the traceback follows)

and at the end `N passed, M failed`; the exit status is 1 if a case failed.
"""
import argparse
import contextlib
import faulthandler
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from s3_common import MIB, Control, check, fails, resident, split, wait_for  # noqa: E402

CASES = {}

# A process with TensorFlow needs seconds on a busy machine; what is looked for are minutes and hangs.
LIMIT = 120


class Case:
    def __init__(self, function, defect, environment, own_process, words):
        self.name = function.__name__
        self.function = function
        self.defect = defect
        self.environment = environment
        self.own_process = own_process
        self.words = words


def case(defect, environment=None, own_process=False, stderr=()):
    """A case. `environment` maps names to values, or to functions of the endpoint; None leaves a name unset.

    `stderr` lists what the process must have written there by its end.
    """

    def add(function):
        CASES[function.__name__] = Case(function, defect, environment, own_process or bool(stderr), stderr)
        return function

    return add


class Place:
    """A directory of the case's own, and the server's view of it."""

    def __init__(self, base, control):
        self.base = base
        self.control = control
        self.bucket, self.key = split(base)

    def __call__(self, *parts):
        return "/".join((self.base,) + parts)

    def stored(self):
        """The keys in the directory, from outside."""
        prefix = self.key + "/"
        return [key[len(prefix):] for key in self.control.keys(self.bucket) if key.startswith(prefix)]


def tensorflow():
    import tensorflow

    return tensorflow


def gfile():
    return tensorflow().io.gfile


def write(path, data, mode="wb"):
    with gfile().GFile(path, mode) as file:
        file.write(data)
    return path


def read(path):
    with gfile().GFile(path, "rb") as file:
        return file.read()


# Names --------------------------------------------------------------------------------------------------------


@case("rename of `ckpt-1` moves `ckpt-10` and `ckpt-1.meta` too: it lists by bare prefix")
def rename_takes_its_neighbours_along(place):
    for name in ("ckpt-1", "ckpt-10", "ckpt-1.meta", "ckpt-1/inside"):
        write(place(name), name.encode())
    gfile().rename(place("ckpt-1"), place("moved"))
    check(place.stored(), ["ckpt-1.meta", "ckpt-1/inside", "ckpt-10", "moved"], "the keys")
    check(read(place("moved")), b"ckpt-1", "the content")


@case("rename of `big` to `bigger` destroys `bigger` where it begins with the source's name")
def rename_to_a_name_with_the_same_beginning(place):
    write(place("big2"), b"source")
    write(place("big2c"), b"old")
    write(place("big2cd"), b"neighbour")
    gfile().rename(place("big2"), place("big2c"), overwrite=True)
    check(place.stored(), ["big2c", "big2cd"], "the keys")
    check((read(place("big2c")), read(place("big2cd"))), (b"source", b"neighbour"), "the contents")


@case("rename of a missing file succeeds")
def rename_of_nothing(place):
    write(place("nothing-10"), b"neighbour")
    fails(tensorflow().errors.NotFoundError, [place("nothing-1")], gfile().rename, place("nothing-1"), place("x"))
    check(place.stored(), ["nothing-10"], "the keys")


@case("remove of a missing file succeeds")
def remove_of_nothing(place):
    fails(tensorflow().errors.NotFoundError, [place("nothing")], gfile().remove, place("nothing"))


@case("copy and rename of an empty file: FAILED_PRECONDITION 'Source is a directory or empty file' (io#1816)")
def copy_and_rename_of_an_empty_file(place):
    write(place("empty"), b"")
    gfile().copy(place("empty"), place("copy"))
    gfile().rename(place("copy"), place("moved"))
    check(place.stored(), ["empty", "moved"], "the keys")
    check((read(place("moved")), gfile().stat(place("moved")).length), (b"", 0), "the content and length")


@case("rename of a directory with a marker stops half-way (tf#61364, tf#60165)")
def rename_of_a_directory(place):
    gfile().makedirs(place("dir"))
    gfile().makedirs(place("dir", "empty"))
    for name in ("dir/a", "dir/sub/b", "dir-other/c"):
        write(place(name), name.encode())
    gfile().rename(place("dir"), place("new"))
    check(place.stored(), ["dir-other/c", "new/", "new/a", "new/empty/", "new/sub/b"], "the keys")
    check((gfile().exists(place("dir")), gfile().isdir(place("new", "empty"))), (False, True), "what is where")


@case("mkdir writes its marker only if the directory exists already: isdir after mkdir is False (datasets#4728)")
def mkdir_makes_no_directory(place):
    gfile().mkdir(place("one"))
    gfile().makedirs(place("two", "three"))
    for name in ("one", "two", "two/three"):
        check(gfile().isdir(place(name)), True, "isdir(%s)" % name)
    check(gfile().listdir(place("one")), [], "the listing of a new directory")
    check("one/" in place.stored(), True, "the marker is there for other programs")


@case("a file that is opened for writing and closed without a write is not made")
def an_empty_file_is_made(place):
    # TensorFlow itself opens a GFile at the first write only.
    with gfile().GFile(place("w"), "wb") as file:
        file.write(b"")
    with gfile().GFile(place("a"), "ab") as file:
        file.write(b"")
    tensorflow().io.write_file(place("op"), b"")
    with tensorflow().io.TFRecordWriter(place("records")):
        pass
    check(place.stored(), ["a", "op", "records", "w"], "the keys")


@case("an object `fp` beside `fp/x` is a directory of length 0, and reading it gives nothing")
def an_object_beside_a_directory(place):
    write(place("fp"), b"content")
    write(place("fp", "x"), b"inside")
    stat = gfile().stat(place("fp"))
    check((stat.is_directory, stat.length), (False, 7), "stat")
    check((read(place("fp")), read(place("fp", "x"))), (b"content", b"inside"), "the contents")
    gfile().remove(place("fp"))
    check((place.stored(), gfile().isdir(place("fp"))), (["fp/x"], True), "what is left")


@case("a key with `//` is read from and written to another key")
def a_key_with_two_slashes(place):
    write(place("a//b"), b"two")
    write(place("a/b"), b"one")
    check(place.stored(), ["a//b", "a/b"], "the keys")
    check((read(place("a//b")), read(place("a/b"))), (b"two", b"one"), "the contents")
    gfile().remove(place("a//b"))
    check(place.stored(), ["a/b"], "the keys after the removal")


@case("keys with `=` and other signs that are common in Hive-style names fail (tf#28921)")
def keys_with_signs(place):
    names = ["year=2026/part 1", "a+b", "50%", "%41", "q?x#y", "tilde~", "ä/ö"]
    for name in names:
        write(place(name), name.encode())
    check(sorted(place.stored()), sorted(names), "the keys")
    for name in names:
        check(read(place(name)), name.encode(), "the content of " + name)


@case("listdir of `s3://bucket` without a slash at the end: NotFound (tf#36893)")
def listdir_of_a_bucket(place):
    write(place("x"), b"")
    top = place.key.split("/")[0]
    for uri in ("s3://" + place.bucket, "s3://" + place.bucket + "/"):
        check(top in [name.rstrip("/") for name in gfile().listdir(uri)], True, "%s in listdir(%s)" % (top, uri))
        check(gfile().isdir(uri), True, "isdir(%s)" % uri)


# Requests -----------------------------------------------------------------------------------------------------


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


# Contents -----------------------------------------------------------------------------------------------------


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


# Settings -----------------------------------------------------------------------------------------------------


@case("a wrong secret key: exists() is False and open() says NotFound (tf#15662, tf#24253, io#2145)",
      dict(AWS_SECRET_ACCESS_KEY="wrong-secret-key"))
def a_wrong_secret_key(place):
    denied = tensorflow().errors.PermissionDeniedError
    for function in (gfile().exists, gfile().stat, read, gfile().glob):
        message = fails(denied, ["SignatureDoesNotMatch", "403"], function, place("file"))
        check("wrong-secret-key" in message, False, "the secret is in the message")
    fails(denied, ["403"], write, place("file"), b"x")


@case("an unknown access key: the same", dict(AWS_ACCESS_KEY_ID="unknown"))
def an_unknown_access_key(place):
    fails(tensorflow().errors.PermissionDeniedError, ["InvalidAccessKeyId"], gfile().exists, place("file"))


@case("no credentials at all: the same (deeplake#3161: or those of the node, silently)",
      dict(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_EC2_METADATA_DISABLED="true",
           AWS_CONFIG_FILE="/nonexistent/config", AWS_SHARED_CREDENTIALS_FILE="/nonexistent/credentials",
           HOME="/nonexistent"))
def no_credentials(place):
    for function in (gfile().exists, read):
        started = time.monotonic()
        fails(tensorflow().errors.UnauthenticatedError, ["credentials", "AWS_ACCESS_KEY_ID"], function, place("file"))
        check(time.monotonic() - started < 10, True, "the answer within 10 s")


@case("an endpoint that is down: exists() is False after 51 s",
      dict(AWS_ENDPOINT_URL=lambda _: "http://127.0.0.1:%d" % closed_port(), TF_S3_RETRY_TIMEOUT_MS="5s"))
def an_endpoint_that_is_down(place):
    port = os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2]
    for function in (gfile().exists, read, gfile().stat):
        started = time.monotonic()
        fails(tensorflow().errors.UnavailableError, ["127.0.0.1:" + port], function, place("file"))
        seconds = time.monotonic() - started
        check(seconds < 20, True, "the answer of %s came after %.1f s, within 20 s" % (function.__name__, seconds))


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@case("a bucket that does not exist: nothing says so")
def a_missing_bucket(place):
    missing = "s3://no-such-bucket-here/file"
    not_found = tensorflow().errors.NotFoundError
    # Python takes NOT_FOUND, which it is, for a no.
    check(gfile().exists(missing), False, "exists")
    for function in (gfile().stat, read):
        fails(not_found, ["no-such-bucket-here", "bucket"], function, missing)
    fails(not_found, ["no-such-bucket-here", "bucket"], write, missing, b"x")


@case("S3_ENDPOINT without http:// is taken for https, S3_USE_HTTPS is not read (tf#59990)",
      dict(AWS_ENDPOINT_URL=None, S3_ENDPOINT=lambda endpoint: endpoint.split("://")[1], S3_USE_HTTPS="0"))
def an_endpoint_without_a_scheme(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("… and nothing says so: False after 52 s",
      dict(AWS_ENDPOINT_URL=None, S3_ENDPOINT=lambda endpoint: endpoint.split("://")[1], S3_USE_HTTPS=None))
def https_to_a_server_that_speaks_http(place):
    started = time.monotonic()
    message = fails(tensorflow().errors.UnavailableError, ["https://"], gfile().exists, place("file"))
    seconds = time.monotonic() - started
    check(seconds < 20, True, "the answer came after %.1f s, within 20 s: %s" % (seconds, message))


@case("S3_REGION and S3_ENDPOINT are tensorflow-io's names; users have them set",
      dict(AWS_ENDPOINT_URL=None, AWS_REGION=None, S3_ENDPOINT=lambda endpoint: endpoint, S3_REGION="us-east-1",
           S3_VERIFY_SSL="0", S3_CONNECT_TIMEOUT_MSEC="2000", S3_REQUEST_TIMEOUT_MSEC="5000"))
def the_names_of_tensorflow_io(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("AWS_ENDPOINT_URL is not honoured; of both, AWS_ENDPOINT_URL_S3 counts",
      dict(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_ENDPOINT_URL_S3=lambda endpoint: endpoint))
def the_endpoint_of_the_service(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("S3_DISABLE_MULTI_PART_DOWNLOAD=1 crashes at the end of a file",
      dict(S3_DISABLE_MULTI_PART_DOWNLOAD="1"))
def the_setting_that_crashed(place):
    data = os.urandom(3 * MIB + 5)
    write(place("file"), data)
    check(read(place("file")) == data, True, "the content")
    check(tensorflow().io.read_file(place("file")).numpy() == data, True, "the content by the op")


class Proxy:
    """An HTTP proxy on this machine that counts its connections."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.upstream)
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, target, requests):
        # Good enough for one client: the server understands the form of the request line that proxies get.
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                line = data.split(b"\r\n")[0]
                if requests and b" HTTP/1.1" in line:
                    self.requests.append(line.decode())
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def through_a_proxy(place, seen):
    host, port = place.control.endpoint.split("://")[1].split(":")
    proxy = Proxy((host, int(port)))
    # Settings are read at the first use, so that a program can still make them.
    os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = "http://127.0.0.1:%d" % proxy.port
    tensorflow()
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")
    check(gfile().listdir(place()), ["file"], "the listing")
    check(len(proxy.requests) > 0, seen, "requests at the proxy: %s" % proxy.requests)
    for line in proxy.requests:
        check("http://" in line, True, "a full address in %r" % line)


@case("HTTP_PROXY is not honoured", dict(NO_PROXY=None, no_proxy=None))
def a_proxy(place):
    through_a_proxy(place, True)


@case("… and NO_PROXY must be", dict(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1"))
def no_proxy(place):
    through_a_proxy(place, False)


# Processes ----------------------------------------------------------------------------------------------------


@case("a process that has used s3:// aborts at its end: 'pure virtual method called', status 134 (io#1912, io#2039)",
      own_process=True)
def the_end_of_a_process(place):
    write(place("file"), os.urandom(20 * MIB))
    reader = gfile().GFile(place("file"), "rb")
    reader.read(10)
    list(tensorflow().data.TextLineDataset(place("file")).take(1))
    # Whoever starts this process looks at its status.


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


# The run ------------------------------------------------------------------------------------------------------


def in_this_process(one, root, control):
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        one.function(Place(root + "/" + one.name, control))
    finally:
        faulthandler.cancel_dump_traceback_later()


def set_environment(one, control, environment):
    for name, value in (one.environment or {}).items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value(control.endpoint) if callable(value) else value


def in_a_fork(one, root, control):
    tensorflow()
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            status = 1
            try:
                set_environment(one, control, os.environ)
                in_this_process(one, root, control)
                status = 0
            except BaseException:  # noqa: BLE001: whatever it is, the parent must not go on here
                traceback.print_exc()
            finally:
                os._exit(status)
        try:
            # One that hangs is ended by this, after its own time limit had no effect.
            check(wait_for(child, LIMIT + 30), 0, "the status of the fork")
        except AssertionError as error:
            said.seek(0)
            raise AssertionError("%s; it said\n%s" % (error, said.read())) from None


def in_a_process_of_its_own(one, root, control):
    environment = dict(os.environ)
    set_environment(one, control, environment)
    command = [sys.executable, __file__, "--root", root, "--control", control.endpoint, "--here", one.name]
    if one.words:
        environment["TF_CPP_MIN_LOG_LEVEL"] = "0"
    # A process that hangs is killed by this, after its own time limit had no effect.
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT + 30)
    if finished.returncode != 0 or "here: done" not in finished.stdout:
        raise AssertionError("the process ended with status %d\n%s%s"
                             % (finished.returncode, finished.stdout, finished.stderr))
    for word in one.words:
        check(word in finished.stderr, True, "%r is on standard error: %r" % (word, finished.stderr[-2000:]))


def run(one, root, control):
    started = time.monotonic()
    try:
        how = in_a_process_of_its_own if one.own_process else in_a_fork if one.environment is not None else in_this_process
        how(one, root, control)
    except Exception as error:  # noqa: BLE001: a case may fail with anything
        print("FAILED %s %.2fs: %s (%s)" % (one.name, time.monotonic() - started, error, one.defect), flush=True)
        frames = "".join(traceback.format_tb(error.__traceback__))
        print("    " + frames.rstrip().replace("\n", "\n    "), flush=True)
        return False
    print("ok %s %.2fs" % (one.name, time.monotonic() - started), flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", metavar="URI", help="the directory to work below")
    parser.add_argument("--control", metavar="URL", help="the test server")
    parser.add_argument("--only", metavar="NAME", action="append", help="run this case (may be repeated)")
    parser.add_argument("--here", metavar="NAME", help="run this case in this process")
    parser.add_argument("--list", action="store_true", help="print the names of the cases with their defects")
    arguments = parser.parse_args()
    if arguments.list:
        for one in CASES.values():
            print("%s: %s" % (one.name, one.defect))
        return 0
    faulthandler.enable()
    control = Control(arguments.control)
    if arguments.here:
        in_this_process(CASES[arguments.here], arguments.root, control)
        print("here: done", flush=True)
        return 0
    cases = [one for one in CASES.values() if not arguments.only or one.name in arguments.only]
    # Before this process uses the plugin.
    cases.sort(key=lambda one: one.environment is None)
    results = [run(one, arguments.root.rstrip("/"), control) for one in cases]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
