"""What is saved of models: checkpoints, exports and logs; and what they read: vocabularies and constants."""
import numpy as np
import tensorflow as tf
from tensorflow.core.util import event_pb2

from scenario.case import NotApplicable, all_of, case, check, errors, fails, gfile, names, read, values, write
from scenario.data import write_records

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])


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
