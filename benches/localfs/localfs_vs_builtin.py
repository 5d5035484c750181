"""A localfs plugin against TensorFlow's own local filesystem, on the same files, in one process.

    python localfs_vs_builtin.py --plugin liblocalfs.so --directory SCRATCH [--rounds 15] [--only glob]

Each row is run in rounds, in which both filesystems take turns and the other one goes first in every other round.
All files are in memory or the page cache, so it is the code that is measured and not the disk. Both must give the same
answer. On standard output: one JSON object, {"rows": [{"name", "builtin", "plugin"}]}, with a pair for each round:
the seconds on the clock, and the seconds that this process's threads spent on a CPU, which other processes
disturb less. Progress goes to standard error.
"""
import argparse
import gc
import json
import logging
import os
import shutil
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

logging.getLogger("tensorflow").setLevel(logging.ERROR)

MIB = 1 << 20
LARGE = 256 * MIB
RECORDS = 4096
RECORD = os.urandom(16 * 1024)
CHUNK = os.urandom(MIB)
LISTED = 10_000
SUBDIRECTORIES = 100

ROWS = []


def row(name):
    def add(function):
        ROWS.append((name, function))
        return function

    return add


def basenames(paths):
    return sorted(os.path.basename(os.fspath(path).rstrip("/")) for path in paths)


def write_chunks(path, count, chunk):
    with tf.io.gfile.GFile(path, "wb") as file:
        for _ in range(count):
            file.write(chunk)
    return tf.io.gfile.stat(path).length


@row("read 256 MiB, `GFile.read` of 1 MiB")
def read_gfile(root):
    total = 0
    with tf.io.gfile.GFile(root + "/large.bin", "rb") as file:
        while chunk := file.read(MIB):
            total += len(chunk)
    return total


@row("read 256 MiB, `tf.io.read_file`")
def read_file(root):
    return int(tf.strings.length(tf.io.read_file(root + "/large.bin")))


@row("read 64 MiB, `TFRecordDataset`")
def read_records(root):
    records = tf.data.TFRecordDataset(root + "/records.tfrecord")
    return int(records.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1))


@row("write 64 MiB, 1 MiB at a time")
def write_large(root):
    return write_chunks(root + "/written.bin", 64, CHUNK)


@row("write 2 MiB, 100 bytes at a time")
def write_small(root):
    return write_chunks(root + "/written.txt", 20_000, b"x" * 100)


@row("write 200 files of 1 KiB")
def write_files(root):
    return sum(write_chunks("%s/small/%03d" % (root, index), 1, b"y" * 1024) for index in range(200))


@row("`listdir`, 10,000 files")
def list_directory(root):
    return basenames(tf.io.gfile.listdir(root + "/listed"))


@row("`glob` `listed/*7.txt`, 1,000 of 10,000 files")
def glob_suffix(root):
    return basenames(tf.io.gfile.glob(root + "/listed/*7.txt"))


@row("`glob` `listed/*`, 10,000 files")
def glob_all(root):
    return basenames(tf.io.gfile.glob(root + "/listed/*"))


@row("`tf.io.matching_files` `listed/*7.txt`")
def matching_files(root):
    return basenames(path.decode() for path in tf.io.matching_files(root + "/listed/*7.txt").numpy())


@row("`glob` `tree/*/part-*7.txt`, 100 directories of 100 files")
def glob_tree(root):
    return basenames(tf.io.gfile.glob(root + "/tree/*/part-*7.txt"))


def prepare(directory):
    def touch(path):
        with open(path, "wb") as file:
            file.write(b"content")

    for name in ["small", "listed", "tree"]:
        os.mkdir(os.path.join(directory, name))
    for index in range(LISTED):
        touch(os.path.join(directory, "listed", "part-%05d.txt" % index))
    for index in range(SUBDIRECTORIES):
        below = os.path.join(directory, "tree", "day-%03d" % index)
        os.mkdir(below)
        for file in range(LISTED // SUBDIRECTORIES):
            touch(os.path.join(below, "part-%05d.txt" % file))
    with open(os.path.join(directory, "large.bin"), "wb") as file:
        for _ in range(LARGE // MIB):
            file.write(CHUNK)
    with tf.io.TFRecordWriter(os.path.join(directory, "records.tfrecord")) as writer:
        for _ in range(RECORDS):
            writer.write(RECORD)
    # Unwritten pages would disturb the measurements.
    os.sync()


def timed(function, root):
    gc.collect()
    started, started_processor = time.perf_counter(), time.process_time()
    answer = function(root)
    return (time.perf_counter() - started, time.process_time() - started_processor), answer


def measure(name, function, roots, rounds):
    seconds = {filesystem: [] for filesystem in roots}
    # The first round warms up and compares the answers.
    answers = [timed(function, root)[1] for root in roots.values()]
    if any(answer != answers[0] for answer in answers):
        raise AssertionError("%s: the filesystems differ: %r" % (name, answers))
    order = list(roots.items())
    for number in range(rounds):
        for filesystem, root in order if number % 2 == 0 else reversed(order):
            seconds[filesystem].append(timed(function, root)[0])
    return {"name": name, **seconds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--directory", required=True, help="where a scratch directory is made and removed")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    arguments = parser.parse_args()

    tf.experimental.register_filesystem_plugin(os.path.abspath(arguments.plugin))
    directory = tempfile.mkdtemp(prefix="localfs-bench-", dir=os.path.abspath(arguments.directory))
    try:
        print("preparing the files", file=sys.stderr, flush=True)
        prepare(directory)
        roots = {"builtin": directory, "plugin": "local://" + directory}
        gc.disable()
        measured = []
        for name, function in ROWS:
            if arguments.only in name:
                print("timing: " + name, file=sys.stderr, flush=True)
                measured.append(measure(name, function, roots, arguments.rounds))
    finally:
        shutil.rmtree(directory)
    json.dump({"rows": measured}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
