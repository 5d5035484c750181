"""A training job whose every file is in S3, in three programs. It is ordinary TensorFlow: only the URIs say S3.

    python demo_job.py prepare DIGITS.npz s3://bucket/digits
    python demo_job.py train s3://bucket/digits [--killed-at STEP]
    python demo_job.py serve s3://bucket/digits

Each program writes what it does to standard output, as one JSON object a line: `say` for people, `result` at the
end.
"""
import argparse
import json
import logging
import os
import signal
import time

# Before the import: TensorFlow's start-up messages would bury the output.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

for logger in ("tensorflow", "absl"):
    logging.getLogger(logger).setLevel(logging.ERROR)

gfile = tf.io.gfile
SHARDS = 8
BATCH = 32
STEPS = 540
SAVE_EVERY = 45
KERAS_3 = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 16)


def say(**what):
    print(json.dumps(what), flush=True)


def traffic():
    """What the plugin has counted in this process so far."""
    with gfile.GFile("s3:///metrics.json") as file:
        return json.loads(file.read())


# Records ------------------------------------------------------------------------------------------------------


def serialize(image, label):
    feature = {
        "image": tf.train.Feature(float_list=tf.train.FloatList(value=image)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def parse(records):
    features = {"image": tf.io.FixedLenFeature([64], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
    parsed = tf.io.parse_example(records, features)
    return parsed["image"], parsed["label"]


def prepare(arguments):
    """Writes the data set as TFRecords: a fifth of it for the test, the rest in shards for training."""
    data = np.load(arguments.digits)
    test = np.arange(len(data["labels"])) % 5 == 0

    def write(path, images, labels):
        with tf.io.TFRecordWriter(path) as writer:
            for image, label in zip(images, labels):
                writer.write(serialize(image, label))

    images, labels = data["images"][~test], data["labels"][~test]
    for shard in range(SHARDS):
        path = "%s/data/train-%02d-of-%02d.tfrecord" % (arguments.root, shard, SHARDS)
        write(path, images[shard::SHARDS], labels[shard::SHARDS])
    write(arguments.root + "/data/test.tfrecord", data["images"][test], data["labels"][test])

    written = gfile.glob(arguments.root + "/data/*.tfrecord")
    size = sum(gfile.stat(path).length for path in written)
    say(result=dict(train=len(labels), test=int(test.sum()), files=len(written), size=size, traffic=traffic()))


# Training -----------------------------------------------------------------------------------------------------


def make_model():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Reshape((8, 8, 1)),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Conv2D(64, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dropout(0.3),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.002), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    # The optimizer's slots exist before a checkpoint is restored into them.
    model.optimizer.build(model.trainable_variables)
    return model


def training_batches(root):
    return (
        tf.data.Dataset.list_files(root + "/data/train-*.tfrecord", shuffle=False)
        .interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, num_parallel_calls=SHARDS)
        .shuffle(2000, seed=2)
        .repeat()
        .batch(BATCH)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(2)
    )


def test_batch(root):
    return next(iter(tf.data.TFRecordDataset(root + "/data/test.tfrecord").batch(1000).map(parse)))


def train(arguments):
    """Trains from the last checkpoint on, if there is one, to the end; then exports the model."""
    root = arguments.root
    model = make_model()
    step = tf.Variable(0, dtype=tf.int64)
    batches = iter(training_batches(root))
    # The iterator belongs to the checkpoint: a resumed job goes on with the next batch, not with the first one.
    checkpoint = tf.train.Checkpoint(step=step, model=model, optimizer=model.optimizer, batches=batches)
    manager = tf.train.CheckpointManager(checkpoint, root + "/checkpoints", max_to_keep=3)
    restored = manager.restore_or_initialize()
    begin = int(step)
    say(say="begins at step %d" % begin + (", restored from %s" % os.path.basename(restored) if restored else ""))

    logs = tf.summary.create_file_writer(root + "/logs")
    # What `tf.summary.scalar` writes, which is part of TensorBoard; TensorFlow no longer installs it.
    scalar = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    )
    started = time.monotonic()
    while step < STEPS:
        images, labels = next(batches)
        result = model.train_on_batch(images, labels, return_dict=True)
        step.assign_add(1)
        with logs.as_default(step=step):
            tf.summary.write("loss", np.float32(result["loss"]), metadata=scalar)
        if int(step) % SAVE_EVERY == 0:
            logs.flush()
            manager.save()
            if int(step) % (3 * SAVE_EVERY) == 0:
                say(say="step %3d  loss %.3f  saved %s" % (step, result["loss"], os.path.basename(manager.latest_checkpoint)))
        if int(step) == arguments.killed_at:
            say(result=dict(begin=begin, end=int(step), traffic=traffic()))
            # No handler, no clean-up, nothing is flushed: what the kernel does to a job that runs out of memory.
            os.kill(os.getpid(), signal.SIGKILL)
    seconds = time.monotonic() - started
    logs.close()

    images, labels = test_batch(root)
    accuracy = model.evaluate(images, labels, verbose=0)[1]
    if KERAS_3:
        model.export(root + "/model/1", verbose=False)
    else:
        model.save(root + "/model/1", save_format="tf")
    kept = [os.path.basename(path) for path in manager.checkpoints]
    say(result=dict(begin=begin, end=int(step), accuracy=accuracy, kept=kept, seconds=seconds,
                    restored=restored and os.path.basename(restored), traffic=traffic()))


# Serving ------------------------------------------------------------------------------------------------------


def serve(arguments):
    """Loads the exported model, predicts the test images and reads the training's logs."""
    root = arguments.root
    model = tf.saved_model.load(root + "/model/1")
    images, labels = test_batch(root)
    [scores] = model.signatures["serving_default"](images).values()
    predicted = np.argmax(scores.numpy(), axis=1)
    say(say="predicted %s" % " ".join(map(str, predicted[:16])))
    say(say="labels    %s" % " ".join(map(str, labels.numpy()[:16])))

    steps = set()
    events = gfile.glob(root + "/logs/events.out.tfevents.*")
    for record in tf.data.TFRecordDataset(events):
        event = tf.compat.v1.Event.FromString(record.numpy())
        if event.summary.value:
            steps.add(event.step)
    say(result=dict(accuracy=float(np.mean(predicted == labels.numpy())), images=len(predicted), events=len(events),
                    logged=len(steps), complete=steps == set(range(1, STEPS + 1)), traffic=traffic()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    programs = parser.add_subparsers(required=True)
    program = programs.add_parser("prepare")
    program.add_argument("digits")
    program.add_argument("root")
    program.set_defaults(run=prepare)
    program = programs.add_parser("train")
    program.add_argument("root")
    program.add_argument("--killed-at", type=int, metavar="STEP")
    program.set_defaults(run=train)
    program = programs.add_parser("serve")
    program.add_argument("root")
    program.set_defaults(run=serve)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
