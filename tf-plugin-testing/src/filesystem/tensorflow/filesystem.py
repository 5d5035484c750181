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
        # One that fails leaves its files for whoever looks for the cause.
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


# Whole files --------------------------------------------------------------------------------------------------


@case
def python_write_file_and_read_file(place):
    for size in (0, 1, 4096, 1048576, 3000001):
        path = place("file-%d" % size)
        tf.io.write_file(path, payload(size))
        same("tf.io.read_file of %d bytes" % size, tf.io.read_file(path).numpy(), payload(size))
        same("the length of %d bytes" % size, gfile.stat(path).length, size)


@case
def python_write_file_makes_directories(place):
    tf.io.write_file(place("new", "directory", "file"), b"content")
    same("what was written", read(place("new", "directory", "file")), b"content")
    same("isdir of the new directory", gfile.isdir(place("new", "directory")), True)


@case
def python_text(place):
    text = "first line\nzweite Zeile: äöü\n\nlast without an end"
    write(place("text"), text, "w")
    with gfile.GFile(place("text")) as file:
        same("size()", file.size(), len(text.encode()))
        same("readline()", file.readline(), "first line\n")
        same("tell() after a line", file.tell(), 11)
        same("the other lines", list(file), ["zweite Zeile: äöü\n", "\n", "last without an end"])
        same("read() at the end", file.read(), "")
        file.seek(0)
        same("read()", file.read(), text)


@case
def python_seek_and_tell(place):
    data = payload(100000)
    write(place("file"), data)
    with gfile.GFile(place("file"), "rb") as file:
        same("read(5)", file.read(5), data[:5])
        same("tell()", file.tell(), 5)
        file.seek(99990)
        same("read(100) near the end", file.read(100), data[99990:])
        same("tell() at the end", file.tell(), 100000)
        file.seek(-7, 2)
        same("read() after a seek from the end", file.read(), data[-7:])
        file.seek(50000)
        file.seek(-10, 1)
        same("read(20) after a relative seek", file.read(20), data[49990:50010])
        file.seek(0)
        same("all of it", file.read(), data)


@case
def python_tell_while_writing(place):
    with gfile.GFile(place("file"), "wb") as file:
        for count in range(1, 6):
            file.write(b"12345")
            same("tell() after %d bytes" % (5 * count), file.tell(), 5 * count)
            if count == 3:
                file.flush()


@case
def python_all_byte_values(place):
    data = bytes(range(256)) * 3 + b"\r\n\0\n\r\x1a\xff\xfe"
    write(place("file"), data)
    same("the content", read(place("file")), data)


@case
def python_many_small_writes(place):
    pieces = [payload(size % 41, size) for size in range(4000)]
    with gfile.GFile(place("file"), "wb") as file:
        for number, piece in enumerate(pieces):
            file.write(piece)
            if number % 1000 == 999:
                file.flush()
    same("the content", read(place("file")), b"".join(pieces))


@case
def python_one_large_write(place):
    data = payload(16 << 20)
    write(place("file"), data)
    same("the length", gfile.stat(place("file")).length, len(data))
    same("tf.io.read_file", tf.io.read_file(place("file")).numpy(), data)
    with gfile.GFile(place("file"), "rb") as file:
        pieces = iter(lambda: file.read(3333333), b"")
        same("the pieces", b"".join(pieces), data)
        file.seek(9 << 20)
        same("a piece in the middle", file.read(70000), data[9 << 20:][:70000])


@case
def python_replaced_by_a_shorter_one(place):
    write(place("file"), payload(300000))
    write(place("file"), b"short")
    same("the content", read(place("file")), b"short")
    same("the length", gfile.stat(place("file")).length, 5)
    write(place("file"), b"")
    same("the content after writing nothing", read(place("file")), b"")


@case
def python_append(place):
    needs_append(place)
    for number in range(8):
        write(place("log"), b"line %d\n" % number, "ab")
    same("the content", read(place("log")), b"".join(b"line %d\n" % number for number in range(8)))
    write(place("log"), b"", "ab")
    same("the length after appending nothing", gfile.stat(place("log")).length, 56)
    write(place("log"), payload(200000), "ab")
    same("the content after a long one", read(place("log"))[56:], payload(200000))


@case
def python_append_to_nothing(place):
    write(place("new"), b"content", "ab")
    same("the content", read(place("new")), b"content")


@case
def python_empty_file(place):
    write(place("empty"), b"")
    same("exists", gfile.exists(place("empty")), True)
    stat = gfile.stat(place("empty"))
    same("length and is_directory", (stat.length, stat.is_directory), (0, False))
    same("GFile.read", read(place("empty")), b"")
    same("tf.io.read_file", tf.io.read_file(place("empty")).numpy(), b"")
    same("TFRecordDataset", values(tf.data.TFRecordDataset(place("empty"))), [])
    gfile.copy(place("empty"), place("copy"))
    same("a copy", (gfile.exists(place("copy")), read(place("copy"))), (True, b""))


@case
def python_open_file_is_there(place):
    needs_visible_at_create(place)
    writer = gfile.GFile(place("open"), "wb")
    writer.write(b"12345")
    together(
        lambda: same("exists", gfile.exists(place("open")), True),
        lambda: same("stat", gfile.stat(place("open")).is_directory, False),
        lambda: same("listdir", names(gfile.listdir(place())), ["open"]),
        lambda: same("glob", gfile.glob(place("o*")), [place("open")]),
    )
    writer.close()


