"""Functions on the device beside the CPU, for `patterns.py` and `attention.py`."""
import numpy as np
import tensorflow as tf

from fusion_compare import CPU, DEVICE, counted
from steps import check

random = np.random.default_rng(11)


def near(found, expected, limit, what):
    found, expected = (np.asarray(x, "float64") for x in (found, expected))
    check(found.shape == expected.shape, "%s: the shape is %r and not %r" % (what, found.shape, expected.shape))
    check(np.array_equal(np.isfinite(found), np.isfinite(expected)), "%s: %r and on the CPU %r" % (what, found, expected))
    known = expected[np.isfinite(expected)]
    scale = max(1.0, np.abs(known).max()) if known.size else 1.0
    error = np.abs(found - expected)[np.isfinite(expected)].max(initial=0.0) / scale
    check(error <= limit, "%s differs by %g: %r and on the CPU %r" % (what, error, found, expected))


def run(function, inputs, device, signature=None):
    with tf.device(device):
        there = [tf.identity(x) for x in inputs]

    @tf.function(input_signature=signature, jit_compile=False)
    def placed(*inputs):
        with tf.device(device):
            return function(*inputs)

    before = counted()
    first = [x.numpy() for x in tf.nest.flatten(placed(*there))]
    ran = counted() - before
    again = [x.numpy() for x in tf.nest.flatten(placed(*there))]
    check(all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again)), "the second run has other bits")
    return first, ran


def compare(function, inputs, what, expected, limit=2e-5, signature=None):
    """On the device, with `expected` launches of some ops, and on the CPU."""
    found, ran = run(function, inputs, DEVICE, signature)
    for op, launches in expected.items():
        check(ran[op] == launches, "%s: %d launches of %s and not %d: %r" % (what, ran[op], op, launches, dict(ran)))
    right, _ = run(function, inputs, CPU, signature)
    for index, (a, b) in enumerate(zip(found, right)):
        near(a, b, limit, "%s, output %d" % (what, index))


def gradients(normalize):
    """The results of a function of `x` and others, and the gradients of all for one of the first result."""
    def whole(weights, *inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y, *rest = normalize(*inputs)
        return [y, *rest, *tape.gradient(y, inputs, output_gradients=weights)]
    return whole
