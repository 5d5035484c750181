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
