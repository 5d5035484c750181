"""What the scripts for s3:// have in common: checks, and a look into the test server from outside.

Needs no TensorFlow by itself.
"""
import json
import os
import signal
import time
import urllib.parse
import urllib.request

from checks import check, short  # noqa: F401: the scripts have both from here

MIB = 1 << 20

# What a child may take for its work: it is small, and a hang is what is looked for. A clear error must come within
# a second; the rest is for a busy machine.
CHILD_LIMIT = 30


def wait_for(child, seconds=CHILD_LIMIT):
    """The exit status of a child, which must end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGABRT)
    raise AssertionError("the child hangs")


def fails(kind, words, function, *arguments, **options):
    """`function` must fail with exactly the error class `kind` and a message that has all `words`."""
    what = "%s%s" % (getattr(function, "__name__", function), short(arguments))
    try:
        result = function(*arguments, **options)
    except Exception as error:  # noqa: BLE001: to say what it was instead
        message = getattr(error, "message", str(error))
        if type(error) is not kind:
            raise AssertionError(
                "%s failed with %s (%s), expected %s" % (what, type(error).__name__, message, kind.__name__)
            ) from error
        for word in words:
            if word not in message:
                raise AssertionError("%s: %r is not in the message %r" % (what, word, message)) from error
        return message
    raise AssertionError("%s gave %s, expected %s" % (what, short(result), kind.__name__))


class Control:
    """The control interface of the project's test server."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        # The server is on this machine, whatever proxies a test has set.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path, **query):
        url = "%s/_server/%s?%s" % (self.endpoint, path, urllib.parse.urlencode(query))
        with self.opener.open(url, timeout=30) as answer:
            return answer.read().decode()

    def ask(self, path, **query):
        return json.loads(self.get(path, **query))

    def keys(self, bucket):
        return self.ask("keys", bucket=bucket)

    def uploads(self, bucket):
        return self.ask("uploads", bucket=bucket)

    def reset(self):
        """The counters since the last reset."""
        return self.ask("reset")

    def fault(self, **what):
        self.ask("fault", **what)

    def clear(self):
        self.ask("clear")

    def log(self):
        return [json.loads(line) for line in self.get("log").splitlines()]


def split(uri):
    """Bucket and key of an s3:// URI."""
    bucket, _, key = uri.split("://", 1)[1].partition("/")
    return bucket, key


def resident():
    """Bytes of memory in use by this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
