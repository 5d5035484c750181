# What uses files ----------------------------------------------------------------------------------------------


def write_records(path, records, compression=""):
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for record in records:
            writer.write(record)
    return path


@case
def python_tfrecord(place):
    records = [b"record %d" % number for number in range(1000)] + [b"", payload(300000)]
    write_records(place("records"), records)
    dataset = tf.data.TFRecordDataset(place("records"))
    same("the records", values(dataset), records)
    same("the second epoch", values(dataset), records)
    same("the length", gfile.stat(place("records")).length, sum(len(record) + 16 for record in records))


@case
def python_tfrecord_compressed(place):
    records = [b"the same line again %d" % (number % 3) for number in range(2000)]
    for compression in ("GZIP", "ZLIB"):
        write_records(place(compression), records, compression)
        dataset = tf.data.TFRecordDataset(place(compression), compression_type=compression)
        same(compression, values(dataset), records)


@case
def python_tfrecord_cut(place):
    records = [payload(1000, seed) for seed in range(10)]
    write(place("cut"), read(write_records(place("whole"), records))[:-7])
    seen = []

    def drain():
        for record in tf.data.TFRecordDataset(place("cut")):
            seen.append(record.numpy())

    fails("a file without its last 7 bytes", errors.DataLossError, drain)
    same("the records before", seen, records[:-1])


@case
def python_many_record_files(place):
    wanted = [b"%d/%d" % (shard, number) for shard in range(16) for number in range(50)]
    for shard in range(16):
        write_records(place("part-%05d" % shard), wanted[50 * shard:50 * shard + 50])
    files = tf.data.Dataset.list_files(place("part-*"), shuffle=False)
    same("list_files", [name.decode() for name in values(files)], [place("part-%05d" % shard) for shard in range(16)])
    found = values(tf.data.TFRecordDataset(files, num_parallel_reads=8))
    same("the records", sorted(found), sorted(wanted))


@case
def python_text_lines(place):
    lines = ["first", "", "third: ünïcode", "x" * 70000, "no end"]
    write(place("a"), "\n".join(lines).encode())
    write(place("b"), gzip.compress(b"one\ntwo\n"))
    same("the lines", [line.decode() for line in values(tf.data.TextLineDataset(place("a")))], lines)
    small = tf.data.TextLineDataset([place("a"), place("a")], buffer_size=16)
    same("twice, with a small buffer", [line.decode() for line in values(small)], lines * 2)
    same("compressed", values(tf.data.TextLineDataset(place("b"), compression_type="GZIP")), [b"one", b"two"])
    fails("a missing file", NOT_FOUND, values, tf.data.TextLineDataset(place("missing")))


@case
def python_fixed_length_records(place):
    records = [payload(37, seed) for seed in range(200)]
    write(place("file"), b"HEAD" + b"".join(records) + b"FOOTER")
    for size in (None, 10, 1 << 20):
        dataset = tf.data.FixedLengthRecordDataset(place("file"), 37, header_bytes=4, footer_bytes=6, buffer_size=size)
        same("the records with buffer_size=%s" % size, values(dataset), records)


@case
def python_parallel_reads(place):
    for number in range(32):
        write(place("%02d" % number), payload(5000, number))
    files = tf.data.Dataset.list_files(place("*"), shuffle=False)
    same("the contents", values(files.map(tf.io.read_file, num_parallel_calls=16)), [payload(5000, n) for n in range(32)])


@case
def python_dataset_save(place):
    tf.data.Dataset.range(200).map(lambda n: {"n": n, "square": n * n}).save(place("saved"))
    loaded = tf.data.Dataset.load(place("saved"))
    same("the elements", [(int(e["n"]), int(e["square"])) for e in loaded], [(n, n * n) for n in range(200)])


@case
def python_dataset_cache(place):
    def pipeline():
        return tf.data.Dataset.range(100).map(lambda n: (n, tf.random.uniform([]))).cache(place("cache"))

    def numbers(dataset):
        return [(int(n), float(noise)) for n, noise in dataset]

    dataset = pipeline()
    first = numbers(dataset)
    same("the elements", [n for n, _ in first], list(range(100)))
    same("the second epoch, from the cache", numbers(dataset), first)
    same("another pipeline, from the cache", numbers(pipeline()), first)
    left = [name for name in gfile.listdir(place()) if "lockfile" in name]
    same("lock files that are left", left, [])


@case
def python_dataset_snapshot(place):
    def numbers():
        dataset = tf.data.Dataset.range(100).map(lambda n: (n, tf.random.uniform([]))).snapshot(place("snapshot"))
        return sorted((int(n), float(noise)) for n, noise in dataset)

    first = numbers()
    same("the second run, from the snapshot", numbers(), first)


@case
def python_checkpoint(place):
    big = np.random.default_rng(1).standard_normal((256, 1024)).astype(np.float32)
    saved = tf.train.Checkpoint(step=tf.Variable(7, dtype=tf.int64), big=tf.Variable(big), name=tf.Variable("x"))
    path = saved.save(place("model", "ckpt"))
    same("latest_checkpoint", tf.train.latest_checkpoint(place("model")), path)
    restored = tf.train.Checkpoint(
        step=tf.Variable(0, dtype=tf.int64), big=tf.Variable(np.zeros_like(big)), name=tf.Variable(""))
    restored.restore(path).assert_consumed()
    same("step", int(restored.step), 7)
    same("the matrix", restored.big.numpy().tobytes(), big.tobytes())
    same("name", restored.name.numpy(), b"x")
    same("the files", names(gfile.listdir(place("model"))), ["checkpoint", "ckpt-1.data-00000-of-00001", "ckpt-1.index"])
    fails("a missing checkpoint", NOT_FOUND, restored.read, place("model", "ckpt-9"))


