"""What real TensorFlow does with a filesystem, as named cases.

    python scenarios.py --plugin libmemfs.so --root mem://box/scenarios
    python scenarios.py --root ram://scenarios --only tfrecord

Needs TensorFlow (2.12 or newer) and NumPy, nothing else. Every case works in a directory of its own below the
root, which it finds empty. One line a case on standard output:

    ok NAME 0.12s
    FAILED NAME 0.12s: the exception       (the traceback follows)
    not-applicable NAME: the reason        (this TensorFlow cannot do it on any plugin, or --unable says so)

and at the end `N passed, M failed, K not applicable`; the exit status is 1 if a case failed. A case that hangs
ends the process with a traceback of all threads.

The expected status codes are those that the plugin interface's header names for each condition. TensorFlow's own
built-in filesystems deviate from them in places.
"""
import argparse
import concurrent.futures
import contextlib
import faulthandler
import hashlib
import logging
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.util import event_pb2  # noqa: E402

gfile = tf.io.gfile
errors = tf.errors
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])

CASES = []

# What a filesystem may be without, and what then holds.
LACKS = {
    "memory_region": "memory regions are UNIMPLEMENTED",
    "normal_form": "names are taken as they are written: `a//b`, `a/./b` and `a/x/../b` are three files",
    "hierarchy": "only the name itself counts: a missing parent is not an error, a file may have others below it or be "
                 "beside a directory of its name, and a directory can be renamed",
    "unclosed_files": "what is dropped without being closed is not stored",
}


class NotApplicable(Exception):
    """This TensorFlow cannot do it, whatever the plugin."""


class Place:
    """Where a case works: its own directory, the scheme around it, and a local scratch directory."""

    def __init__(self, base, local, lacks):
        self.base = base
        self.local = local
        self.lacks = lacks
        # scheme://host and the path in it; both are empty for the local filesystem.
        if "://" in base:
            scheme, rest = base.split("://", 1)
            host, slash, path = rest.partition("/")
            self.scheme = scheme
            self.host = host
            self.authority = scheme + "://" + host
            self.path = slash + path
        else:
            self.scheme = self.host = self.authority = ""
            self.path = base

    def __call__(self, *parts):
        return "/".join((self.base,) + parts)


def case(function):
    CASES.append((function.__name__, function))
    return function


# Helpers ------------------------------------------------------------------------------------------------------


def check(actual, expected, what="result"):
    if actual != expected:
        raise AssertionError("%s is %s, expected %s" % (what, short(actual), short(expected)))


def short(value):
    text = repr(value)
    return text if len(text) <= 400 else text[:400] + " ... (%d characters)" % len(text)


def fails(kind, function, *arguments, **options):
    """`function` must fail with exactly the error class `kind`."""
    what = "%s%s" % (getattr(function, "__name__", function), short(arguments))
    try:
        result = function(*arguments, **options)
    except errors.OpError as error:
        if type(error) is not kind:
            raise AssertionError(
                "%s failed with %s (%s), expected %s"
                % (what, type(error).__name__, error.message, kind.__name__)
            ) from error
        if not error.message:
            raise AssertionError("%s failed with %s and no message" % (what, kind.__name__)) from error
        return error
    raise AssertionError("%s gave %s, expected %s" % (what, short(result), kind.__name__))


def all_of(*checks):
    """Runs every check, so that one run shows all deviations."""
    wrong = []
    for one in checks:
        try:
            one()
        except AssertionError as error:
            wrong.append(str(error))
    if wrong:
        raise AssertionError("%d of %d wrong:\n    %s" % (len(wrong), len(checks), "\n    ".join(wrong)))


def write(path, data, mode="wb"):
    with gfile.GFile(path, mode) as file:
        file.write(data)
    return path


def append(path, data):
    return write(path, data, "ab")


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def names(listing):
    """Children as names; some filesystems mark directories with a slash at the end."""
    return sorted(name.rstrip("/") for name in listing)


