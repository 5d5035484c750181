"""What was launched for a function, and its results beside those op by op and on the CPU, for `fusion.py` and `patterns.py`."""
import collections
import functools
import json
import os
import sys

import numpy as np
import tensorflow as tf

from fusion_ops import random

TYPE = os.environ["TF_PLUGIN_DEVICE_TYPE"]
DEVICE, CPU = "/device:%s:0" % TYPE, "/device:CPU:0"
FUSED, MULTI_TENSOR = "RustGpuElementwise", "RustGpuMultiTensor"
# Largest difference to the CPU, relative to the larger of 1 and the magnitude.
TOLERANCE = {tf.float32: 2e-5, tf.float16: 4e-3, tf.bfloat16: 3e-2}

raw = tf.raw_ops


def check(condition, what):
    if not condition:
        sys.exit(what)


def of(values, dtype):
    """A tensor, whose conversion is not a launch."""
    with tf.device(CPU):
        return tf.cast(values, dtype)


def numbers(shape, dtype, low=-2.0, high=2.0):
    return of(random.uniform(low, high, shape), dtype)


def on(device, tensors):
    with tf.device(device):
        return [tf.identity(x) for x in tensors]


@functools.cache
def probe():
    with tf.device(DEVICE):
        return tf.zeros([1])


def counted():
    """How often each op ran. What is copied to the host writes the counters."""
    probe().numpy()
    with open(os.environ["RUST_GPU_COUNTERS"]) as file:
        counts = json.load(file)
    return collections.Counter({op: count for op, count in counts.items() if op not in ("device", "bytes")})


def traced(function, signature=None):
    def body(*inputs):
        with tf.device(DEVICE):
            return function(*inputs)
    return tf.function(body, input_signature=signature)


def launches(function, inputs):
    """The results of a function, and what was launched for them."""
    before = counted()
    results = [x.numpy() for x in tf.nest.flatten(function(*inputs))]
    return results, counted() - before


def same(found, expected):
    found, expected = found.astype("float64"), expected.astype("float64")
    return found.shape == expected.shape and np.array_equal(found, expected, equal_nan=True)


def near(found, expected, limit):
    found, expected = found.astype("float64"), expected.astype("float64")
    with np.errstate(all="ignore"):
        close = np.abs(found - expected) <= limit * np.maximum(1.0, np.abs(expected))
        return found.shape == expected.shape and np.all(close | (found == expected) | np.isnan(found) & np.isnan(expected))


def compare(function, inputs, what, expected=None, signature=None, exact=True, cpu=True, limit=None):
    """A function of eager tensors, fused on the device, against itself op by op and on the CPU. `expected` launches."""
    dtype = inputs[0].dtype
    there = on(DEVICE, inputs)
    found, ran = launches(traced(function, signature), there)
    if expected is not None:
        check(ran == expected, "%s: %r was launched and not %r" % (what, dict(ran), expected))
    if exact:
        with tf.device(DEVICE):
            alone = [x.numpy() for x in tf.nest.flatten(function(*there))]
        for index, (a, b) in enumerate(zip(found, alone)):
            check(same(a, b), "%s, output %d: %r and, op by op, %r" % (what, index, a, b))
    if cpu:
        with tf.device(CPU):
            right = [x.numpy() for x in tf.nest.flatten(function(*on(CPU, inputs)))]
        for index, (a, b) in enumerate(zip(found, right)):
            check(near(a, b, limit or TOLERANCE[dtype]), "%s, output %d: %r and on the CPU %r" % (what, index, a, b))


def as_written(on_=True):
    """TensorFlow's own passes compute some expressions in another way, which rounds differently."""
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": not on_, "constant_folding": not on_, "remapping": not on_})
