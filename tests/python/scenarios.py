"""What TensorFlow and Keras do with files beyond the conformance cases of `tf-plugin-testing`, as named cases.

    python scenarios.py --plugin libmemfs.so --root mem://box/scenarios
    python scenarios.py --root ram://scenarios csv names_not_utf8

Needs TensorFlow (2.12 or newer) and NumPy, nothing else. Every case works in its own directory below the root,
which it finds empty. Standard output has one line a case: `ok NAME`, `failed NAME`, of which the traceback is on standard
error, or `not-applicable NAME` for what this TensorFlow cannot do with any plugin. The exit status is 1 if a case failed.
"""
import argparse
import contextlib
import logging
import os
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from checks import check  # noqa: E402

gfile, errors = tf.io.gfile, tf.errors
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
CASES = []


class NotApplicable(Exception):
    """This TensorFlow cannot do it, whatever the plugin."""


def case(function):
    CASES.append(function)
    return function


class Place:
    """The directory of a case."""

    def __init__(self, base):
        self.base, self.scheme = base, base.partition("://")[0]

    def __call__(self, *parts):
        return "/".join((self.base,) + parts)


def write(path, data):
    with gfile.GFile(path, "wb") as file:
        file.write(data)
    return path


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def names(listing):
    """Children as names; some filesystems mark directories with a slash at the end."""
    return sorted(name.rstrip("/") for name in listing)


def values(dataset):
    return [element.numpy() for element in dataset]


def write_records(path, records):
    with tf.io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)


# What tf.data reads and writes --------------------------------------------------------------------------------


@case
def csv(place):
    write(place("data.csv"), b"x,y,name\n" + b"".join(b"%d,%.1f,n%d\n" % (n, n / 2, n) for n in range(100)))
    dataset = tf.data.experimental.CsvDataset(place("data.csv"), [tf.int32, tf.float32, tf.string], header=True)
    rows = [(int(x), float(y), bytes(name.numpy())) for x, y, name in dataset]
    check(rows, [(n, n / 2, b"n%d" % n) for n in range(100)], "the rows")


@case
def list_files_interleave(place):
    expected = set()
    for number in range(32):
        lines = ["%02d-%03d" % (number, line) for line in range(20)]
        expected.update(lines)
        write(place("part-%02d.txt" % number), "\n".join(lines).encode())
    write(place("other.csv"), b"not this one")
    files = tf.data.Dataset.list_files(place("part-*.txt"), shuffle=False)
    check(
        [name.decode() for name in values(files)],
        [place("part-%02d.txt" % number) for number in range(32)],
        "the listed files",
    )
    lines = tf.data.Dataset.list_files(place("part-*.txt"), seed=1).interleave(
        tf.data.TextLineDataset, cycle_length=16, num_parallel_calls=16, deterministic=False
    )
    found = [line.decode() for line in values(lines)]
    check(len(found), 640, "number of lines")
    check(set(found), expected, "the lines")
    try:
        values(tf.data.Dataset.list_files(place("no-such-*")))
    except errors.InvalidArgumentError as error:
        assert "did not match" in str(error) or "No files matched" in str(error), error
    else:
        raise AssertionError("list_files without a match gave no error")


@case
def iterator_checkpoint(place):
    dataset = tf.data.Dataset.range(100).shuffle(100, seed=3, reshuffle_each_iteration=False).batch(10)
    iterator = iter(dataset)
    for _ in range(4):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(place("iterator"))
    expected = [next(iterator).numpy().tolist() for _ in range(6)]
    fresh = iter(dataset)
    tf.train.Checkpoint(iterator=fresh).read(path)
    check([next(fresh).numpy().tolist() for _ in range(6)], expected, "the rest of the epoch")


# Names --------------------------------------------------------------------------------------------------------


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


@case
def dot_dot_beyond_the_root(place):
    """Above the root there is the root, never another host and never the machine's own files."""

    def exists(path):
        try:
            return gfile.exists(path)
        except errors.OpError:
            return False

    write(place("file"), b"here")
    host, _, path = place.base.partition("://")[2].partition("/")
    authority = "%s://%s" % (place.scheme, host)
    for secret in ("/etc/passwd", "/proc/self/environ"):
        # A server may share its own files; a filesystem whose names are exact knows none with `..`.
        if exists(authority + "/.." * 40 + secret):
            check(exists(authority + secret), True, "exists of %s, which was reached with .." % secret)
    if host:
        check(exists("%s://other/../%s/%s/file" % (place.scheme, host, path)), False, "a climb into another host")


