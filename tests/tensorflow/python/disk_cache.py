"""Reads a data set on s3:// with the disk cache, as training does.

    python disk_cache.py write ROOT      writes it
    python disk_cache.py epochs ROOT     reads it twice, waiting for the disk in between
    python disk_cache.py epoch ROOT      reads it once
    python disk_cache.py change ROOT     writes it again, with other records of the same length
"""
import glob
import json
import os
import sys
import time

import tensorflow as tf

if "TF_PLUGIN_LIBRARY" in os.environ:
    try:
        tf.experimental.register_filesystem_plugin(os.environ["TF_PLUGIN_LIBRARY"])
    except tf.errors.AlreadyExistsError:
        pass

FILES = 4
RECORDS = 300
RECORD = 10_000


def name(root, file):
    return "%s/data-%d.tfrecord" % (root, file)


def record(file, n, version):
    return bytes([version, file, n % 256]) * (RECORD // 3)


def write(root, version):
    for file in range(FILES):
        with tf.io.TFRecordWriter(name(root, file)) as writer:
            for n in range(RECORDS):
                writer.write(record(file, n, version))


def epoch(root, version):
    names = [name(root, file) for file in range(FILES)]
    dataset = tf.data.TFRecordDataset(names, num_parallel_reads=2)
    found = sorted(text.numpy() for text in dataset)
    expected = sorted(record(file, n, version) for file in range(FILES) for n in range(RECORDS))
    assert found == expected, "other records"


def attempts():
    return json.loads(tf.io.read_file("s3:///metrics.json").numpy())["attempts"]


def wait():
    """Blocks are written after they were read."""
    directory = os.environ["TF_S3_DISK_CACHE"].split(":")[0]
    # 3,004,800 bytes with the lengths and checksums of the records.
    for _ in range(1000):
        if len(glob.glob(directory + "/tf-disk-cache-1/??/*")) == FILES * 3:
            return
        time.sleep(0.01)
    raise AssertionError("the blocks are not there")


def main(what, root):
    if what in ("write", "change"):
        write(root, ["write", "change"].index(what))
    elif what == "epochs":
        epoch(root, 0)
        wait()
        before = attempts()
        epoch(root, 0)
        requests = attempts() - before
        assert requests <= FILES, "%d requests in the second epoch" % requests
    else:
        epoch(root, {"epoch": 0, "changed": 1}[what])
        wait()
    print("ok", what)


main(*sys.argv[1:])