def payload(size, seed=7):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


def values(dataset):
    return [element.numpy() for element in dataset]


# tf.data ------------------------------------------------------------------------------------------------------


def example(number):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % number])),
            }
        )
    ).SerializeToString()


def write_records(path, records, compression=""):
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for record in records:
            writer.write(record)
    return path


@case
def tfrecord(place):
    records = [example(number) for number in range(1000)] + [b"", payload(300000)]
    path = write_records(place("data.tfrecord"), records)
    dataset = tf.data.TFRecordDataset(path)
    check(values(dataset), records, "the records")
    check(values(dataset), records, "the records of the second epoch")
    parsed = tf.data.TFRecordDataset(path).take(1000).batch(100).map(
        lambda batch: tf.io.parse_example(batch, {"number": tf.io.FixedLenFeature([], tf.int64)})["number"]
    )
    check(np.concatenate(values(parsed)).tolist(), list(range(1000)), "the numbers")
    # 12 bytes before and 4 bytes after each record.
    check(gfile.stat(path).length, sum(len(record) + 16 for record in records), "the file's length")


@case
def tfrecord_compressed(place):
    records = [b"the same line again and again %d" % (number % 3) for number in range(5000)]
    for compression in ("GZIP", "ZLIB"):
        path = write_records(place(compression), records, compression)
        check(values(tf.data.TFRecordDataset(path, compression_type=compression)), records, compression)
        plain = sum(len(record) + 16 for record in records)
        assert gfile.stat(path).length < plain / 5, "%s does not compress" % compression
    check(read(place("GZIP"))[:2], b"\x1f\x8b", "the magic number")


@case
def tfrecord_truncated(place):
    records = [payload(1000, seed) for seed in range(10)]
    path = write_records(place("whole"), records)
    write(place("cut"), read(path)[:-7])
    seen = []

    def drain():
        for record in tf.data.TFRecordDataset(place("cut")):
            seen.append(record.numpy())

    fails(errors.DataLossError, drain)
    check(seen, records[:-1], "the records before the cut")


@case
def tfrecord_many_files(place):
    expected = set()
    for shard in range(24):
        records = [b"%d/%d" % (shard, number) for number in range(50)]
        expected.update(records)
        write_records(place("part-%05d" % shard), records)
    paths = sorted(gfile.glob(place("part-*")))
    check(len(paths), 24, "number of files")
    found = values(tf.data.TFRecordDataset(paths, num_parallel_reads=8))
    check(len(found), 1200, "number of records")
    check(set(found), expected, "the records")


@case
def text_lines(place):
    lines = ["first", "", "third with ünïcode", "x" * 70000, "last without newline"]
    write(place("a.txt"), "\n".join(lines).encode())
    write(place("b.txt"), b"crlf\r\nlines\r\n")
    dataset = tf.data.TextLineDataset(place("a.txt"))
    check([line.decode() for line in values(dataset)], lines, "the lines")
    both = tf.data.TextLineDataset([place("a.txt"), place("b.txt")], buffer_size=16)
    check(values(both)[-2:], [b"crlf", b"lines"], "the lines of the second file")
    import gzip

    write(place("c.gz"), gzip.compress(b"one\ntwo\n"))
    check(values(tf.data.TextLineDataset(place("c.gz"), compression_type="GZIP")), [b"one", b"two"])
    fails(errors.NotFoundError, values, tf.data.TextLineDataset(place("missing")))


@case
def fixed_length_records(place):
    records = [payload(37, seed) for seed in range(500)]
    write(place("data"), b"HEAD" + b"".join(records) + b"FOOTER")
    for buffer_size in (None, 10, 1 << 20):
        dataset = tf.data.FixedLengthRecordDataset(
            place("data"), 37, header_bytes=4, footer_bytes=6, buffer_size=buffer_size
        )
        check(values(dataset), records, "the records with buffer_size=%s" % buffer_size)


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
def parallel_read_file(place):
    for number in range(64):
        write(place("%02d.bin" % number), payload(5000, number))
    dataset = tf.data.Dataset.list_files(place("*.bin"), shuffle=False).map(
        tf.io.read_file, num_parallel_calls=16
    )
    check(values(dataset), [payload(5000, number) for number in range(64)], "the contents")


