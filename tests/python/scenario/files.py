"""Contents of files: reading, writing, copying, and many threads at once."""
import concurrent.futures
import hashlib
import os
import pickle
import random

import numpy as np
import tensorflow as tf

from scenario.case import all_of, append, case, check, errors, fails, gfile, names, payload, read, values, write


@case
def gfile_read_write(place):
    path = place("text.txt")
    with gfile.GFile(path, "w") as file:
        file.write("first line\n")
        check(file.tell(), 11, "tell while writing")
        file.write("zweite Zeile: äöü\n")
        file.flush()
        file.write("third")
    whole = "first line\nzweite Zeile: äöü\nthird"
    with gfile.GFile(path) as file:
        check(file.size(), len(whole.encode()), "size")
        check(file.read(), whole, "read()")
        check(file.read(), "", "read() at the end")
    with gfile.GFile(path) as file:
        check(file.readline(), "first line\n", "readline()")
        check(file.tell(), 11, "tell after readline")
        check(list(file), ["zweite Zeile: äöü\n", "third"], "the other lines")
        file.seek(0)
        check(file.readlines(), whole.splitlines(keepends=True), "readlines()")
        check(file.readline(), "", "readline() at the end")
    with gfile.GFile(path, "rb") as file:
        check(file.read(5), b"first", "read(5)")
        check(file.tell(), 5, "tell")
        file.seek(6)
        check(file.read(4), b"line", "read(4) after seek(6)")
        file.seek(-5, 2)
        check(file.read(), b"third", "read() after seek(-5, 2)")
        file.seek(0)
        file.seek(2, 1)
        check(file.read(3), b"rst", "read(3) after a relative seek")
        check(file.seekable(), True, "seekable")


@case
def gfile_append(place):
    path = place("log")
    append(path, b"one")
    check(read(path), b"one", "after appending to a missing file")
    for number in range(20):
        append(path, b",%d" % number)
    check(read(path), b"one" + b"".join(b",%d" % n for n in range(20)), "after twenty rounds")
    with gfile.GFile(path, "ab") as file:
        file.write(b";a")
        file.flush()
        check(read(path)[-2:], b";a", "a flushed piece, seen by another reader")
        file.write(b";b")
    check(read(path)[-4:], b";a;b", "both pieces")
    append(path, b"")
    check(read(path)[-4:], b";a;b", "after appending nothing")


@case
def write_over_existing(place):
    path = write(place("file"), payload(100000))
    write(path, b"short")
    check(read(path), b"short", "the content")
    check(gfile.stat(path).length, 5, "the length")
    write(path, b"")
    check((read(path), gfile.stat(path).length), (b"", 0), "the content after writing nothing")


@case
def empty_files(place):
    path = write(place("empty"), b"")
    check(gfile.exists(path), True, "exists")
    check(gfile.stat(path).length, 0, "length")
    check(gfile.stat(path).is_directory, False, "is_directory")
    check(read(path), b"", "GFile.read")
    with gfile.GFile(path) as file:
        check((file.readline(), file.size(), list(file)), ("", 0, []), "readline, size, iteration")
    check(tf.io.read_file(path).numpy(), b"", "tf.io.read_file")
    check(values(tf.data.TextLineDataset(path)), [], "TextLineDataset")
    check(values(tf.data.TFRecordDataset(path)), [], "TFRecordDataset")
    gfile.copy(path, place("copy"))
    check((gfile.exists(place("copy")), read(place("copy"))), (True, b""), "the copy")
    gfile.rename(place("copy"), place("moved"))
    check((gfile.exists(place("copy")), read(place("moved"))), (False, b""), "the renamed copy")
    tf.io.write_file(place("by_op"), b"")
    check(read(place("by_op")), b"", "tf.io.write_file of nothing")


@case
def open_writer_is_visible(place):
    path = place("pending")
    writer = gfile.GFile(path, "wb")
    writer.write(b"12345")
    all_of(
        lambda: check(gfile.exists(path), True, "exists"),
        lambda: check(gfile.stat(path).is_directory, False, "stat.is_directory"),
        lambda: check(names(gfile.listdir(place())), ["pending"], "listdir"),
        lambda: check(gfile.glob(place("p*")), [path], "glob"),
    )
    writer.flush()
    check(read(path), b"12345", "the flushed bytes")
    writer.write(b"678")
    writer.close()
    writer.close()
    check(read(path), b"12345678", "everything after close")
    # A file object that is only dropped, as on an error path, still leaves a file.
    dropped = gfile.GFile(place("dropped"), "wb")
    dropped.write(b"x")
    del dropped
    check(gfile.exists(place("dropped")), "unclosed_files" not in place.lacks, "exists after dropping the writer")


@case
def read_write_ops(place):
    data = payload(3000000)
    path = place("new", "directory", "file")
    tf.io.write_file(path, data)
    check(tf.io.read_file(path).numpy() == data, True, "the content")
    check(gfile.isdir(place("new", "directory")), True, "the made directory")
    for name in ("b1", "b2", "c1"):
        tf.io.write_file(place(name), name)
    check(
        [name.decode() for name in tf.io.matching_files(place("b?")).numpy()],
        [place("b1"), place("b2")],
        "matching_files",
    )
    check(tf.io.matching_files([place("c*"), place("z*")]).numpy().tolist(), [place("c1").encode()])
    fails(errors.NotFoundError, tf.io.read_file, place("missing"))


