"""Works with a GPU until it is lost, and goes on without it.

    lost_gpu.py lost ERROR     small steps until one fails, for a GPU that the environment lets fail
    lost_gpu.py convolve ERROR the same with convolutions
    lost_gpu.py slow ERROR     matrix products that take the GPU minutes, with a limit of seconds

    lost_gpu.py leave ''        the same without a limit and without waiting for them: only the end of the process could

ERROR is a part of the error that every later call has to have. Writes `ok WAY` before the process ends, which it does as
any other: within seconds, with exit status 0.
"""
import atexit
import gc
import sys
import time

import numpy as np
import tensorflow as tf

# At the end Python takes everything apart, as in a user's process.
gc.unfreeze()
gc.set_threshold(700, 10, 10)
atexit.unregister(gc.freeze)

GPU = "/device:GPU:0"
# How long a call may take, in seconds, far below what the work of the GPU takes.
PATIENCE = 30


def check(condition, what):
    if not condition:
        sys.exit(what)


def error_of(what):
    """The error of a call, or None, in time."""
    since = time.monotonic()
    try:
        with tf.device(GPU):
            what()
        error = None
    except tf.errors.OpError as raised:
        error = raised
    took = time.monotonic() - since
    check(took < PATIENCE, "a call takes %.1f s and raises %r" % (took, error))
    return error


@tf.function
def function(x):
    return tf.nn.relu(tf.matmul(x, x) + 1.0)


def step(numbers, way):
    x = tf.constant(numbers)
    if way == "convolve":
        x = tf.nn.conv2d(x[tf.newaxis, :, :, tf.newaxis], tf.ones([3, 3, 1, 1]), 1, "SAME")[0, :, :, 0]
    y = function(tf.tanh(x))
    y.numpy()
    # More memory with each step.
    kept.append(tf.concat([y, y], 0))


def enqueue_slow(numbers):
    y = x = tf.constant(np.tile(numbers, (128, 128)))
    for _ in range(40):
        y = tf.matmul(y, x)
    return y


def slow(numbers):
    enqueue_slow(numbers).numpy()


kept = []
on_gpu = []


def main():
    way, expected = sys.argv[1:]
    numbers = np.eye(16, dtype="float32")
    check(tf.config.list_physical_devices("GPU"), "TensorFlow lists no GPU")
    with tf.device("/device:CPU:0"):
        before = tf.constant(numbers)
    # A GPU can be lost as early as this.
    error_of(lambda: on_gpu.append(tf.identity(before)))
    before = on_gpu[0] if on_gpu else before
    if way == "leave":
        error = error_of(lambda: kept.append(enqueue_slow(numbers)))
        check(not error, error)
        print("ok " + way, flush=True)
        return
    if way == "slow":
        error = error_of(lambda: slow(numbers))
    else:
        errors = (error_of(lambda: step(np.eye(16 + 16 * size, dtype="float32"), way)) for size in range(60))
        error = next((error for error in errors if error), None)
    check(error, "the GPU is not lost")
    print("first: %s: %s" % (type(error).__name__, error))
    # What TensorFlow itself says first can be about what follows from it; after that it is the GPU.
    texts = set()
    for name, what in [
        ("a kernel", lambda: tf.tanh(before)),
        ("the same", lambda: tf.tanh(before)),
        ("a function", lambda: function(before)),
        ("a copy to the GPU", lambda: tf.constant(numbers + 1)),
        # A copy from the GPU, if it was there so early.
        ("a copy from the GPU", lambda: (on_gpu or [tf.constant(numbers)])[0].numpy()),
        ("a kernel at the end", lambda: tf.matmul(before, before)),
    ]:
        error = error_of(what)
        check(error, "%s works on a lost GPU" % name)
        print("%s: %s: %s" % (name, type(error).__name__, error))
        # TensorFlow has its own text for ops that wait for the GPU, and writes the GPU's to stderr.
        if "SyncAll failed" not in str(error):
            check(expected in str(error), "%s: %s, not %s" % (name, error, expected))
            texts.add(str(error)[str(error).index(expected):].split(" [Op:")[0].split("\n")[0].rstrip())
    check(len(texts) == 1, "the errors differ: %r" % texts)
    with tf.device("/device:CPU:0"):
        check(tf.matmul(numbers, numbers).numpy()[0, 0] == 1, "the CPU")
    print("ok " + way, flush=True)


main()
