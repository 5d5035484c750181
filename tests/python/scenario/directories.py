"""Directories, patterns and names."""
import contextlib
import os
import time

import tensorflow as tf

from scenario.case import NotApplicable, all_of, case, check, errors, fails, gfile, names, read, values, write


@case
def directories(place):
    gfile.mkdir(place("a"))
    check((gfile.exists(place("a")), gfile.isdir(place("a"))), (True, True), "a made directory")
    gfile.mkdir(place("a"))  # TensorFlow swallows ALREADY_EXISTS here.
    check(gfile.listdir(place("a")), [], "an empty listing")
    gfile.makedirs(place("a", "b", "c"))
    gfile.makedirs(place("a", "b", "c"))
    write(place("a", "file"), b"1234")
    check(names(gfile.listdir(place("a"))), ["b", "file"], "a listing")
    stat = gfile.stat(place("a", "file"))
    check((stat.length, stat.is_directory), (4, False), "stat of a file")
    # Nanoseconds; a filesystem without times says 0.
    assert stat.mtime_nsec == 0 or abs(stat.mtime_nsec / 1e9 - time.time()) < 3600, stat.mtime_nsec
    check(gfile.stat(place("a")).is_directory, True, "stat of a directory")
    check(gfile.isdir(place("a", "file")), False, "isdir of a file")
    check(gfile.isdir(place("missing")), False, "isdir of nothing")
    check(gfile.exists(place("missing")), False, "exists of nothing")
    check(gfile.isdir(place("a/")), True, "isdir with / at the end")
    check(names(gfile.listdir(place("a/"))), ["b", "file"], "listdir with / at the end")
    if "normal_form" in place.lacks:
        check(gfile.isdir(place("a//")), False, "isdir with // at the end")
        check(gfile.exists(place("a", "", "b", ".", "..", "file")), False, "a path with //, . and ..")
    else:
        check(gfile.isdir(place("a//")), True, "isdir with // at the end")
        check(names(gfile.listdir(place("a//"))), ["b", "file"], "listdir with // at the end")
        check(gfile.exists(place("a", "", "b", ".", "..", "file")), True, "a path with //, . and ..")
    gfile.remove(place("a", "file"))
    check(gfile.isdir(place("a")), True, "the parent of a removed file")
    gfile.rmtree(place("a", "b"))
    check((gfile.exists(place("a", "b")), gfile.isdir(place("a"))), (False, True), "after rmtree, and its parent")
    gfile.rmtree(place("a"))
    check(gfile.exists(place("a")), False, "after rmtree")


