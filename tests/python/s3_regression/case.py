"""What the cases are made of, and where they work."""
from s3_common import split

CASES = {}


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
