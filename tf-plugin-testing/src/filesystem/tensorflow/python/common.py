"""Cases for filesystems. A job says `library`, the plugin; `scheme`; `root`, a directory of it;
`malformed`, a name that can never be one, or null; and how files and directories are: `real`,
`visible_at_create`, `visible_at_flush`, `appends`."""
import concurrent.futures
import contextlib
import gzip
import itertools
import pickle
import tempfile

from tensorflow.core.util import event_pb2  # noqa: E402

gfile = tf.io.gfile
errors = tf.errors
NOT_FOUND = errors.NotFoundError
PRECONDITION = errors.FailedPreconditionError
EXISTS = errors.AlreadyExistsError
# The header's code for a name that can never be one, and that of TensorFlow's own filesystems.
MALFORMED = (PRECONDITION, errors.InvalidArgumentError)


class Place:
    """Where cases work: each in a new directory below the root."""

    def __init__(self, settings):
        self.__dict__.update(settings)
        # Of `my:///` the slashes that make it a URI stay.
        self.root = self.root[:-1] if self.root.endswith("/") else self.root
        if not re.fullmatch("[A-Za-z][A-Za-z0-9.]+", self.scheme):
            raise RuntimeError("TensorFlow takes what begins with %s:// for a path of this machine; choose a scheme of "
                               "two letters or more, without other characters than digits and '.'" % self.scheme)
        if self.scheme not in gfile.get_registered_schemes():
            tf.experimental.register_filesystem_plugin(self.library)
        if self.scheme not in gfile.get_registered_schemes():
            raise RuntimeError("%s does not register %s://" % (self.library, self.scheme))
        self.number = 0
        self.base = None

    @contextlib.contextmanager
    def case(self, name):
        self.number += 1
        unique = "%s-%x-%d" % (name, time.time_ns() ^ os.getpid() << 40, self.number)
        self.base = "%s/%s" % (self.root, unique)
        set_up(self.base)
        # One that fails leaves its files: they may show the cause.
        try:
            yield
        except (Skip, errors.UnimplementedError):
            self.clean()
            raise
        self.clean()

    def clean(self):
        with contextlib.suppress(errors.OpError):
            gfile.rmtree(self.base)

    def __call__(self, *parts):
        return "/".join((self.base,) + parts)

    def below_file(self, error=PRECONDITION):
        """The exception for a path below a file: where directories are implied nobody looks."""
        return error if self.real else (error, NOT_FOUND)


def set_up(base):
    try:
        gfile.makedirs(base)
    except errors.UnimplementedError:
        # Then names imply directories.
        pass


def write(path, data, mode="wb"):
    with gfile.GFile(path, mode) as file:
        file.write(data)
    return path


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def names(listing):
    """Some filesystems mark directories with a slash at the end."""
    return sorted(name.rstrip("/") for name in listing)


def payload(size, seed=7):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


def values(dataset):
    return [element.numpy() for element in dataset]


def populate(place):
    gfile.makedirs(place("full"))
    gfile.makedirs(place("empty"))
    write(place("file"), b"content")
    write(place("full", "file"), b"inner")


def untouched(place, what="the directory afterwards"):
    same(what, names(gfile.listdir(place())), ["empty", "file", "full"])
    same("the file afterwards", read(place("file")), b"content")
    same("the file in the directory afterwards", read(place("full", "file")), b"inner")


def needs_real(place):
    if not place.real:
        raise Skip("directories are declared to be implied")


def needs_append(place):
    if not place.appends:
        raise Skip("appending is declared to be unsupported")


def needs_visible_at_create(place):
    if not place.visible_at_create:
        raise Skip("files are declared to be visible at %s" % ("flush" if place.visible_at_flush else "close"))


def needs_visible_at_flush(place):
    if not place.visible_at_flush:
        raise Skip("files are declared to be visible at close")
