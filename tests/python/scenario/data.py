"""What tf.data reads and writes: records, lines, rows, and what a pipeline saves."""
import numpy as np
import tensorflow as tf

from scenario.case import case, check, errors, fails, gfile, names, payload, read, values, write


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
