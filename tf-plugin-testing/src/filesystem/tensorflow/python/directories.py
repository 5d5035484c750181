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