@case
def dataset_save_load(place):
    dataset = tf.data.Dataset.range(1000).map(lambda n: {"n": n, "square": n * n})
    dataset.save(place("saved"))
    loaded = tf.data.Dataset.load(place("saved"))
    check([(int(e["n"]), int(e["square"])) for e in loaded], [(n, n * n) for n in range(1000)])
    sharded = tf.data.Dataset.range(100)
    sharded.save(place("sharded"), shard_func=lambda n: n % 4)
    check(sorted(int(n) for n in tf.data.Dataset.load(place("sharded"))), list(range(100)))


@case
def dataset_cache(place):
    calls = []

    def count(n):
        calls.append(int(n))
        return n * 3

    def pipeline():
        return tf.data.Dataset.range(200).map(
            lambda n: tf.py_function(count, [n], tf.int64)
        ).cache(place("cache"))

    expected = [n * 3 for n in range(200)]
    dataset = pipeline()
    check(values(dataset), expected, "the first epoch")
    check(len(calls), 200, "number of computed elements")
    check(values(dataset), expected, "the second epoch")
    check(values(pipeline()), expected, "a second pipeline on the same cache")
    check(len(calls), 200, "number of computed elements at the end")
    found = names(gfile.listdir(place()))
    assert any(name.startswith("cache") and name.endswith(".index") for name in found), found
    assert not any(name.endswith(".lockfile") for name in found), found


@case
def dataset_snapshot(place):
    # Elements that no second computation would give again. (A Python function would do as well to count
    # computations, but each one makes the pipeline a different one.)
    def pipeline():
        return tf.data.Dataset.range(300).map(lambda n: (n, tf.random.uniform([]))).snapshot(place("snapshot"))

    def run_it():
        return sorted((int(n), float(noise)) for n, noise in pipeline())

    first = run_it()
    check([n for n, _ in first], list(range(300)), "the elements")
    check(run_it(), first, "the second run, from the snapshot")
    gfile.rmtree(place("snapshot"))
    assert run_it() != first, "a run without the snapshot gave the same random numbers"


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


# Models -------------------------------------------------------------------------------------------------------


@case
def checkpoint(place):
    big = np.random.default_rng(1).standard_normal((512, 1024)).astype(np.float32)
    saved = tf.train.Checkpoint(step=tf.Variable(7, dtype=tf.int64), big=tf.Variable(big), name=tf.Variable("x"))
    path = saved.save(place("model", "ckpt"))
    check(path, place("model", "ckpt-1"), "the path")
    check(tf.train.latest_checkpoint(place("model")), path, "the latest checkpoint")
    restored = tf.train.Checkpoint(
        step=tf.Variable(0, dtype=tf.int64), big=tf.Variable(np.zeros_like(big)), name=tf.Variable("")
    )
    restored.restore(path).assert_consumed()
    check(int(restored.step), 7, "step")
    assert np.array_equal(restored.big.numpy(), big), "the matrix differs"
    check(restored.name.numpy(), b"x", "name")
    check(dict(tf.train.list_variables(path))["big/.ATTRIBUTES/VARIABLE_VALUE"], [512, 1024], "the shape")
    check(
        names(gfile.listdir(place("model"))),
        ["checkpoint", "ckpt-1.data-00000-of-00001", "ckpt-1.index"],
        "the files (temporary ones must be gone)",
    )
    fails(errors.NotFoundError, restored.read, place("model", "ckpt-9"))