@case
def python_flushed_is_read(place):
    needs_visible_at_flush(place)
    writer = gfile.GFile(place("file"), "wb")
    for count in range(1, 5):
        writer.write(b"%d" % count * 1000)
        writer.flush()
        wanted = b"".join(b"%d" % number * 1000 for number in range(1, count + 1))
        same("what another reads after flush %d" % count, read(place("file")), wanted)
    writer.close()


@case
def python_half_a_file_is_never_seen(place):
    if place.visible_at_create:
        raise Skip("files are declared to be visible at create")
    write(place("file"), b"the old content")
    writer = gfile.GFile(place("file"), "wb")
    writer.write(b"new" * 1000)
    if not place.visible_at_flush:
        writer.flush()
    # The process that writes it may be refused.
    with contextlib.suppress(PRECONDITION):
        same("what another reads before the close", read(place("file")), b"the old content")
    writer.close()
    same("what another reads after the close", read(place("file")), b"new" * 1000)


@case
def python_closed_twice(place):
    writer = gfile.GFile(place("file"), "wb")
    writer.write(b"content")
    writer.close()
    writer.close()
    same("the content", read(place("file")), b"content")


@case
def python_dropped_file(place):
    dropped = gfile.GFile(place("file"), "wb")
    dropped.write(b"of an error path")
    del dropped
    write(place("file"), b"written again")
    same("the content", read(place("file")), b"written again")
    gfile.remove(place("file"))
    same("exists after remove", gfile.exists(place("file")), False)


@case
def python_two_writers(place):
    with gfile.GFile(place("a"), "wb") as one, gfile.GFile(place("b"), "wb") as two:
        for number in range(200):
            one.write(b"a%d," % number)
            two.write(b"b%d," % number)
    for name in (b"a", b"b"):
        same("the content of %s" % name.decode(), read(place(name.decode())), b"".join(name + b"%d," % n for n in range(200)))


@case
def python_new_content_is_read(place):
    for number in range(4):
        write(place("file"), b"%d" % number * (number + 1))
        same("the content of version %d" % number, read(place("file")), b"%d" % number * (number + 1))
        same("the length of version %d" % number, gfile.stat(place("file")).length, number + 1)


# Codes --------------------------------------------------------------------------------------------------------


@case
def python_read_missing(place):
    populate(place)
    together(
        lambda: fails("GFile.read of a missing file", NOT_FOUND, read, place("missing")),
        lambda: fails("tf.io.read_file of a missing file", NOT_FOUND, tf.io.read_file, place("missing")),
        lambda: fails("reading below a missing directory", NOT_FOUND, read, place("missing", "file")),
    )
    untouched(place)


@case
def python_read_directory(place):
    populate(place)
    fails("tf.io.read_file of a directory", PRECONDITION, tf.io.read_file, place("full"))
    fails("tf.io.read_file of an empty directory", PRECONDITION, tf.io.read_file, place("empty"))


@case
def python_read_below_file(place):
    populate(place)
    fails("tf.io.read_file below a file", place.below_file(), tf.io.read_file, place("file", "below"))


@case
def python_write_missing_parent(place):
    needs_real(place)
    populate(place)
    fails("writing below a missing directory", NOT_FOUND, write, place("missing", "file"), b"x")
    untouched(place)


@case
def python_write_onto_directory(place):
    populate(place)

    def onto(what, name):
        try:
            fails(what, PRECONDITION, write, place(name), b"x")
        except Wrong:
            if place.real:
                raise
            # A file beside the directory, as TensorFlow's own object stores have it.
            same("%s: the file beside it" % what, read(place(name)), b"x")

    together(
        lambda: onto("writing a file onto a directory", "full"),
        lambda: onto("writing a file onto an empty directory", "empty"),
    )
    untouched(place)


@case
def python_write_below_file(place):
    needs_real(place)
    populate(place)
    fails("writing below a file", PRECONDITION, write, place("file", "below"), b"x")
    untouched(place)


@case
def python_append_codes(place):
    needs_real(place)
    populate(place)
    together(
        lambda: fails("appending below a missing directory", NOT_FOUND, write, place("missing", "file"), b"x", "ab"),
        lambda: fails("appending to a directory", PRECONDITION, write, place("full"), b"x", "ab"),
        lambda: fails("appending below a file", PRECONDITION, write, place("file", "below"), b"x", "ab"),
    )
    untouched(place)


@case
def python_malformed(place):
    name = place.malformed
    if name is None:
        raise Skip("no name is declared that the filesystem can never accept")
    write(place("file"), b"content")
    together(
        lambda: fails("reading", MALFORMED, tf.io.read_file, name),
        lambda: fails("writing", MALFORMED, write, name, b"x"),
        lambda: fails("exists", MALFORMED, gfile.exists, name),
        lambda: fails("stat", MALFORMED, gfile.stat, name),
        lambda: fails("remove", MALFORMED, gfile.remove, name),
        lambda: fails("rename to it", MALFORMED, gfile.rename, place("file"), name, overwrite=True),
        lambda: fails("makedirs", MALFORMED, gfile.makedirs, name),
    )
    same("the file afterwards", read(place("file")), b"content")


