"""Status codes of what must fail."""
import tensorflow as tf

from scenario.case import all_of, append, case, check, errors, fails, gfile, names, read, write

NOT_FOUND = errors.NotFoundError
FAILED_PRECONDITION = errors.FailedPreconditionError


def populate(place):
    gfile.makedirs(place("dir", "sub"))
    gfile.makedirs(place("empty"))
    write(place("file"), b"file")
    write(place("dir", "inner"), b"inner")


def implied(place, operation, *path):
    """Where nothing but the name itself counts, `operation` makes a file at `path` that can be read."""
    operation()
    assert gfile.exists(place(*path)), "%s was not made" % "/".join(path)
    check(gfile.stat(place(*path)).is_directory, False, "stat.is_directory of " + "/".join(path))


@case
def codes_of_opening(place):
    populate(place)
    if "hierarchy" in place.lacks:
        all_of(
            lambda: fails(NOT_FOUND, read, place("missing")),
            lambda: fails(NOT_FOUND, read, place("missing", "file")),
            lambda: fails(FAILED_PRECONDITION, tf.io.read_file, place("dir")),
            lambda: fails(NOT_FOUND, tf.io.read_file, place("file", "below")),
            lambda: implied(place, lambda: write(place("missing", "file"), b"x"), "missing", "file"),
            lambda: implied(place, lambda: write(place("file", "below"), b"x"), "file", "below"),
            lambda: implied(place, lambda: append(place("new", "appended"), b"x"), "new", "appended"),
            lambda: implied(place, lambda: append(place("file", "appended"), b"x"), "file", "appended"),
            lambda: implied(place, lambda: write(place("dir"), b"beside"), "dir"),
            lambda: check(read(place("file")), b"file", "the file with others below it"),
            lambda: check((read(place("dir")), read(place("dir", "inner"))), (b"beside", b"inner"), "both"),
        )
        check(names(gfile.listdir(place())), ["dir", "empty", "file", "missing", "new"], "the listing afterwards")
        return
    all_of(
        lambda: fails(NOT_FOUND, read, place("missing")),
        lambda: fails(NOT_FOUND, read, place("missing", "file")),
        lambda: fails(FAILED_PRECONDITION, tf.io.read_file, place("dir")),
        lambda: fails(FAILED_PRECONDITION, tf.io.read_file, place("file", "below")),
        lambda: fails(NOT_FOUND, write, place("missing", "file"), b""),
        lambda: fails(FAILED_PRECONDITION, write, place("dir"), b""),
        lambda: fails(FAILED_PRECONDITION, write, place("file", "below"), b""),
        lambda: fails(NOT_FOUND, append, place("missing", "file"), b""),
        lambda: fails(FAILED_PRECONDITION, append, place("dir"), b""),
        lambda: fails(FAILED_PRECONDITION, append, place("file", "below"), b""),
    )
    check(names(gfile.listdir(place())), ["dir", "empty", "file"], "the listing afterwards")
    check(read(place("file")), b"file", "the file afterwards")


@case
def codes_of_directories(place):
    populate(place)
    if "hierarchy" in place.lacks:
        for path in (("missing", "child"), ("file", "child")):
            gfile.mkdir(place(*path))
            check(gfile.isdir(place(*path)), True, "isdir of " + "/".join(path))
        gfile.makedirs(place("file", "other", "grandchild"))
        check(gfile.isdir(place("file", "other", "grandchild")), True, "isdir of a directory below a file")
        fails(FAILED_PRECONDITION, gfile.makedirs, place("dir", "inner"))
        gfile.mkdir(place("dir", "inner"))
        gfile.makedirs(place("dir", "sub"))
        check((gfile.isdir(place("dir", "inner")), read(place("dir", "inner"))), (False, b"inner"), "a file that stays one")
        check(read(place("file")), b"file", "the file with directories below it")
        return
    all_of(
        lambda: fails(NOT_FOUND, gfile.mkdir, place("missing", "child")),
        lambda: fails(FAILED_PRECONDITION, gfile.mkdir, place("file", "child")),
        lambda: fails(FAILED_PRECONDITION, gfile.makedirs, place("file")),
        lambda: fails(FAILED_PRECONDITION, gfile.makedirs, place("file", "child")),
        lambda: fails(FAILED_PRECONDITION, gfile.makedirs, place("file", "child", "grandchild")),
        # ALREADY_EXISTS is swallowed by TensorFlow; the file must stay one.
        lambda: gfile.mkdir(place("file")),
        lambda: gfile.makedirs(place("dir", "sub")),
    )
    check((gfile.isdir(place("file")), read(place("file"))), (False, b"file"), "the file afterwards")