@case
def walk_and_glob(place):
    for path in ("top.txt", "a/one.txt", "a/two.csv", "a/deep/three.txt", "b/four.txt", "ab/five.txt"):
        gfile.makedirs(os.path.dirname(place(path)))
        write(place(path), path.encode())
    gfile.makedirs(place("empty"))

    def tree(**options):
        return [
            (top.rstrip("/")[len(place()) :].strip("/"), names(dirs), sorted(files))
            for top, dirs, files in gfile.walk(place(), **options)
        ]

    expected = [
        ("", ["a", "ab", "b", "empty"], ["top.txt"]),
        ("a", ["deep"], ["one.txt", "two.csv"]),
        ("a/deep", [], ["three.txt"]),
        ("ab", [], ["five.txt"]),
        ("b", [], ["four.txt"]),
        ("empty", [], []),
    ]
    top_down, bottom_up = tree(), tree(topdown=False)
    check(sorted(top_down), expected, "walk")
    check(top_down[0][0], "", "the first directory, top down")
    check(sorted(bottom_up), expected, "walk, bottom up")
    check(bottom_up[-1][0], "", "the last directory, bottom up")
    check(list(gfile.walk(place("missing"))), [], "walk of nothing")

    def globbed(pattern):
        found = gfile.glob(place(pattern))
        for path in found:
            assert path.startswith(place() + "/"), "%s does not start as the pattern does" % path
        return sorted(path[len(place()) + 1 :] for path in found)

    all_of(
        lambda: check(globbed("*"), ["a", "ab", "b", "empty", "top.txt"], "glob *"),
        lambda: check(globbed("*/*.txt"), ["a/one.txt", "ab/five.txt", "b/four.txt"], "glob */*.txt"),
        lambda: check(globbed("a/*"), ["a/deep", "a/one.txt", "a/two.csv"], "glob a/*"),
        lambda: check(globbed("?"), ["a", "b"], "glob ?"),
        lambda: check(globbed("[ab]"), ["a", "b"], "glob [ab]"),
        lambda: check(globbed("[^b]/*.txt"), ["a/one.txt"], "glob [^b]/*.txt"),
        lambda: check(globbed("[a-c]*/f*"), ["ab/five.txt", "b/four.txt"], "glob [a-c]*/f*"),
        lambda: check(globbed("*/deep/*"), ["a/deep/three.txt"], "glob */deep/*"),
        lambda: check(globbed("top.txt"), ["top.txt"], "glob without a wildcard, a file"),
        lambda: check(globbed("a"), ["a"], "glob without a wildcard, a directory"),
        lambda: check(globbed("missing"), [], "glob without a wildcard, nothing"),
        lambda: check(globbed("*.no"), [], "glob without a match"),
        lambda: check(globbed("missing/*"), [], "glob in a missing directory"),
        lambda: check(globbed("top.txt/*"), [], "glob below a file"),
        lambda: check(
            sorted(gfile.glob([place("a/*.csv"), place("b/*")])),
            [place("a/two.csv"), place("b/four.txt")],
            "glob of two patterns",
        ),
    )


ODD_NAMES = [
    "with space", " leading", "trailing ", "zażółć gęślą jaźń", "日本語", "🦀🔥", "e\u0301 combining", "100%", "%41",
    "%2F", "a+b", "a&b=c", "hash#tag", "semi;colon", "comma,", "colon:", "at@sign", "quote'\"", "dollar$HOME",
    "tilde~", "back`tick", "(round)", "{curly}", "<angle>", "pipe|", "-dash", "...", ".hidden", "tab\there",
]
PATTERN_NAMES = ["[bracket]", "[a-z]", "question?", "star*", "back\\slash"]


@case
def odd_names(place):
    for name in ODD_NAMES + PATTERN_NAMES:
        write(place(name), name.encode())
    check(names(gfile.listdir(place())), sorted(ODD_NAMES + PATTERN_NAMES), "the listing")
    for name in ODD_NAMES + PATTERN_NAMES:
        path = place(name)
        check(gfile.exists(path), True, "exists(%r)" % name)
        check(read(path), name.encode(), "the content of %r" % name)
        check(gfile.stat(path).length, len(name.encode()), "the length of %r" % name)
    check(len(gfile.glob(place("*"))), len(ODD_NAMES) + len(PATTERN_NAMES), "number of names matching *")
    for name in ODD_NAMES:
        check(gfile.glob(place(name)), [place(name)], "glob of %r" % name)
    check(gfile.glob(place("*本*")), [place("日本語")], "glob with a pattern that is not ASCII")
    for name in ODD_NAMES + PATTERN_NAMES:
        gfile.makedirs(place("dirs", name))
        gfile.rename(place(name), place("dirs", name, name))
    check(names(gfile.listdir(place())), ["dirs"], "the listing after the renames")
    found = sorted(top.rstrip("/") for top, _, _ in gfile.walk(place("dirs")))
    check(found, sorted([place("dirs")] + [place("dirs", name) for name in ODD_NAMES + PATTERN_NAMES]), "walk")