# Directories --------------------------------------------------------------------------------------------------


@case
def python_mkdir(place):
    gfile.mkdir(place("new"))
    same("isdir and exists", (gfile.isdir(place("new")), gfile.exists(place("new"))), (True, True))
    same("listdir", gfile.listdir(place("new")), [])
    write(place("new", "file"), b"content")
    # TensorFlow swallows ALREADY_EXISTS here.
    gfile.mkdir(place("new"))
    same("listdir after a second mkdir", names(gfile.listdir(place("new"))), ["file"])


@case
def python_mkdir_codes(place):
    needs_real(place)
    populate(place)
    together(
        lambda: fails("mkdir below a missing directory", NOT_FOUND, gfile.mkdir, place("missing", "new")),
        lambda: fails("mkdir below a file", PRECONDITION, gfile.mkdir, place("file", "new")),
        lambda: gfile.mkdir(place("file")),
    )
    untouched(place)


@case
def python_makedirs(place):
    gfile.makedirs(place("a", "b", "c"))
    gfile.makedirs(place("a", "b", "c"))
    same("isdir", [gfile.isdir(place(path)) for path in ("a", "a/b", "a/b/c")], [True] * 3)
    same("listdir", names(gfile.listdir(place("a"))), ["b"])


@case
def python_makedirs_codes(place):
    populate(place)
    together(
        lambda: fails("makedirs of a file", PRECONDITION, gfile.makedirs, place("file")),
        lambda: place.real and fails("makedirs below a file", PRECONDITION, gfile.makedirs, place("file", "a")),
        lambda: place.real and fails("makedirs far below a file", PRECONDITION, gfile.makedirs, place("file", "a", "b")),
    )
    if place.real:
        untouched(place)


@case
def python_remove(place):
    populate(place)
    write(place("file1"), b"a neighbour")
    gfile.remove(place("file"))
    same("exists", gfile.exists(place("file")), False)
    same("listdir", names(gfile.listdir(place())), ["empty", "file1", "full"])
    gfile.remove(place("full", "file"))
    if place.real:
        same("isdir of a directory whose last file is gone", gfile.isdir(place("full")), True)


@case
def python_remove_codes(place):
    populate(place)
    together(
        lambda: fails("remove of a missing file", NOT_FOUND, gfile.remove, place("missing")),
        lambda: fails("remove below a missing directory", NOT_FOUND, gfile.remove, place("missing", "file")),
        lambda: fails("remove of a directory", PRECONDITION, gfile.remove, place("full")),
        lambda: fails("remove of an empty directory", PRECONDITION, gfile.remove, place("empty")),
        lambda: fails("remove below a file", place.below_file(), gfile.remove, place("file", "below")),
    )
    untouched(place)


@case
def python_rmtree(place):
    for path in ("run/a/b/c/file", "run/file", "run/a/file", "run1/file"):
        gfile.makedirs(os.path.dirname(place(path)))
        write(place(path), b"x")
    gfile.makedirs(place("run/a/empty"))
    gfile.rmtree(place("run"))
    same("exists", gfile.exists(place("run")), False)
    same("exists of a file that was in it", gfile.exists(place("run", "file")), False)
    same("listdir", names(gfile.listdir(place())), ["run1"])
    same("the neighbour", read(place("run1", "file")), b"x")


@case
def python_rmtree_codes(place):
    populate(place)
    fails("rmtree of nothing", NOT_FOUND, gfile.rmtree, place("missing"))
    fails("rmtree below a file", place.below_file(), gfile.rmtree, place("file", "below"))
    untouched(place)
    gfile.rmtree(place("file"))
    gfile.rmtree(place("empty"))
    same("listdir after rmtree of a file and of an empty directory", names(gfile.listdir(place())), ["full"])


# Renaming and copying -----------------------------------------------------------------------------------------


@case
def python_rename(place):
    write(place("ckpt-1"), b"one")
    write(place("ckpt-10"), b"ten")
    gfile.rename(place("ckpt-1"), place("moved"))
    same("listdir", names(gfile.listdir(place())), ["ckpt-10", "moved"])
    same("the content", read(place("moved")), b"one")
    same("exists of the old name", gfile.exists(place("ckpt-1")), False)


@case
def python_rename_onto_a_file(place):
    write(place("source"), b"source")
    write(place("target"), b"an older and longer target")
    fails("rename without overwrite", EXISTS, gfile.rename, place("source"), place("target"))
    same("both", (read(place("source")), read(place("target"))), (b"source", b"an older and longer target"))
    gfile.rename(place("source"), place("target"), overwrite=True)
    same("the target", read(place("target")), b"source")
    same("listdir", names(gfile.listdir(place())), ["target"])