@case
def glob_with_wildcard_host(place):
    write(place("y"), b"")
    for pattern in ("*/y", "b*/y", "*", "?ox/*", "[b]*/*/y", "**", "*/", "/*"):
        try:
            found = gfile.glob(place.scheme + "://" + pattern)
        except errors.OpError as error:
            assert error.message, pattern
        else:
            for path in found:
                assert path.startswith(place.scheme + "://"), path


# What Keras saves and reads -----------------------------------------------------------------------------------


def small_model():
    tf.keras.utils.set_random_seed(5)
    model = tf.keras.Sequential(
        [tf.keras.Input((2,)), tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(1)]
    )
    model.compile(optimizer="adam", loss="mse")
    return model


INPUTS = np.random.default_rng(2).standard_normal((16, 2)).astype(np.float32)


def needs_keras_3():
    if VERSION < (2, 16):
        # Keras 2 writes its archives and .h5 files by zipfile and h5py, which know local paths only.
        raise NotApplicable


@case
def keras_archive(place):
    needs_keras_3()
    model = small_model()
    model.fit(INPUTS, INPUTS[:, :1], epochs=1, verbose=0)
    model.save(place("model.keras"))
    check(read(place("model.keras"))[:2], b"PK", "the archive's magic number")
    loaded = tf.keras.models.load_model(place("model.keras"))
    assert np.array_equal(loaded.predict(INPUTS, verbose=0), model.predict(INPUTS, verbose=0)), "predictions differ"
    check(int(loaded.optimizer.iterations.numpy()), 1, "the optimizer's step")


@case
def keras_weights(place):
    needs_keras_3()
    model = small_model()
    model.save_weights(place("model.weights.h5"))
    check(read(place("model.weights.h5"))[:4], b"\x89HDF", "the magic number")
    other = small_model()
    other.set_weights([np.zeros_like(weight) for weight in other.get_weights()])
    other.load_weights(place("model.weights.h5"))
    for one, two in zip(model.get_weights(), other.get_weights()):
        assert np.array_equal(one, two), "weights differ"


@case
def keras_saved_model(place):
    model = small_model()
    expected = model(INPUTS).numpy()
    if VERSION < (2, 16):
        # Keras 2 writes the SavedModel format itself and reads it back as a model.
        model.save(place("saved"), save_format="tf")
        actual = tf.keras.models.load_model(place("saved"))(INPUTS).numpy()
    else:
        model.export(place("saved"), verbose=False)
        loaded = tf.saved_model.load(place("saved"))
        actual = loaded.serve(INPUTS).numpy()
    assert np.allclose(actual, expected, atol=1e-6), "predictions differ"


@case
def keras_training_from_records(place):
    data = np.random.default_rng(4).standard_normal((512, 2)).astype(np.float32)
    for shard in range(4):
        write_records(place("train-%d" % shard), [row.tobytes() for row in data[shard::4]])
    dataset = (
        tf.data.Dataset.list_files(place("train-*"), seed=2)
        .interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
        .map(lambda record: tf.ensure_shape(tf.io.decode_raw(record, tf.float32), [2]))
        .map(lambda row: (row, row[:1] - row[1:]))
        .cache(place("cache"))
        .apply(tf.data.experimental.assert_cardinality(512))
        .shuffle(512, seed=1)
        .batch(32)
        .prefetch(2)
    )
    model = small_model()
    model.compile(optimizer=tf.keras.optimizers.Adam(0.02), loss="mse")
    losses = model.fit(dataset, epochs=8, verbose=0, shuffle=False).history["loss"]
    check(len(losses), 8, "number of epochs")
    assert losses[-1] < losses[0] / 5, losses
    assert gfile.glob(place("cache*.index")), gfile.listdir(place())


def run(function, root):
    name = function.__name__
    place = Place(root.rstrip("/") + "/" + name)
    try:
        with contextlib.suppress(errors.NotFoundError):
            gfile.rmtree(place())
        gfile.makedirs(place())
        function(place)
        gfile.rmtree(place())
        check(gfile.exists(place()), False, "exists after the clean-up")
    except NotApplicable:
        print("not-applicable " + name, flush=True)
    except Exception:  # noqa: BLE001: a case may fail with anything
        traceback.print_exc()
        print("failed " + name, flush=True)
        return False
    else:
        print("ok " + name, flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", metavar="SO", help="the plugin to register first")
    parser.add_argument("--root", metavar="URI", required=True, help="the directory to work below; made if it is missing")
    parser.add_argument("names", metavar="NAME", nargs="*", help="run these cases alone")
    arguments = parser.parse_args()
    # Advice about deprecated Python calls is not a result of a case.
    for logger in ("tensorflow", "absl"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    if arguments.plugin:
        tf.experimental.register_filesystem_plugin(arguments.plugin)
    chosen = [function for function in CASES if not arguments.names or function.__name__ in arguments.names]
    return 0 if all([run(function, arguments.root) for function in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