@case
def escaped_patterns(place):
    for name in PATTERN_NAMES + ["b", "questionX", "starlight"]:
        write(place(name), b"")
    all_of(
        lambda: check(gfile.glob(place("\\[bracket]")), [place("[bracket]")], "an escaped ["),
        lambda: check(gfile.glob(place("question\\?")), [place("question?")], "an escaped ?"),
        lambda: check(gfile.glob(place("sta*\\*")), [place("star*")], "an escaped *"),
        lambda: check(gfile.glob(place("*\\\\*")), [place("back\\slash")], "an escaped backslash"),
        lambda: check(sorted(gfile.glob(place("question?"))), [place("question?"), place("questionX")], "a plain ?"),
    )


@case
def names_not_utf8(place):
    # Python's file objects insist on UTF-8; the ops and half of gfile take bytes.
    base = place().encode()
    one, two = base + b"/a\xff\xfe", base + b"/a\xc3"
    try:
        tf.io.write_file(one, b"one")
    except (errors.FailedPreconditionError, errors.InvalidArgumentError) as error:
        # Refusing is fine if nothing was made and the message can be read.
        assert error.message, "no message"
        check(gfile.listdir(place()), [], "the listing after the refusal")
        return
    tf.io.write_file(two, b"two")
    check(tf.io.read_file(one).numpy(), b"one", "the first file")
    check(tf.io.read_file(two).numpy(), b"two", "the second file (their names differ in bytes that are not UTF-8)")
    check((gfile.exists(one), gfile.exists(base + b"/a\xfe")), (True, False), "exists")
    check(sorted(tf.io.matching_files(base + b"/a*").numpy().tolist()), sorted([one, two]), "matching_files")
    gfile.remove(one)
    check((gfile.exists(one), gfile.exists(two)), (False, True), "after removing the first")
    gfile.remove(two)


@case
def embedded_nul(place):
    # The host hands C strings to plugins, so a path ends at its first NUL.
    write(place("a"), b"content")
    check(gfile.exists(place("a\0no")), True, "exists of a name with a NUL")
    check(gfile.stat(place("a\0no")).length, 7, "stat of a name with a NUL")
    check(gfile.exists(place("\0")), True, "exists of the directory and a NUL")
    tf.io.write_file(place("b\0hidden"), b"x")
    check(names(gfile.listdir(place())), ["a", "b"], "the listing")


@case
def long_path(place):
    path = place("x" * (1 << 20))
    try:
        check(gfile.exists(path), False, "exists")
    except errors.OpError as error:
        assert error.message, "no message"
    for attempt in (gfile.isdir, gfile.glob):
        with contextlib.suppress(errors.OpError):
            assert not attempt(path), attempt
    try:
        write(path, b"x")
    except errors.OpError:
        check(gfile.listdir(place()), [], "the listing after the refusal")
    else:
        check(read(path), b"x", "the content")
        check(gfile.listdir(place()), ["x" * (1 << 20)], "the listing")
    segments = "/".join(["deep"] * 200000)
    with contextlib.suppress(errors.OpError):
        check(gfile.exists(place(segments)), False, "exists of 200,000 segments")


def exact_names(place):
    """Names that are not paths: each is another one, however it is spelt."""
    spellings = ["file", "./file", "sub/../file", "sub//file", "sub/./file", "../file", "sub/.."]
    for name in spellings:
        write(place(name), name.encode())
    for name in spellings:
        check(read(place(name)), name.encode(), "the content of " + name)
    for name in spellings:
        gfile.remove(place(name))
        check(gfile.exists(place(name)), False, "exists of %s after the removal" % name)
    # None of it leads anywhere else.
    for climbing in ("/.." * 40 + place.path, "/.." * 40 + "/etc/passwd"):
        check(gfile.exists(place.authority + climbing), False, "exists of " + climbing)
    elsewhere = "%s://other/../%s%s/file" % (place.scheme, place.host, place.path)
    write(place("file"), b"here")
    with contextlib.suppress(errors.OpError):
        check(gfile.exists(elsewhere), False, "a climb from one host into another")