@case
def python_rename_codes(place):
    populate(place)

    def bad(what, kinds, source, target):
        return lambda: fails("rename " + what, kinds, gfile.rename, place(source), place(target), overwrite=True)

    together(
        bad("of nothing", NOT_FOUND, "missing", "new"),
        bad("of nothing onto a file", NOT_FOUND, "missing", "file"),
        bad("from below a missing directory", NOT_FOUND, "missing/file", "new"),
        bad("onto a directory", PRECONDITION, "file", "full"),
        bad("onto an empty directory", PRECONDITION, "file", "empty"),
        bad("from below a file", place.below_file(), "file/below", "new"),
    )
    untouched(place)
    if place.real:
        together(
            bad("of a directory", PRECONDITION, "full", "new"),
            bad("to below a missing directory", NOT_FOUND, "file", "missing/new"),
            bad("to below a file", PRECONDITION, "full/file", "file/below"),
        )
        untouched(place)


@case
def python_copy(place):
    # The host's own copy goes by steps of 131,072 bytes.
    for size in (0, 1, 131071, 131072, 131073, 400000):
        write(place("source"), payload(size))
        gfile.copy(place("source"), place("copy-%d" % size))
        same("a copy of %d bytes" % size, read(place("copy-%d" % size)), payload(size))
        same("its source", read(place("source")), payload(size))
    gfile.remove(place("source"))
    same("a copy whose source is gone", read(place("copy-1")), payload(1))


@case
def python_copy_is_its_own_file(place):
    write(place("source"), b"one")
    gfile.copy(place("source"), place("copy"))
    write(place("source"), b"another")
    same("the copy", read(place("copy")), b"one")


@case
def python_copy_onto_a_file(place):
    write(place("source"), b"source")
    write(place("target"), b"an older and longer target")
    fails("copy without overwrite", EXISTS, gfile.copy, place("source"), place("target"))
    same("the target", read(place("target")), b"an older and longer target")
    gfile.copy(place("source"), place("target"), overwrite=True)
    same("both", (read(place("source")), read(place("target"))), (b"source", b"source"))


@case
def python_copy_codes(place):
    populate(place)

    def bad(what, kinds, source, target):
        return lambda: fails("copy " + what, kinds, gfile.copy, place(source), place(target), overwrite=True)

    together(
        bad("of nothing", NOT_FOUND, "missing", "new"),
        bad("of nothing onto a file", NOT_FOUND, "missing", "file"),
        bad("of a directory", PRECONDITION, "full", "new"),
        bad("onto a directory", PRECONDITION, "file", "full"),
        bad("from below a file", place.below_file(), "file/below", "new"),
    )
    untouched(place)
    if place.real:
        together(
            bad("to below a missing directory", NOT_FOUND, "file", "missing/new"),
            bad("to below a file", PRECONDITION, "full/file", "file/below"),
        )
        untouched(place)


@case
def python_copy_between_filesystems(place):
    with tempfile.TemporaryDirectory() as directory:
        for size in (0, 1, 131071, 131072, 262144, 1000003):
            near = os.path.join(directory, "file-%d" % size)
            with open(near, "wb") as file:
                file.write(payload(size))
            gfile.copy("file://" + near, place("in-%d" % size))
            same("%d bytes from file://" % size, read(place("in-%d" % size)), payload(size))
            gfile.copy(place("in-%d" % size), near + ".back")
            with open(near + ".back", "rb") as file:
                same("%d bytes back" % size, file.read(), payload(size))


@case
def python_rename_between_filesystems(place):
    with tempfile.TemporaryDirectory() as directory:
        near = os.path.join(directory, "file")
        with open(near, "wb") as file:
            file.write(b"content")
        try:
            gfile.rename(near, place("moved"))
        except errors.UnimplementedError:
            pass
        else:
            raise Wrong("rename from file://", "UnimplementedError", "success")
        same("both afterwards", (os.path.exists(near), gfile.exists(place("moved"))), (True, False))


# Questions ----------------------------------------------------------------------------------------------------


@case
def python_exists(place):
    populate(place)
    for path in ("file", "full", "empty", "full/file"):
        same("exists of %s" % path, gfile.exists(place(path)), True)
    for path in ("missing", "missing/file", "fil", "file1", "full/other"):
        same("exists of %s" % path, gfile.exists(place(path)), False)
    if place.real:
        fails("exists below a file", PRECONDITION, gfile.exists, place("file", "below"))


@case
def python_isdir(place):
    populate(place)
    for path, wanted in (("full", True), ("empty", True), ("file", False), ("missing", False), ("file/below", False)):
        same("isdir of %s" % path, gfile.isdir(place(path)), wanted)


@case
def python_stat(place):
    populate(place)
    stat = gfile.stat(place("file"))
    same("length and is_directory of a file", (stat.length, stat.is_directory), (7, False))
    # Nanoseconds; a filesystem without times says 0.
    near = stat.mtime_nsec == 0 or abs(stat.mtime_nsec / 1e9 - time.time()) < 3600
    if not near:
        raise Wrong("mtime_nsec of a new file", "now, or 0", str(stat.mtime_nsec))
    same("is_directory of a directory", gfile.stat(place("full")).is_directory, True)
    same("is_directory of an empty directory", gfile.stat(place("empty")).is_directory, True)


@case
def python_stat_codes(place):
    populate(place)
    together(
        lambda: fails("stat of nothing", NOT_FOUND, gfile.stat, place("missing")),
        lambda: fails("stat below a missing directory", NOT_FOUND, gfile.stat, place("missing", "file")),
        lambda: fails("stat below a file", place.below_file(), gfile.stat, place("file", "below")),
    )


