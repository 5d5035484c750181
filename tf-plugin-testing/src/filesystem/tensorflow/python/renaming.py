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
