"""What the cases are made of: where they work, and what they check."""
import numpy as np
import tensorflow as tf

from checks import check, short  # noqa: F401: the cases have both from here

gfile = tf.io.gfile
errors = tf.errors

CASES = []

# What a filesystem may be without, and what then holds.
LACKS = {
    "memory_region": "memory regions are UNIMPLEMENTED",
    "normal_form": "names are taken as they are written: `a//b`, `a/./b` and `a/x/../b` are three files",
    "hierarchy": "only the name itself counts: a missing parent is not an error, a file may have others below it or be "
                 "beside a directory of its name, and a directory can be renamed",
    "unclosed_files": "what is dropped without being closed is not stored",
}


class NotApplicable(Exception):
    """This TensorFlow cannot do it, whatever the plugin."""


class Place:
    """Where a case works: its own directory, the scheme around it, and a local scratch directory."""

    def __init__(self, base, local, lacks):
        self.base = base
        self.local = local
        self.lacks = lacks
        # scheme://host and the path in it; both are empty for the local filesystem.
        if "://" in base:
            scheme, rest = base.split("://", 1)
            host, slash, path = rest.partition("/")
            self.scheme = scheme
            self.host = host
            self.authority = scheme + "://" + host
            self.path = slash + path
        else:
            self.scheme = self.host = self.authority = ""
            self.path = base

    def __call__(self, *parts):
        return "/".join((self.base,) + parts)


def case(function):
    CASES.append((function.__name__, function))
    return function


def fails(kind, function, *arguments, **options):
    """`function` must fail with exactly the error class `kind`."""
    what = "%s%s" % (getattr(function, "__name__", function), short(arguments))
    try:
        result = function(*arguments, **options)
    except errors.OpError as error:
        if type(error) is not kind:
            raise AssertionError(
                "%s failed with %s (%s), expected %s"
                % (what, type(error).__name__, error.message, kind.__name__)
            ) from error
        if not error.message:
            raise AssertionError("%s failed with %s and no message" % (what, kind.__name__)) from error
        return error
    raise AssertionError("%s gave %s, expected %s" % (what, short(result), kind.__name__))


def all_of(*checks):
    """Runs every check, so that one run shows all deviations."""
    wrong = []
    for one in checks:
        try:
            one()
        except AssertionError as error:
            wrong.append(str(error))
    if wrong:
        raise AssertionError("%d of %d wrong:\n    %s" % (len(wrong), len(checks), "\n    ".join(wrong)))


def write(path, data, mode="wb"):
    with gfile.GFile(path, mode) as file:
        file.write(data)
    return path


def append(path, data):
    return write(path, data, "ab")


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def names(listing):
    """Children as names; some filesystems mark directories with a slash at the end."""
    return sorted(name.rstrip("/") for name in listing)


def payload(size, seed=7):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


def values(dataset):
    return [element.numpy() for element in dataset]