@case
def python_size(place):
    for size in (0, 1, 100000):
        write(place("file"), payload(size))
        with gfile.GFile(place("file"), "rb") as file:
            same("size() of %d bytes" % size, file.size(), size)


# Listings -----------------------------------------------------------------------------------------------------


@case
def python_listdir(place):
    populate(place)
    write(place(".hidden"), b"")
    gfile.makedirs(place("full", "below"))
    gfile.makedirs(place("full-1"))
    write(place("full-1", "other"), b"")
    same("listdir", names(gfile.listdir(place())), [".hidden", "empty", "file", "full", "full-1"])
    same("listdir of a directory in it", names(gfile.listdir(place("full"))), ["below", "file"])
    same("listdir of an empty directory", gfile.listdir(place("empty")), [])


@case
def python_listdir_codes(place):
    populate(place)
    # TensorFlow calls is_directory first, and reports every refusal so.
    together(
        lambda: fails("listdir of nothing", NOT_FOUND, gfile.listdir, place("missing")),
        lambda: fails("listdir of a file", NOT_FOUND, gfile.listdir, place("file")),
    )


@case
def python_listdir_of_many(place):
    wanted = ["file-%04d" % number for number in range(300)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: write(place(name), b"x"), wanted))
    same("listdir", names(gfile.listdir(place())), wanted)
    same("glob", len(gfile.glob(place("*7"))), 30)


@case
def python_listing_follows_changes(place):
    for wanted in (["a"], ["a", "b"], ["b"], ["b", "c"]):
        for name in ("a", "b", "c"):
            if name in wanted:
                write(place(name), b"x")
            elif gfile.exists(place(name)):
                gfile.remove(place(name))
        same("listdir", names(gfile.listdir(place())), wanted)
        same("glob", sorted(gfile.glob(place("?"))), [place(name) for name in wanted])


@case
def python_walk(place):
    for path in ("top.txt", "a/one.txt", "a/deep/two.txt", "b/three.txt", "ab/four.txt"):
        gfile.makedirs(os.path.dirname(place(path)))
        write(place(path), b"x")
    gfile.makedirs(place("empty"))

    def tree(**options):
        walked = gfile.walk(place(), **options)
        return [(top.rstrip("/")[len(place()):].strip("/"), names(dirs), sorted(files)) for top, dirs, files in walked]

    wanted = [("", ["a", "ab", "b", "empty"], ["top.txt"]), ("a", ["deep"], ["one.txt"]), ("a/deep", [], ["two.txt"]),
              ("ab", [], ["four.txt"]), ("b", [], ["three.txt"]), ("empty", [], [])]
    same("walk", sorted(tree()), wanted)
    same("walk from the bottom", sorted(tree(topdown=False)), wanted)
    same("the last, from the bottom", tree(topdown=False)[-1][0], "")
    same("walk of nothing", list(gfile.walk(place("missing"))), [])


def globs(place, *wanted):
    for path in ("a/one.txt", "a/two.csv", "a/deep/three.txt", "b/four.txt", "ab/five.txt"):
        gfile.makedirs(os.path.dirname(place(path)))
        write(place(path), b"x")
    write(place("top.txt"), b"x")

    def one(pattern, names):
        found = gfile.glob(place(pattern))
        wrong = [path for path in found if not path.startswith(place() + "/")]
        same("matches of %s that do not begin as the pattern does" % pattern, wrong, [])
        same("glob %s" % pattern, sorted(path[len(place()) + 1:].rstrip("/") for path in found), names)

    together(*[lambda pattern=pattern, names=names: one(pattern, names) for pattern, names in wanted])


@case
def python_glob_star(place):
    globs(place, ("*", ["a", "ab", "b", "top.txt"]), ("*.txt", ["top.txt"]), ("a*", ["a", "ab"]), ("*.no", []))


@case
def python_glob_in_directories(place):
    globs(place, ("*/*.txt", ["a/one.txt", "ab/five.txt", "b/four.txt"]), ("a/*", ["a/deep", "a/one.txt", "a/two.csv"]),
          ("*/deep/*", ["a/deep/three.txt"]), ("missing/*", []), ("top.txt/*", []))


@case
def python_glob_question_mark(place):
    globs(place, ("?", ["a", "b"]), ("??", ["ab"]), ("a?", ["ab"]), ("?/????.txt", ["b/four.txt"]))


@case
def python_glob_list(place):
    globs(place, ("[ab]", ["a", "b"]), ("[^b]/*.txt", ["a/one.txt"]), ("[a-c]*/f*", ["ab/five.txt", "b/four.txt"]))


@case
def python_glob_without_wildcard(place):
    globs(place, ("top.txt", ["top.txt"]), ("a", ["a"]), ("missing", []), ("top", []))


@case
def python_glob_escapes(place):
    for name in ("[x]", "star*", "what?", "starlight", "whatx", "x", "back\\slash"):
        write(place(name), b"")
    together(
        lambda: same("an escaped [", gfile.glob(place("\\[x]")), [place("[x]")]),
        lambda: same("an escaped *", gfile.glob(place("sta*\\*")), [place("star*")]),
        lambda: same("an escaped ?", gfile.glob(place("what\\?")), [place("what?")]),
        lambda: same("a plain ?", sorted(gfile.glob(place("what?"))), [place("what?"), place("whatx")]),
        lambda: same("an escaped backslash", gfile.glob(place("*\\\\*")), [place("back\\slash")]),
    )


