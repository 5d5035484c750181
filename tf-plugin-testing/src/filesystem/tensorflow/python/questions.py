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