@case
def dot_dot(place):
    if "normal_form" in place.lacks:
        exact_names(place)
        return
    gfile.makedirs(place("sub"))
    write(place("sub", "..", "file"), b"here")
    check(read(place("file")), b"here", "a file written by way of ..")
    check(read(place(".", "sub", ".", "..", "", "file")), b"here", "., .. and // in a path")
    check(names(gfile.listdir(place("sub", ".."))), ["file", "sub"], "listdir of ..")
    # Above the root there is the root, never another host and never the machine's own files.
    climbing = place.authority + "/.." * 40 + place.path
    check(read(climbing + "/file"), b"here", "a file reached by .. beyond the root")
    write(climbing + "/sub/other", b"there")
    check(read(place("sub", "other")), b"there", "a file written by .. beyond the root")
    for secret in ("/etc/passwd", "/proc/self/environ"):
        check(
            gfile.exists(place.authority + "/.." * 40 + secret),
            gfile.exists(place.authority + secret),
            "exists of %s with and without .." % secret,
        )
    if place.host:
        elsewhere = "%s://other/../%s%s/file" % (place.scheme, place.host, place.path)
        with contextlib.suppress(errors.OpError):
            check(gfile.exists(elsewhere), False, "a climb from one host into another")


@case
def glob_with_wildcard_host(place):
    if not place.scheme:
        raise NotApplicable("the root %s has no host part" % place.base)
    write(place("y"), b"")
    for pattern in ("*/y", "b*/y", "*", "?ox/*", "[b]*/*/y", "**", "*/", "/*"):
        try:
            found = gfile.glob(place.scheme + "://" + pattern)
        except errors.OpError as error:
            assert error.message, pattern
        else:
            for path in found:
                assert path.startswith(place.scheme + "://"), path


@case
def deep_directories(place):
    depth = 300
    deep = place(*["d"] * depth)
    gfile.makedirs(deep)
    write(deep + "/leaf", b"deep")
    check(read(deep + "/leaf"), b"deep", "the content")
    check(sum(1 for _ in gfile.walk(place("d"))), depth, "number of directories")
    gfile.rmtree(place("d"))
    check(gfile.listdir(place()), [], "the listing at the end")


@case
def many_files(place):
    gfile.makedirs(place("many"))
    expected = ["file-%04d" % number for number in range(2000)]
    for name in expected:
        write(place("many", name), name.encode())
    check(names(gfile.listdir(place("many"))), expected, "the listing")
    check(len(gfile.glob(place("many", "*7"))), 200, "number of names matching *7")
    dataset = tf.data.Dataset.list_files(place("many", "file-*"), shuffle=False).map(
        tf.io.read_file, num_parallel_calls=8
    )
    check([data.decode() for data in values(dataset)], expected, "the contents")
    gfile.rmtree(place("many"))
    check(gfile.listdir(place()), [], "the listing at the end")


@case
def overwrite_flags(place):
    write(place("src"), b"source")
    write(place("dst"), b"an older and longer destination")
    for operation in (gfile.copy, gfile.rename):
        fails(errors.AlreadyExistsError, operation, place("src"), place("dst"))
        fails(errors.AlreadyExistsError, operation, place("src"), place("dst"), overwrite=False)
        check(
            (read(place("src")), read(place("dst"))), (b"source", b"an older and longer destination"), "both files"
        )
    gfile.copy(place("src"), place("dst"), overwrite=True)
    check((read(place("src")), read(place("dst"))), (b"source", b"source"), "after the copy")
    write(place("dst"), b"something else that is longer")
    gfile.rename(place("src"), place("dst"), overwrite=True)
    check((gfile.exists(place("src")), read(place("dst"))), (False, b"source"), "after the rename")
    gfile.rename(place("dst"), place("new"))
    check(names(gfile.listdir(place())), ["new"], "the listing")
    # ckpt-1 must not take ckpt-10 along.
    write(place("ckpt-1"), b"1")
    write(place("ckpt-10"), b"10")
    gfile.rename(place("ckpt-1"), place("moved"))
    check(names(gfile.listdir(place())), ["ckpt-10", "moved", "new"], "the neighbours of a renamed file")