@case
def python_matching_files(place):
    for name in ("b1", "b2", "c1"):
        write(place(name), b"")
    same("one pattern", tf.io.matching_files(place("b?")).numpy().tolist(), [place(name).encode() for name in ("b1", "b2")])
    same("two patterns", tf.io.matching_files([place("c*"), place("z*")]).numpy().tolist(), [place("c1").encode()])


# Names --------------------------------------------------------------------------------------------------------


def named(place, *odd):
    for name in odd:
        write(place(name), name.encode())
    same("listdir", names(gfile.listdir(place())), sorted(odd))
    for name in odd:
        same("exists of %r" % name, gfile.exists(place(name)), True)
        same("the content of %r" % name, read(place(name)), name.encode())
        same("tf.io.read_file of %r" % name, tf.io.read_file(place(name)).numpy(), name.encode())
    for number, name in enumerate(odd):
        gfile.makedirs(place("dir-%d" % number, name))
        gfile.rename(place(name), place("dir-%d" % number, name, name))
        same("a directory of that name", names(gfile.listdir(place("dir-%d" % number))), [name])
    same("listdir after the renames", names(gfile.listdir(place())), sorted("dir-%d" % n for n in range(len(odd))))


@case
def python_names_with_spaces(place):
    named(place, "with space", " leading", "trailing ", "two  spaces")


@case
def python_names_beyond_ascii(place):
    named(place, "zażółć", "日本語", "🦀", "e\u0301 in two", "\u00e9 in one")
    write(place("日本語.txt"), b"")
    same("glob", gfile.glob(place("*本*.txt")), [place("日本語.txt")])


@case
def python_names_with_wildcards(place):
    named(place, "star*", "what?", "[list]", "[^x]", "back\\slash")


@case
def python_names_of_uris(place):
    named(place, "100%", "%41", "%2F", "a+b", "a&b=c", "hash#tag", "a:b", "at@sign", "q=1?", "semi;colon")


@case
def python_names_with_signs(place):
    named(place, "comma,", "quote'\"", "$HOME", "~", "`tick`", "(round)", "{curly}", "<angle>", "pipe|", "-dash", "...", ".hidden")


@case
def python_names_differ_in_case(place):
    named(place, "name", "Name", "NAME")


@case
def python_long_names(place):
    named(place, "x" * 200, "x" * 199)


@case
def python_deep_directories(place):
    deep = place(*["directory"] * 40)
    gfile.makedirs(deep)
    write(deep + "/leaf", b"deep")
    same("the content", read(deep + "/leaf"), b"deep")
    same("the directories of a walk", sum(1 for _ in gfile.walk(place("directory"))), 40)


@case
def python_untidy_names(place):
    gfile.makedirs(place("sub"))
    write(place("sub", "..", "file"), b"here")
    same("a file written by way of ..", read(place("file")), b"here")
    same("., .. and // in a path", read(place(".", "sub", ".", "..", "", "file")), b"here")
    same("listdir of ..", names(gfile.listdir(place("sub", ".."))), ["file", "sub"])
    same("isdir with / at the end", gfile.isdir(place("sub/")), True)


# What uses files ----------------------------------------------------------------------------------------------


def write_records(path, records, compression=""):
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for record in records:
            writer.write(record)
    return path


@case
def python_tfrecord(place):
    records = [b"record %d" % number for number in range(1000)] + [b"", payload(300000)]
    write_records(place("records"), records)
    dataset = tf.data.TFRecordDataset(place("records"))
    same("the records", values(dataset), records)
    same("the second epoch", values(dataset), records)
    same("the length", gfile.stat(place("records")).length, sum(len(record) + 16 for record in records))


@case
def python_tfrecord_compressed(place):
    records = [b"the same line again %d" % (number % 3) for number in range(2000)]
    for compression in ("GZIP", "ZLIB"):
        write_records(place(compression), records, compression)
        dataset = tf.data.TFRecordDataset(place(compression), compression_type=compression)
        same(compression, values(dataset), records)


@case
def python_tfrecord_cut(place):
    records = [payload(1000, seed) for seed in range(10)]
    write(place("cut"), read(write_records(place("whole"), records))[:-7])
    seen = []

    def drain():
        for record in tf.data.TFRecordDataset(place("cut")):
            seen.append(record.numpy())

    fails("a file without its last 7 bytes", errors.DataLossError, drain)
    same("the records before", seen, records[:-1])


@case
def python_many_record_files(place):
    wanted = [b"%d/%d" % (shard, number) for shard in range(16) for number in range(50)]
    for shard in range(16):
        write_records(place("part-%05d" % shard), wanted[50 * shard:50 * shard + 50])
    files = tf.data.Dataset.list_files(place("part-*"), shuffle=False)
    same("list_files", [name.decode() for name in values(files)], [place("part-%05d" % shard) for shard in range(16)])
    found = values(tf.data.TFRecordDataset(files, num_parallel_reads=8))
    same("the records", sorted(found), sorted(wanted))


