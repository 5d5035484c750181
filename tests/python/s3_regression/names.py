"""Names of objects and directories: which one is meant, moved or listed."""
from s3_common import check, fails
from s3_regression.case import case, gfile, read, tensorflow, write


@case("rename of `ckpt-1` moves `ckpt-10` and `ckpt-1.meta` too: it lists by bare prefix")
def rename_takes_its_neighbours_along(place):
    for name in ("ckpt-1", "ckpt-10", "ckpt-1.meta", "ckpt-1/inside"):
        write(place(name), name.encode())
    gfile().rename(place("ckpt-1"), place("moved"))
    check(place.stored(), ["ckpt-1.meta", "ckpt-1/inside", "ckpt-10", "moved"], "the keys")
    check(read(place("moved")), b"ckpt-1", "the content")


@case("rename of `big` to `bigger` destroys `bigger` where it begins with the source's name")
def rename_to_a_name_with_the_same_beginning(place):
    write(place("big2"), b"source")
    write(place("big2c"), b"old")
    write(place("big2cd"), b"neighbour")
    gfile().rename(place("big2"), place("big2c"), overwrite=True)
    check(place.stored(), ["big2c", "big2cd"], "the keys")
    check((read(place("big2c")), read(place("big2cd"))), (b"source", b"neighbour"), "the contents")


@case("rename of a missing file succeeds")
def rename_of_nothing(place):
    write(place("nothing-10"), b"neighbour")
    fails(tensorflow().errors.NotFoundError, [place("nothing-1")], gfile().rename, place("nothing-1"), place("x"))
    check(place.stored(), ["nothing-10"], "the keys")


@case("remove of a missing file succeeds")
def remove_of_nothing(place):
    fails(tensorflow().errors.NotFoundError, [place("nothing")], gfile().remove, place("nothing"))


@case("copy and rename of an empty file: FAILED_PRECONDITION 'Source is a directory or empty file' (io#1816)")
def copy_and_rename_of_an_empty_file(place):
    write(place("empty"), b"")
    gfile().copy(place("empty"), place("copy"))
    gfile().rename(place("copy"), place("moved"))
    check(place.stored(), ["empty", "moved"], "the keys")
    check((read(place("moved")), gfile().stat(place("moved")).length), (b"", 0), "the content and length")


@case("rename of a directory with a marker stops half-way (tf#61364, tf#60165)")
def rename_of_a_directory(place):
    gfile().makedirs(place("dir"))
    gfile().makedirs(place("dir", "empty"))
    for name in ("dir/a", "dir/sub/b", "dir-other/c"):
        write(place(name), name.encode())
    gfile().rename(place("dir"), place("new"))
    check(place.stored(), ["dir-other/c", "new/", "new/a", "new/empty/", "new/sub/b"], "the keys")
    check((gfile().exists(place("dir")), gfile().isdir(place("new", "empty"))), (False, True), "what is where")


@case("mkdir writes its marker only if the directory exists already: isdir after mkdir is False (datasets#4728)")
def mkdir_makes_no_directory(place):
    gfile().mkdir(place("one"))
    gfile().makedirs(place("two", "three"))
    for name in ("one", "two", "two/three"):
        check(gfile().isdir(place(name)), True, "isdir(%s)" % name)
    check(gfile().listdir(place("one")), [], "the listing of a new directory")
    check("one/" in place.stored(), True, "the marker is there for other programs")


@case("a file that is opened for writing and closed without a write is not made")
def an_empty_file_is_made(place):
    # TensorFlow itself opens a GFile at the first write only.
    with gfile().GFile(place("w"), "wb") as file:
        file.write(b"")
    with gfile().GFile(place("a"), "ab") as file:
        file.write(b"")
    tensorflow().io.write_file(place("op"), b"")
    with tensorflow().io.TFRecordWriter(place("records")):
        pass
    check(place.stored(), ["a", "op", "records", "w"], "the keys")


@case("an object `fp` beside `fp/x` is a directory of length 0, and reading it gives nothing")
def an_object_beside_a_directory(place):
    write(place("fp"), b"content")
    write(place("fp", "x"), b"inside")
    stat = gfile().stat(place("fp"))
    check((stat.is_directory, stat.length), (False, 7), "stat")
    check((read(place("fp")), read(place("fp", "x"))), (b"content", b"inside"), "the contents")
    gfile().remove(place("fp"))
    check((place.stored(), gfile().isdir(place("fp"))), (["fp/x"], True), "what is left")


@case("a key with `//` is read from and written to another key")
def a_key_with_two_slashes(place):
    write(place("a//b"), b"two")
    write(place("a/b"), b"one")
    check(place.stored(), ["a//b", "a/b"], "the keys")
    check((read(place("a//b")), read(place("a/b"))), (b"two", b"one"), "the contents")
    gfile().remove(place("a//b"))
    check(place.stored(), ["a/b"], "the keys after the removal")


@case("keys with `=` and other signs that are common in Hive-style names fail (tf#28921)")
def keys_with_signs(place):
    names = ["year=2026/part 1", "a+b", "50%", "%41", "q?x#y", "tilde~", "ä/ö"]
    for name in names:
        write(place(name), name.encode())
    check(sorted(place.stored()), sorted(names), "the keys")
    for name in names:
        check(read(place(name)), name.encode(), "the content of " + name)


@case("listdir of `s3://bucket` without a slash at the end: NotFound (tf#36893)")
def listdir_of_a_bucket(place):
    write(place("x"), b"")
    top = place.key.split("/")[0]
    for uri in ("s3://" + place.bucket, "s3://" + place.bucket + "/"):
        check(top in [name.rstrip("/") for name in gfile().listdir(uri)], True, "%s in listdir(%s)" % (top, uri))
        check(gfile().isdir(uri), True, "isdir(%s)" % uri)