@case
def codes_of_deleting(place):
    populate(place)
    below = NOT_FOUND if "hierarchy" in place.lacks else FAILED_PRECONDITION
    all_of(
        lambda: fails(NOT_FOUND, gfile.remove, place("missing")),
        lambda: fails(NOT_FOUND, gfile.remove, place("missing", "file")),
        lambda: fails(FAILED_PRECONDITION, gfile.remove, place("dir")),
        lambda: fails(FAILED_PRECONDITION, gfile.remove, place("empty")),
        lambda: fails(below, gfile.remove, place("file", "below")),
        lambda: fails(NOT_FOUND, gfile.rmtree, place("missing")),
        lambda: fails(below, gfile.rmtree, place("file", "below")),
    )
    check(names(gfile.listdir(place())), ["dir", "empty", "file"], "the listing afterwards")
    gfile.rmtree(place("file"))
    gfile.rmtree(place("empty"))
    check(names(gfile.listdir(place())), ["dir"], "the listing after rmtree of a file and of an empty directory")


@case
def codes_of_rename_and_copy(place):
    populate(place)

    def both(kind, source, target):
        for operation in (gfile.rename, gfile.copy):
            fails(kind, operation, source, target, overwrite=True)

    if "hierarchy" in place.lacks:
        all_of(
            lambda: both(NOT_FOUND, place("missing"), place("new")),
            lambda: both(NOT_FOUND, place("missing", "file"), place("new")),
            lambda: both(NOT_FOUND, place("missing"), place("file")),
            lambda: both(NOT_FOUND, place("file", "below"), place("new")),
            lambda: fails(FAILED_PRECONDITION, gfile.copy, place("dir"), place("new")),
            lambda: implied(place, lambda: gfile.copy(place("file"), place("missing", "new")), "missing", "new"),
            lambda: implied(place, lambda: gfile.rename(place("missing", "new"), place("file", "below")), "file", "below"),
        )
        # What is wanted of a store: the whole directory goes.
        gfile.rename(place("dir"), place("moved"))
        gfile.rename(place("empty"), place("moved-empty"))
        check(names(gfile.listdir(place())), ["file", "moved", "moved-empty"], "the listing afterwards")
        check((names(gfile.listdir(place("moved"))), read(place("moved", "inner"))), (["inner", "sub"], b"inner"), "moved")
        check((read(place("file")), read(place("file", "below"))), (b"file", b"file"), "the files")
        return
    all_of(
        lambda: both(NOT_FOUND, place("missing"), place("new")),
        lambda: both(NOT_FOUND, place("missing", "file"), place("new")),
        lambda: both(NOT_FOUND, place("missing"), place("file")),
        lambda: both(NOT_FOUND, place("file"), place("missing", "new")),
        lambda: both(FAILED_PRECONDITION, place("dir"), place("new")),
        lambda: both(FAILED_PRECONDITION, place("empty"), place("new")),
        lambda: both(FAILED_PRECONDITION, place("file"), place("dir")),
        lambda: both(FAILED_PRECONDITION, place("file"), place("empty")),
        lambda: both(FAILED_PRECONDITION, place("file", "below"), place("new")),
        lambda: both(FAILED_PRECONDITION, place("dir", "inner"), place("file", "below")),
        lambda: both(FAILED_PRECONDITION, place("file"), place("file", "below")),
    )
    check(names(gfile.listdir(place())), ["dir", "empty", "file"], "the listing afterwards")
    check(gfile.listdir(place("empty")), [], "the empty directory afterwards")
    check((read(place("file")), read(place("dir", "inner"))), (b"file", b"inner"), "the files afterwards")


@case
def codes_of_queries(place):
    populate(place)
    hierarchy = "hierarchy" not in place.lacks
    all_of(
        lambda: check(gfile.exists(place("missing", "deeper")), False, "exists below nothing"),
        lambda: fails(FAILED_PRECONDITION, gfile.exists, place("file", "below")) if hierarchy
        else check(gfile.exists(place("file", "below")), False, "exists below a file"),
        lambda: fails(NOT_FOUND, gfile.stat, place("missing")),
        lambda: fails(FAILED_PRECONDITION if hierarchy else NOT_FOUND, gfile.stat, place("file", "below")),
        lambda: check(gfile.isdir(place("file", "below")), False, "isdir below a file"),
        lambda: fails(NOT_FOUND, gfile.listdir, place("missing")),
        # TensorFlow calls is_directory first and reports every refusal so.
        lambda: fails(NOT_FOUND, gfile.listdir, place("file")),
        lambda: check(list(gfile.walk(place("file"))), [], "walk of a file"),
    )