@case
def python_text_lines(place):
    lines = ["first", "", "third: ünïcode", "x" * 70000, "no end"]
    write(place("a"), "\n".join(lines).encode())
    write(place("b"), gzip.compress(b"one\ntwo\n"))
    same("the lines", [line.decode() for line in values(tf.data.TextLineDataset(place("a")))], lines)
    small = tf.data.TextLineDataset([place("a"), place("a")], buffer_size=16)
    same("twice, with a small buffer", [line.decode() for line in values(small)], lines * 2)
    same("compressed", values(tf.data.TextLineDataset(place("b"), compression_type="GZIP")), [b"one", b"two"])
    fails("a missing file", NOT_FOUND, values, tf.data.TextLineDataset(place("missing")))


@case
def python_fixed_length_records(place):
    records = [payload(37, seed) for seed in range(200)]
    write(place("file"), b"HEAD" + b"".join(records) + b"FOOTER")
    for size in (None, 10, 1 << 20):
        dataset = tf.data.FixedLengthRecordDataset(place("file"), 37, header_bytes=4, footer_bytes=6, buffer_size=size)
        same("the records with buffer_size=%s" % size, values(dataset), records)


@case
def python_parallel_reads(place):
    for number in range(32):
        write(place("%02d" % number), payload(5000, number))
    files = tf.data.Dataset.list_files(place("*"), shuffle=False)
    same("the contents", values(files.map(tf.io.read_file, num_parallel_calls=16)), [payload(5000, n) for n in range(32)])


@case
def python_dataset_save(place):
    tf.data.Dataset.range(200).map(lambda n: {"n": n, "square": n * n}).save(place("saved"))
    loaded = tf.data.Dataset.load(place("saved"))
    same("the elements", [(int(e["n"]), int(e["square"])) for e in loaded], [(n, n * n) for n in range(200)])


@case
def python_dataset_cache(place):
    def pipeline():
        return tf.data.Dataset.range(100).map(lambda n: (n, tf.random.uniform([]))).cache(place("cache"))

    def numbers(dataset):
        return [(int(n), float(noise)) for n, noise in dataset]

    dataset = pipeline()
    first = numbers(dataset)
    same("the elements", [n for n, _ in first], list(range(100)))
    same("the second epoch, from the cache", numbers(dataset), first)
    same("another pipeline, from the cache", numbers(pipeline()), first)
    left = [name for name in gfile.listdir(place()) if "lockfile" in name]
    same("lock files that are left", left, [])


@case
def python_dataset_snapshot(place):
    def numbers():
        dataset = tf.data.Dataset.range(100).map(lambda n: (n, tf.random.uniform([]))).snapshot(place("snapshot"))
        return sorted((int(n), float(noise)) for n, noise in dataset)

    first = numbers()
    same("the second run, from the snapshot", numbers(), first)


@case
def python_checkpoint(place):
    big = np.random.default_rng(1).standard_normal((256, 1024)).astype(np.float32)
    saved = tf.train.Checkpoint(step=tf.Variable(7, dtype=tf.int64), big=tf.Variable(big), name=tf.Variable("x"))
    path = saved.save(place("model", "ckpt"))
    same("latest_checkpoint", tf.train.latest_checkpoint(place("model")), path)
    restored = tf.train.Checkpoint(
        step=tf.Variable(0, dtype=tf.int64), big=tf.Variable(np.zeros_like(big)), name=tf.Variable(""))
    restored.restore(path).assert_consumed()
    same("step", int(restored.step), 7)
    same("the matrix", restored.big.numpy().tobytes(), big.tobytes())
    same("name", restored.name.numpy(), b"x")
    same("the files", names(gfile.listdir(place("model"))), ["checkpoint", "ckpt-1.data-00000-of-00001", "ckpt-1.index"])
    fails("a missing checkpoint", NOT_FOUND, restored.read, place("model", "ckpt-9"))


@case
def python_checkpoint_manager(place):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), place("kept"), max_to_keep=2)
    for number in range(1, 5):
        step.assign(number)
        manager.save()
    wanted = ["checkpoint"] + ["ckpt-%d.%s" % (n, end) for n in (3, 4) for end in ("data-00000-of-00001", "index")]
    same("the files", names(gfile.listdir(place("kept"))), wanted)
    step.assign(0)
    same("restore_or_initialize", manager.restore_or_initialize(), place("kept", "ckpt-4"))
    same("step", int(step), 4)


class Affine(tf.Module):
    def __init__(self, words):
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.words_file = tf.saved_model.Asset(words)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        return tf.matmul(x, self.weight)

    @tf.function(input_signature=[])
    def words(self):
        return tf.io.read_file(self.words_file.asset_path)


@case
def python_saved_model(place):
    words = write(place("words.txt"), b"one\ntwo\n")
    tf.saved_model.save(Affine(words), place("export", "1"))
    gfile.remove(words)
    loaded = tf.saved_model.load(place("export", "1"))
    same("a product", loaded(tf.constant([[1.0, 1.0]])).numpy().tolist(), [[4.0, 6.0]])
    same("the asset", loaded.words().numpy(), b"one\ntwo\n")
    found = set(names(gfile.listdir(place("export", "1"))))
    holds("saved_model.pb, variables and assets are there", {"assets", "saved_model.pb", "variables"} <= found)