@case
def checkpoint_manager(place):
    step = tf.Variable(0)
    weights = tf.Variable(np.zeros(1000, np.float32))
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step, weights=weights), place("manager"), max_to_keep=2
    )
    for number in range(1, 6):
        step.assign(number)
        weights.assign(np.full(1000, number, np.float32))
        check(manager.save(), place("manager", "ckpt-%d" % number), "the path")
    check(manager.checkpoints, [place("manager", "ckpt-4"), place("manager", "ckpt-5")], "the checkpoints")
    check(
        names(gfile.listdir(place("manager"))),
        ["checkpoint"]
        + ["ckpt-%d.%s" % (n, part) for n in (4, 5) for part in ("data-00000-of-00001", "index")],
        "the files",
    )
    check(tf.train.latest_checkpoint(place("manager")), place("manager", "ckpt-5"), "the latest")
    step2, weights2 = tf.Variable(0), tf.Variable(np.zeros(1000, np.float32))
    manager2 = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step2, weights=weights2), place("manager"), max_to_keep=2
    )
    check(manager2.restore_or_initialize(), place("manager", "ckpt-5"), "the restored one")
    check((int(step2), float(weights2[999])), (5, 5.0), "the values")


class Affine(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.vocabulary = tf.saved_model.Asset(vocabulary)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        return tf.matmul(x, self.weight)

    @tf.function(input_signature=[])
    def words(self):
        return tf.io.read_file(self.vocabulary.asset_path)


@case
def saved_model(place):
    vocabulary = write(place("words.txt"), b"one\ntwo\n")
    module = Affine(vocabulary)
    tf.saved_model.save(module, place("export", "1"))
    check(tf.saved_model.contains_saved_model(place("export", "1")), True, "contains_saved_model")
    check(tf.saved_model.contains_saved_model(place("export")), False, "contains_saved_model of the parent")
    gfile.remove(vocabulary)
    loaded = tf.saved_model.load(place("export", "1"))
    check(loaded(tf.constant([[1.0, 1.0]])).numpy().tolist(), [[4.0, 6.0]], "the product")
    check(loaded.words().numpy(), b"one\ntwo\n", "the asset")
    found = names(gfile.listdir(place("export", "1")))
    assert {"assets", "saved_model.pb", "variables"} <= set(found), found


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
        raise NotApplicable(
            "TensorFlow %s has Keras 2, whose %s are written by zipfile and h5py straight to local paths"
            % (tf.__version__, "archives and .h5 files")
        )


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


@case
def summaries(place):
    # tf.summary.scalar and its like are TensorBoard's, which newer releases do not install.
    writer = tf.summary.create_file_writer(place("logs"))
    with writer.as_default():
        for step in range(50):
            tf.summary.write("loss", 1.0 / (step + 1), step=step)
            if step == 24:
                writer.flush()
                half = count_scalars(place("logs"))
        tf.summary.write("note", "fine", step=50)
    writer.close()
    check(len(half), 25, "scalars after the flush in the middle")
    found = count_scalars(place("logs"))
    check([step for step, _ in found], list(range(50)), "the steps")
    assert np.allclose([value for _, value in found], [1.0 / (step + 1) for step in range(50)]), found


def count_scalars(directory):
    paths = gfile.glob(directory + "/events.out.tfevents.*")
    check(len(paths), 1, "number of event files")
    by_dataset = [event_pb2.Event.FromString(record) for record in values(tf.data.TFRecordDataset(paths))]
    by_iterator = list(tf.compat.v1.train.summary_iterator(paths[0]))
    check(len(by_iterator), len(by_dataset), "number of events by the two readers")
    return [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for event in by_dataset
        for value in event.summary.value
        if value.tag == "loss"
    ]


@case
def lookup_table(place):
    write(place("vocabulary.txt"), b"apple\nbanana\ncherry\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            place("vocabulary.txt"),
            tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        default_value=-1,
    )
    check(table.lookup(tf.constant(["cherry", "durian", "apple"])).numpy().tolist(), [2, -1, 0])


@case
def memory_region(place):
    numbers = np.arange(4096, dtype=np.float32)
    path = write(place("constant"), numbers.tobytes())

    def constant(name):
        return tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[4096], memory_region_name=name).numpy()

    if "memory_region" in place.lacks:
        fails(errors.UnimplementedError, constant, path)
        return
    assert np.array_equal(constant(path), numbers), "the constant differs"
    write(place("empty"), b"")
    all_of(
        lambda: fails(errors.NotFoundError, constant, place("missing")),
        lambda: fails(errors.InvalidArgumentError, constant, place("empty")),
        lambda: fails(errors.FailedPreconditionError, constant, place()),
    )