@case
def python_checkpoint_manager(place):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), place("kept"), max_to_keep=2)
    for number in range(1, 5):
        step.assign(number)
        manager.save()
    wanted = ["checkpoint"] + ["ckpt-%d.%s" % (n, end) for n in (3, 4) for end in ("data-00000-of-00001", "index")]
    same("the files", names(gfile.listdir(place("kept"))), wanted)
    step.assign(0)
    same("restore_or_initialize", manager.restore_or_initialize(), place("kept", "ckpt-4"))
    same("step", int(step), 4)


class Affine(tf.Module):
    def __init__(self, words):
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.words_file = tf.saved_model.Asset(words)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        return tf.matmul(x, self.weight)

    @tf.function(input_signature=[])
    def words(self):
        return tf.io.read_file(self.words_file.asset_path)


@case
def python_saved_model(place):
    words = write(place("words.txt"), b"one\ntwo\n")
    tf.saved_model.save(Affine(words), place("export", "1"))
    gfile.remove(words)
    loaded = tf.saved_model.load(place("export", "1"))
    same("a product", loaded(tf.constant([[1.0, 1.0]])).numpy().tolist(), [[4.0, 6.0]])
    same("the asset", loaded.words().numpy(), b"one\ntwo\n")
    found = set(names(gfile.listdir(place("export", "1"))))
    holds("saved_model.pb, variables and assets are there", {"assets", "saved_model.pb", "variables"} <= found)


@case
def python_event_file(place):
    writer = tf.summary.create_file_writer(place("logs"))
    with writer.as_default():
        for step in range(20):
            tf.summary.write("loss", 1.0 / (step + 1), step=step)
    writer.close()
    paths = gfile.glob(place("logs", "events.out.tfevents.*"))
    same("event files", len(paths), 1)
    events = [event_pb2.Event.FromString(record) for record in values(tf.data.TFRecordDataset(paths))]
    steps = [event.step for event in events for value in event.summary.value if value.tag == "loss"]
    same("the steps", steps, list(range(20)))


@case
def python_event_file_grows(place):
    needs_visible_at_flush(place)
    writer = tf.summary.create_file_writer(place("logs"))
    with writer.as_default():
        for step in range(5):
            tf.summary.write("loss", 1.0, step=step)
            writer.flush()
            paths = gfile.glob(place("logs", "events.out.tfevents.*"))
            events = [event_pb2.Event.FromString(record) for record in values(tf.data.TFRecordDataset(paths))]
            seen = [event.step for event in events if event.HasField("summary")]
            same("the steps after a flush", seen, list(range(step + 1)))
    writer.close()


@case
def python_lookup_table(place):
    write(place("words"), b"apple\nbanana\ncherry\n")
    initializer = tf.lookup.TextFileInitializer(
        place("words"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    same("lines", table.lookup(tf.constant(["cherry", "durian", "apple"])).numpy().tolist(), [2, -1, 0])


@case
def python_memory_region(place):
    numbers = np.arange(4096, dtype=np.float32)
    write(place("constant"), numbers.tobytes())

    def constant(name):
        return tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[4096], memory_region_name=name).numpy()

    same("the constant", constant(place("constant")).tobytes(), numbers.tobytes())
    write(place("empty"), b"")
    fails("a missing file", NOT_FOUND, constant, place("missing"))
    fails("an empty file", errors.InvalidArgumentError, constant, place("empty"))


@case
def python_numpy_files(place):
    array = np.random.default_rng(9).standard_normal((100, 200))
    with gfile.GFile(place("array.npy"), "wb") as file:
        np.save(file, array)
    with gfile.GFile(place("array.npy"), "rb") as file:
        same("the array", np.load(file).tobytes(), array.tobytes())
    with gfile.GFile(place("pickle"), "wb") as file:
        pickle.dump({"array": array}, file, protocol=4)
    with gfile.GFile(place("pickle"), "rb") as file:
        same("the pickle", pickle.load(file)["array"].tobytes(), array.tobytes())


@case
def python_session(place):
    for number in range(8):
        write(place("file-%d" % number), payload(20000, number))
    with tf.Graph().as_default() as graph:
        name = tf.compat.v1.placeholder(tf.string)
        content = tf.io.read_file(name)
        copied = tf.io.write_file(place("copy"), content)
    with tf.compat.v1.Session(graph=graph) as session:

        def work(number):
            for _ in range(10):
                found = session.run(content, {name: place("file-%d" % number)})
                same("what a session reads", found, payload(20000, number))

        session.run(copied, {name: place("file-3")})
        same("what a session wrote", read(place("copy")), payload(20000, 3))
        fails("reading nothing in a session", NOT_FOUND, session.run, content, {name: place("missing")})
        in_threads(8, work)
