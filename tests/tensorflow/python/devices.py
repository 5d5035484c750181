"""Steps to take right after `import tensorflow`, one an argument, in their order.

    listed=COUNT   so many devices of the type RUST_TEST are there
    load=SO        load_pluggable_device_library succeeds
    copies         tensors of many sizes and types get onto the device and back unchanged

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

DEVICE = "/device:RUST_TEST:0"


def check(actual, expected, what):
    if actual != expected:
        sys.exit("%s is %r, expected %r" % (what, actual, expected))


def listed(count):
    check(len(tf.config.list_physical_devices("RUST_TEST")), int(count), "the number of devices")


def load(library):
    load_library.load_pluggable_device_library(library)


def copies(_):
    random = np.random.default_rng(1)
    for size in [0, 1, 3, 255, 256, 257, 100000, 1 << 20]:
        for dtype in ["uint8", "float32", "int64", "complex128"]:
            there = random.integers(0, 255, size).astype(dtype)
            with tf.device(DEVICE):
                tensor = tf.constant(there)
            check(tensor.device.endswith(DEVICE), True, "%r ends with %r" % (tensor.device, DEVICE))
            back = tensor.numpy()
            check(back.dtype, there.dtype, "the type")
            check(np.array_equal(back, there), True, "equality of %d values of %s" % (size, dtype))
            with tf.device("/device:CPU:0"):
                check(np.array_equal(tf.identity(tensor).numpy(), there), True, "the copy on the CPU")


STEPS = {"listed": listed, "load": load, "copies": copies}

for step in sys.argv[1:]:
    verb, _, value = step.partition("=")
    STEPS[verb](value)
    print("ok " + step, flush=True)