@case
def numpy_files(place):
    array = np.random.default_rng(9).standard_normal((200, 300))
    with gfile.GFile(place("array.pickle"), "wb") as file:
        pickle.dump({"array": array, "name": "x"}, file, protocol=4)
    with gfile.GFile(place("array.pickle"), "rb") as file:
        loaded = pickle.load(file)
    assert np.array_equal(loaded["array"], array) and loaded["name"] == "x", "the pickle differs"
    with gfile.GFile(place("array.npy"), "wb") as file:
        np.save(file, array)
    with gfile.GFile(place("array.npy"), "rb") as file:
        assert np.array_equal(np.load(file), array), "the .npy file differs"


@case
def large_file(place):
    chunk = 1 << 20
    pieces = 64
    path = place("large")
    written = hashlib.sha256()
    with gfile.GFile(path, "wb") as file:
        for number in range(pieces):
            data = payload(chunk, number)
            written.update(data)
            file.write(data)
    check(gfile.stat(path).length, pieces * chunk, "the length")
    seen = hashlib.sha256()
    with gfile.GFile(path, "rb") as file:
        while True:
            data = file.read(3 * chunk + 17)
            if not data:
                break
            seen.update(data)
        check(seen.hexdigest(), written.hexdigest(), "the checksum by pieces")
        file.seek(37 * chunk)
        check(file.read(chunk) == payload(chunk, 37), True, "a piece in the middle")
    check(hashlib.sha256(tf.io.read_file(path).numpy()).hexdigest(), written.hexdigest(), "by tf.io.read_file")
    gfile.copy(path, place("copy"))
    check(hashlib.sha256(read(place("copy"))).hexdigest(), written.hexdigest(), "the checksum of the copy")


@case
def concurrent_threads(place):
    gfile.makedirs(place("shared"))
    common = payload(1 << 20, 99)
    write(place("common"), common)

    def work(thread):
        rng = random.Random(thread)
        own = place("shared", "thread-%02d" % thread)
        for round_number in range(10):
            data = payload(rng.randrange(1, 60000), thread * 100 + round_number)
            write(own, data)
            check(read(own) == data, True, "own file of thread %d" % thread)
            append(own, b"tail")
            check(read(own) == data + b"tail", True, "own file of thread %d after an append" % thread)
            with gfile.GFile(place("common"), "rb") as file:
                offset = rng.randrange(len(common))
                file.seek(offset)
                check(file.read(5000) == common[offset : offset + 5000], True, "the common file")
            temporary = own + ".tmp%d" % round_number
            gfile.rename(own, temporary)
            gfile.copy(temporary, own)
            gfile.remove(temporary)
            listed = gfile.listdir(place("shared"))
            assert os.path.basename(own) in listed, listed
        return thread

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        check(sorted(pool.map(work, range(16))), list(range(16)), "the finished threads")
    check(names(gfile.listdir(place("shared"))), ["thread-%02d" % n for n in range(16)], "the files at the end")


@case
def concurrent_renames_onto_one_file(place):
    gfile.makedirs(place("d"))
    contents = {bytes([65 + n]) * 50000 for n in range(8)}

    def work(content):
        for number in range(10):
            temporary = place("d", "tmp-%s-%d" % (chr(content[0]), number))
            write(temporary, content)
            gfile.rename(temporary, place("d", "target"), overwrite=True)
            seen = read(place("d", "target"))
            assert seen in contents, "a mixture of %d bytes" % len(seen)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(work, contents):
            pass
    check(names(gfile.listdir(place("d"))), ["target"], "the files at the end")


@case
def copy_across_filesystems(place):
    # 131,072 bytes is the step of the host's copy.
    for size in (0, 1, 131071, 131072, 262144, 1000003):
        data = payload(size)
        local = os.path.join(place.local, "file-%d" % size)
        with open(local, "wb") as file:
            file.write(data)
        gfile.copy(local, place("in-%d" % size))
        check(read(place("in-%d" % size)) == data, True, "%d bytes, local to root" % size)
        gfile.copy(place("in-%d" % size), local + ".back")
        with open(local + ".back", "rb") as file:
            check(file.read() == data, True, "%d bytes, root to local" % size)
    write(place("old"), b"an old and longer text")
    fails(errors.AlreadyExistsError, gfile.copy, os.path.join(place.local, "file-1"), place("old"))
    gfile.copy(os.path.join(place.local, "file-1"), place("old"), overwrite=True)
    check(read(place("old")), payload(1), "the overwritten file")
    if place.scheme:
        local = os.path.join(place.local, "file-1")
        fails(errors.UnimplementedError, gfile.rename, local, place("moved"))
        check((os.path.exists(local), gfile.exists(place("moved"))), (True, False), "both sides after the refusal")