# Files --------------------------------------------------------------------------------------------------------


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


# Directories and names ----------------------------------------------------------------------------------------


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


# Status codes -------------------------------------------------------------------------------------------------

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


# The run ------------------------------------------------------------------------------------------------------


def run(name, function, root, timeout, lacks, unable):
    if name in unable:
        print("not-applicable %s: %s" % (name, unable[name]), flush=True)
        return "not applicable"
    base = root.rstrip("/") + "/" + name
    local = tempfile.mkdtemp(prefix="scenario-")
    place = Place(base, local, lacks)
    faulthandler.dump_traceback_later(timeout, exit=True)
    started = time.monotonic()
    try:
        with contextlib.suppress(errors.NotFoundError):
            gfile.rmtree(base)
        gfile.makedirs(base)
        function(place)
        gfile.rmtree(base)
        check(gfile.exists(base), False, "exists after the clean-up")
    except NotApplicable as reason:
        print("not-applicable %s: %s" % (name, reason), flush=True)
        return "not applicable"
    except Exception as error:  # noqa: BLE001: a case may fail with anything
        text = "%s: %s" % (type(error).__name__, short(str(error)) if len(str(error)) > 4000 else error)
        print("FAILED %s %.2fs: %s" % (name, time.monotonic() - started, text), flush=True)
        frames = "".join(traceback.format_tb(error.__traceback__))
        print("    " + frames.rstrip().replace("\n", "\n    "), flush=True)
        return "failed"
    finally:
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(local, ignore_errors=True)
    print("ok %s %.2fs" % (name, time.monotonic() - started), flush=True)
    return "passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", metavar="SO", help="the plugin to register first")
    parser.add_argument("--root", metavar="URI", help="the directory to work below; made if it is missing")
    parser.add_argument("--only", metavar="NAME", action="append", help="run this case (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--lacks", action="append", default=[], choices=sorted(LACKS), metavar="WHAT",
                        help="what the plugin has not, by design; cases then expect what it has instead: "
                        + "; ".join("%s: %s" % lack for lack in sorted(LACKS.items())))
    parser.add_argument("--unable", action="append", default=[], metavar="NAME=REASON",
                        help="a case that the server behind the plugin cannot do (may be repeated)")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="limit for one case")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(name for name, _ in CASES))
        return 0
    if not arguments.root:
        parser.error("--root is needed")
    unable = dict(text.split("=", 1) for text in arguments.unable)
    unknown = set(arguments.only or []).union(unable) - {name for name, _ in CASES}
    if unknown:
        parser.error("no such case: %s (see --list)" % ", ".join(sorted(unknown)))
    faulthandler.enable()
    # Advice about deprecated Python calls is not a result of a case.
    for logger in ("tensorflow", "absl"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    if arguments.plugin:
        tf.experimental.register_filesystem_plugin(arguments.plugin)
    results = [
        run(name, function, arguments.root, arguments.timeout, arguments.lacks, unable)
        for name, function in CASES
        if not arguments.only or name in arguments.only
    ]
    print("%d passed, %d failed, %d not applicable"
          % tuple(results.count(kind) for kind in ("passed", "failed", "not applicable")))
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())
