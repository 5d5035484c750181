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
