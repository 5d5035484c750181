"""What the cases of the sweep are made of."""
import os

import numpy as np
import tensorflow as tf

TYPE = os.environ.get("TF_PLUGIN_DEVICE_TYPE", "RUST_REF")
DEVICE = "/device:%s:0" % TYPE
CPU = "/device:CPU:0"
LACKS_TYPES = os.environ.get("TF_PLUGIN_LACKS_TYPES") == "1"

FLOATS = ["float32", "float64", "float16", "bfloat16"]
NUMBERS = FLOATS + ["int64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# Pairs of shapes that broadcast.
PAIRS = [((), ()), ((3,), ()), ((2, 3), (3,)), ((4, 1), (1, 5)), ((0, 3), (3,)), ((7, 1, 3), (5, 1)), ((17,), (17,))]
if LACKS_TYPES:
    # Four neighbours at a time, with one element for all along an axis.
    PAIRS += [((6, 8), (8,)), ((6, 8), (6, 1)), ((5, 1, 8), (3, 1)), ((64,), ()), ((3, 40), (3, 40))]
SHAPES = [(), (1,), (0,), (3, 0, 2), (17,), (2, 3), (3, 5, 7), (2, 3, 4, 5)]

random = np.random.default_rng(20)
raw = tf.raw_ops


def numbers(shape, dtype, low=-3.0, high=3.0):
    values = random.uniform(low, high, shape)
    dtype = tf.as_dtype(dtype)
    return values.astype(dtype.as_numpy_dtype)


def bits(shape, dtype):
    """Integers with any bits."""
    kind = np.iinfo(dtype)
    return random.integers(kind.min, kind.max, shape, dtype, endpoint=True)


def flags(shape):
    return random.integers(0, 2, shape).astype(bool)


def in_float(*inputs):
    """In float32 what is in a smaller type."""
    return [tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x for x in inputs]


def on_the_cpu_in_float(function):
    """The CPU sums in the type of the elements, or has no kernel for a small one."""
    def wide(*inputs):
        if TYPE in inputs[0].device:
            return function(*inputs)
        return tf.cast(function(*in_float(*inputs)), inputs[0].dtype)
    return wide


class Case:
    """One call: a function of inputs that are put on the device first."""

    def __init__(self, op, function, *inputs, tolerance=None, fails=None, is_required=False):
        """`is_required`: the device must have the types of the inputs."""
        self.op, self.function, self.inputs = op, function, inputs
        self.tolerance, self.fails, self.is_required = tolerance, fails, is_required

    def run(self, device):
        with tf.device(device):
            inputs = [tf.constant(x) for x in self.inputs]
            outputs = self.function(*inputs)
        flat = tf.nest.flatten(outputs)
        return [np.asarray(x.numpy()) for x in flat], flat


CASES = []


def case(op, function, *inputs, **options):
    CASES.append(Case(op, function, *inputs, **options))


def call(op, **attributes):
    """The raw operation, whose arguments are named in `attributes` by `None`."""
    names = [name for name, value in attributes.items() if value is None]
    rest = {name: value for name, value in attributes.items() if value is not None}
    return lambda *inputs: getattr(raw, op)(**dict(zip(names, inputs)), **rest)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -1.5, 6.0, 7.0, 100.0, -100.0, np.inf, -np.inf, np.nan]