@case
def python_event_file(place):
    writer = tf.summary.create_file_writer(place("logs"))
    with writer.as_default():
        for step in range(20):
            tf.summary.write("loss", 1.0 / (step + 1), step=step)
    writer.close()
    paths = gfile.glob(place("logs", "events.out.tfevents.*"))
    same("event files", len(paths), 1)
    events = [event_pb2.Event.FromString(record) for record in values(tf.data.TFRecordDataset(paths))]
    steps = [event.step for event in events for value in event.summary.value if value.tag == "loss"]
    same("the steps", steps, list(range(20)))


@case
def python_event_file_grows(place):
    needs_visible_at_flush(place)
    writer = tf.summary.create_file_writer(place("logs"))
    with writer.as_default():
        for step in range(5):
            tf.summary.write("loss", 1.0, step=step)
            writer.flush()
            paths = gfile.glob(place("logs", "events.out.tfevents.*"))
            events = [event_pb2.Event.FromString(record) for record in values(tf.data.TFRecordDataset(paths))]
            seen = [event.step for event in events if event.HasField("summary")]
            same("the steps after a flush", seen, list(range(step + 1)))
    writer.close()


@case
def python_lookup_table(place):
    write(place("words"), b"apple\nbanana\ncherry\n")
    initializer = tf.lookup.TextFileInitializer(
        place("words"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    same("lines", table.lookup(tf.constant(["cherry", "durian", "apple"])).numpy().tolist(), [2, -1, 0])


@case
def python_memory_region(place):
    numbers = np.arange(4096, dtype=np.float32)
    write(place("constant"), numbers.tobytes())

    def constant(name):
        return tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[4096], memory_region_name=name).numpy()

    same("the constant", constant(place("constant")).tobytes(), numbers.tobytes())
    write(place("empty"), b"")
    fails("a missing file", NOT_FOUND, constant, place("missing"))
    fails("an empty file", errors.InvalidArgumentError, constant, place("empty"))


@case
def python_numpy_files(place):
    array = np.random.default_rng(9).standard_normal((100, 200))
    with gfile.GFile(place("array.npy"), "wb") as file:
        np.save(file, array)
    with gfile.GFile(place("array.npy"), "rb") as file:
        same("the array", np.load(file).tobytes(), array.tobytes())
    with gfile.GFile(place("pickle"), "wb") as file:
        pickle.dump({"array": array}, file, protocol=4)
    with gfile.GFile(place("pickle"), "rb") as file:
        same("the pickle", pickle.load(file)["array"].tobytes(), array.tobytes())


@case
def python_session(place):
    for number in range(8):
        write(place("file-%d" % number), payload(20000, number))
    with tf.Graph().as_default() as graph:
        name = tf.compat.v1.placeholder(tf.string)
        content = tf.io.read_file(name)
        copied = tf.io.write_file(place("copy"), content)
    with tf.compat.v1.Session(graph=graph) as session:

        def work(number):
            for _ in range(10):
                found = session.run(content, {name: place("file-%d" % number)})
                same("what a session reads", found, payload(20000, number))

        session.run(copied, {name: place("file-3")})
        same("what a session wrote", read(place("copy")), payload(20000, 3))
        fails("reading nothing in a session", NOT_FOUND, session.run, content, {name: place("missing")})
        in_threads(8, work)


# Threads ------------------------------------------------------------------------------------------------------


def in_threads(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, range(count)):
            pass


@case
def python_threads_read_one_file(place):
    data = write(place("file"), payload(1 << 20)) and payload(1 << 20)

    def work(thread):
        with gfile.GFile(place("file"), "rb") as file:
            for step in range(20):
                offset = (thread * 7919 + step * 104729) % len(data)
                file.seek(offset)
                same("a piece", file.read(5000), data[offset:offset + 5000])

    in_threads(8, work)


@case
def python_threads_with_files_of_their_own(place):
    def work(thread):
        own = place("file-%d" % thread)
        for step in range(8):
            data = payload(1000 * step + thread, thread)
            write(own, data)
            same("a file of one's own", read(own), data)
            gfile.rename(own, own + ".moved")
            gfile.copy(own + ".moved", own)
            gfile.remove(own + ".moved")
            holds("one's own file is listed", "file-%d" % thread in gfile.listdir(place()))

    in_threads(8, work)
    same("listdir", names(gfile.listdir(place())), ["file-%d" % thread for thread in range(8)])


@case
def python_threads_rename_onto_one_file(place):
    contents = [bytes([65 + thread]) * 50000 for thread in range(8)]

    def work(thread):
        for step in range(6):
            temporary = place("temporary-%d-%d" % (thread, step))
            write(temporary, contents[thread])
            gfile.rename(temporary, place("target"), overwrite=True)

    in_threads(8, work)
    holds("the target is one of the files, not a mixture", read(place("target")) in contents)
    same("listdir", names(gfile.listdir(place())), ["target"])


@case
def python_threads_make_one_tree(place):
    in_threads(8, lambda thread: gfile.makedirs(place("a", "b", "c", "of-%d" % thread)))
    same("listdir", names(gfile.listdir(place("a", "b", "c"))), ["of-%d" % thread for thread in range(8)])


main(json.loads(REQUEST))
