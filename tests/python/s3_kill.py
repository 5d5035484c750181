"""kill -9 in the middle of saving checkpoints, then an audit: the last complete checkpoint is whole and loads.

    python s3_kill.py --root s3://bucket/kill --control http://127.0.0.1:PORT [--kills 8]

Each round starts a process that saves one checkpoint after the other, waits until it is in the middle of one (a
different moment each time), kills it, and looks at what is in the bucket: as a user does, with TensorFlow, and from
outside.
"""
import argparse
import multiprocessing
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from s3_common import Control, check, split  # noqa: E402

# More than one part of an upload.
ELEMENTS = 5_000_000


def variables():
    step = tf.Variable(0, dtype=tf.int64)
    weights = tf.Variable(np.zeros(ELEMENTS, np.float32))
    return step, weights, tf.train.Checkpoint(step=step, weights=weights)


def save_for_ever(directory, saved):
    step, weights, checkpoint = variables()
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=2)
    manager.restore_or_initialize()
    while True:
        step.assign_add(1)
        weights.assign(np.full(ELEMENTS, float(step.numpy()), np.float32))
        manager.save()
        saved.value = int(step)


def audit(directory, saved, control):
    """The step of the latest checkpoint, which must be whole and no older than the last one reported as saved."""
    latest = tf.train.latest_checkpoint(directory)
    check(latest is not None, True, "there is a checkpoint")
    step, weights, checkpoint = variables()
    checkpoint.restore(latest)
    found = weights.numpy()
    check(bool((found == float(step.numpy())).all()), True, "all weights are of step %d" % int(step))
    check(int(step) in (saved, saved + 1), True, "the latest step %d is one of %d, %d" % (int(step), saved, saved + 1))
    # The others are whole as well. One that was being deleted may still be in the list: TensorFlow writes the list
    # before and after it deletes, and deletes the index first.
    for path in tf.train.get_checkpoint_state(directory).all_model_checkpoint_paths:
        if path == latest or tf.io.gfile.exists(path + ".index"):
            step, weights, checkpoint = variables()
            checkpoint.restore(path)
            check(bool((weights.numpy() == float(step.numpy())).all()), True, "all weights in %s are of one step" % path)
    # From outside: what is there under a final name is whole.
    bucket, key = split(directory)
    for name in control.keys(bucket):
        if name.startswith(key + "/ckpt") and name.endswith(".data-00000-of-00001"):
            check(tf.io.gfile.stat("s3://%s/%s" % (bucket, name)).length >= 4 * ELEMENTS, True, "the length of " + name)
    return int(tf.train.load_variable(latest, "step/.ATTRIBUTES/VARIABLE_VALUE"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, metavar="URI")
    parser.add_argument("--control", required=True, metavar="URL")
    parser.add_argument("--kills", type=int, default=8)
    arguments = parser.parse_args()
    control = Control(arguments.control)
    directory = arguments.root + "/checkpoints"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tensorflow"])
    # A network as it is, so that a save has many moments.
    control.ask("shape", latency_ms=20, connection_mbps=80)
    last = 0
    in_the_middle = 0
    for number in range(arguments.kills):
        saved = context.Value("q", -1)
        saver = context.Process(target=save_for_ever, args=(directory, saved))
        saver.start()
        # Two complete saves, to know how long one takes; then somewhere in the third.
        moments = []
        end = time.monotonic() + 120
        while len(moments) < 2:
            check(time.monotonic() < end and saver.is_alive(), True, "two saves within 120 s")
            if saved.value > last + len(moments):
                moments.append(time.monotonic())
            time.sleep(0.002)
        time.sleep((moments[1] - moments[0]) * (number + 0.5) / arguments.kills)
        before = saved.value
        saver.kill()
        saver.join(20)
        check(saver.exitcode, -9, "the exit status")
        in_the_middle += before == saved.value
        last = audit(directory, saved.value, control)
        print("killed after %d complete saves: step %d loads" % (saved.value, last), flush=True)
    check(in_the_middle, arguments.kills, "kills in the middle of a save")
    control.ask("shape")
    print("ok %d kills" % arguments.kills, flush=True)


if __name__ == "__main__":
    sys.exit(main())
