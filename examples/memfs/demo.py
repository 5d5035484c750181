"""TensorFlow on a filesystem written in Rust: a small training job whose every file lives in `mem://`.

    python demo.py libmemfs.so [--root mem://demo]

`cargo tf-plugin demo` builds the plugin and runs this script. Nothing here knows about Rust: after the one line
that registers the plugin, `mem://` paths work wherever TensorFlow takes a path.
"""
import argparse
import logging
import os
import sys

# Before the import: TensorFlow's start-up messages would bury the output below.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from demo_report import Report, expect  # noqa: E402

for logger in ("tensorflow", "absl"):
    logging.getLogger(logger).setLevel(logging.ERROR)

EPOCHS = 20
SHARDS = 4
# Keras 3, with TensorFlow since 2.16, writes its own formats to any filesystem that TensorFlow knows.
KERAS_3 = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 16)


def two_spirals(count, seed):
    """Points of two interleaved spirals and which one each belongs to: not separable by a line."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, count)
    angle = np.sqrt(random.uniform(0.05, 1.0, count)) * 3.0 * np.pi
    turned = angle + np.pi * label
    points = np.stack([angle * np.cos(turned), angle * np.sin(turned)], axis=1) / 3.0
    points += random.normal(0.0, 0.05, points.shape)
    return points.astype(np.float32), label.astype(np.int64)


def serialize(point, label):
    feature = {
        "point": tf.train.Feature(float_list=tf.train.FloatList(value=point)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def write_records(path, points, labels):
    with tf.io.TFRecordWriter(path) as writer:
        for point, label in zip(points, labels):
            writer.write(serialize(point, label))


def parse(batch):
    parsed = tf.io.parse_example(
        batch, {"point": tf.io.FixedLenFeature([2], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    return parsed["point"], parsed["label"]


def make_model():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((2,)),
            tf.keras.layers.Dense(48, activation="tanh"),
            tf.keras.layers.Dense(48, activation="tanh"),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.01), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def tree(directory):
    """Files below `directory` with their sizes."""
    return [
        (tf.io.gfile.join(top, name), tf.io.gfile.stat(tf.io.gfile.join(top, name)).length)
        for top, _, names in tf.io.gfile.walk(directory)
        for name in names
    ]


def demo(plugin, root, report):
    gfile = tf.io.gfile
    print("TensorFlow %s, plugin %s, files in %s" % (tf.__version__, os.path.basename(plugin), root))

    with report.step("register", "Register the plugin") as result:
        tf.experimental.register_filesystem_plugin(plugin)
        if gfile.exists(root):
            gfile.rmtree(root)
        gfile.makedirs(root)
        expect(gfile.isdir(root), "%s was made, but is not a directory" % root)
        result("%s:// is a filesystem like any other now" % root.split("://")[0])

    with report.step("write", "Write the data set as TFRecords") as result:
        points, labels = two_spirals(4000, seed=0)
        test_points, test_labels = two_spirals(1000, seed=1)
        gfile.makedirs(root + "/data")
        for shard in range(SHARDS):
            path = "%s/data/train-%02d-of-%02d.tfrecord" % (root, shard, SHARDS)
            write_records(path, points[shard::SHARDS], labels[shard::SHARDS])
        write_records(root + "/data/test.tfrecord", test_points, test_labels)
        files = tree(root + "/data")
        expect(len(files) == SHARDS + 1, "expected %d files, found %s" % (SHARDS + 1, files))
        result("%d points in %d files, %d kB" % (5000, len(files), sum(size for _, size in files) // 1000))

    with report.step("read", "List and read them back") as result:
        shards = sorted(gfile.glob(root + "/data/train-*.tfrecord"))
        for path in shards:
            report.note("%s  %d bytes" % (path, gfile.stat(path).length))
        expect(len(shards) == SHARDS, "the glob found %s" % shards)
        everything = tf.data.TFRecordDataset(root + "/data/test.tfrecord").batch(1000).map(parse)
        read_points, read_labels = next(iter(everything))
        expect(np.array_equal(read_points, test_points), "the points read differ from those written")
        expect(np.array_equal(read_labels, test_labels), "the labels read differ from those written")
        result("1000 points identical to those written")

    train = (
        tf.data.Dataset.list_files(root + "/data/train-*.tfrecord", shuffle=False)
        .interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, num_parallel_calls=SHARDS)
        .batch(50)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .cache(root + "/data/cache")
        .apply(tf.data.experimental.assert_cardinality(4000))
        .shuffle(4000, seed=2)
        .batch(50)
        .prefetch(tf.data.AUTOTUNE)
    )
    test = tf.data.TFRecordDataset(root + "/data/test.tfrecord").batch(500).map(parse)
    test = test.apply(tf.data.experimental.assert_cardinality(2))

    with report.step("train", "Train a Keras model from them, with summaries") as result:
        model = make_model()
        before = model.evaluate(test, verbose=0)[1]
        writer = tf.summary.create_file_writer(root + "/logs")
        # What TensorBoard's `tf.summary.scalar` writes, without the need to install TensorBoard.
        scalar = tf.compat.v1.SummaryMetadata(
            plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
        )

        def end_of_epoch(epoch, logs):
            with writer.as_default(step=epoch):
                tf.summary.write("accuracy", np.float32(logs["accuracy"]), metadata=scalar)
            if epoch % 5 == 4:
                report.note("epoch %d: loss %.3f, accuracy %.3f" % (epoch + 1, logs["loss"], logs["accuracy"]))

        history = model.fit(
            train,
            epochs=EPOCHS,
            verbose=0,
            shuffle=False,
            callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=end_of_epoch)],
        )
        writer.close()
        accuracy = model.evaluate(test, verbose=0)[1]
        expect(accuracy > 0.97, "the trained model is right on only %.1f %% of the test points" % (100 * accuracy))
        result("test accuracy %.1f %% (%.1f %% untrained)" % (100 * accuracy, 100 * before))

    with report.step("summaries", "Read the summaries back") as result:
        events = gfile.glob(root + "/logs/events.out.tfevents.*")
        seen = [
            float(tf.make_ndarray(value.tensor))
            for record in tf.data.TFRecordDataset(events)
            for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
        ]
        expect(np.allclose(seen, history.history["accuracy"]), "the summaries are %s" % seen)
        result("%d scalars in %d event file" % (len(seen), len(events)))

    with report.step("checkpoint", "Save and restore a checkpoint") as result:
        expected = model(test_points).numpy()
        step = tf.Variable(EPOCHS)
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(step=step, model=model), root + "/checkpoints", max_to_keep=2
        )
        for _ in range(3):
            manager.save()
        step.assign(0)
        for weight in model.weights:
            weight.assign(tf.zeros_like(weight))
        expect(not np.allclose(model(test_points), expected), "erasing the weights changed nothing")
        latest = tf.train.latest_checkpoint(root + "/checkpoints")
        tf.train.Checkpoint(step=step, model=model).restore(latest).assert_existing_objects_matched()
        expect(int(step) == EPOCHS, "the restored step is %d" % int(step))
        expect(np.array_equal(model(test_points), expected), "the restored model predicts something else")
        kept = [os.path.basename(path) for path in manager.checkpoints]
        expect(kept == ["ckpt-2", "ckpt-3"], "max_to_keep=2 kept %s" % kept)
        result("%s restored, older ones deleted" % os.path.basename(latest))

    with report.step("save", "Save and load the model") as result:
        if KERAS_3:
            model.save(root + "/spirals.keras")
            loaded = tf.keras.models.load_model(root + "/spirals.keras")
            expect(np.array_equal(loaded(test_points), expected), "the .keras model predicts something else")
            report.note("%s/spirals.keras  %d bytes" % (root, gfile.stat(root + "/spirals.keras").length))
            model.export(root + "/export", verbose=False)
            serving = tf.saved_model.load(root + "/export")
            served = serving.serve(test_points)
        else:
            # Keras 2 writes .keras and .h5 files to the local disk only; SavedModel works everywhere.
            model.save(root + "/export", save_format="tf")
            served = tf.keras.models.load_model(root + "/export")(test_points)
        expect(np.allclose(served, expected, atol=1e-6), "the SavedModel predicts something else")
        report.note("%s/export  %s" % (root, " ".join(sorted(gfile.listdir(root + "/export")))))
        result(".keras and SavedModel predict the same" if KERAS_3 else "SavedModel predicts the same")

    with report.step("clean up", "Rename, copy and delete") as result:
        files = tree(root)
        gfile.copy(root + "/data/test.tfrecord", root + "/copy.tfrecord")
        gfile.rename(root + "/copy.tfrecord", root + "/renamed.tfrecord")
        expect(not gfile.exists(root + "/copy.tfrecord"), "the renamed file is still there under its old name")
        renamed, original = (
            tf.io.read_file(root + name).numpy() for name in ("/renamed.tfrecord", "/data/test.tfrecord")
        )
        expect(renamed == original, "the copy differs from its original")
        gfile.rmtree(root)
        expect(not gfile.exists(root), "%s is still there after rmtree" % root)
        result("%d files, %d kB were in memory; all gone" % (len(files), sum(size for _, size in files) // 1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", help="the plugin's shared library")
    parser.add_argument("--root", default="mem://demo/spirals", help="the directory to work in (default: %(default)s)")
    arguments = parser.parse_args()
    report = Report()
    report.run(lambda: demo(arguments.plugin, arguments.root.rstrip("/"), report), tf.errors.OpError, OSError)
    report.table()
    print("Every result was as expected.")


if __name__ == "__main__":
    main()
