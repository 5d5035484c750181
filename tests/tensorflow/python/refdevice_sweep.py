"""Sweeps the reference device's operations, or another's: each runs there and on the CPU, with the same inputs.

    refdevice_sweep.py [NAME...]

Without names all operations run that have a kernel on the device. TF_PLUGIN_DEVICE_TYPE is the type of the device,
TF_PLUGIN_LACKS_TYPES says that it does not have all types of the reference device: those cases are left out.
TF_PLUGIN_SWEEP_SAMPLE=5 runs one case of five of each operation, and those that must fail.
Shapes are empty, scalar, broadcast and odd ones. Results have the same types and shapes, and the same values except
for rounding: the tolerances are below. An operation that did not
run on the device, by the device's own count, is a failure; so is a kernel that was never swept.

Writes `ok NAME` for each operation, and a line for each failure.
"""
import json
import os
import sys

# The plain kernels are the reference: those of oneDNN return a wrong shape for no images.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

from sweep import digits, doubles, elementwise, images, lists, moves, signals, sparse, state, sums, windows
from sweep.case import CASES, CPU, DEVICE, LACKS_TYPES, TYPE

# Without it there is nothing to count; soft placement is off in any case.
COUNTERS = os.environ.get("REFDEVICE_COUNTERS")
# Of the cases of each operation the first, and then one of so many.
SAMPLE = int(os.environ.get("TF_PLUGIN_SWEEP_SAMPLE", "1"))
# Largest difference, relative to the larger of 1 and the magnitude.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}
GROUPS = [
    digits.digits, elementwise.unary, elementwise.gradients, elementwise.binary, elementwise.roundings, elementwise.choices, sums.sums, sums.reductions,
    sums.matrices, sums.probabilities, moves.arrangements, moves.rows, windows.convolutions, windows.volumes, windows.normalizations, images.images, images.resizes,
    images.views, state.randoms] + [
        windows.channels_first, sparse.products, sparse.segments, sparse.diagonals, state.draws, sums.counts, signals.complexes, signals.transforms,
        elementwise.quantized, doubles.functions, doubles.arithmetic, doubles.draws, doubles.poissons, doubles.gammas] * LACKS_TYPES


def counted():
    if COUNTERS is None:
        return None
    # Fetching something synchronizes, after which the counters are written.
    with tf.device(DEVICE):
        (tf.constant(1.0) + 1.0).numpy()
    with open(COUNTERS) as file:
        return json.load(file)


def differ(found, expected, tolerance):
    """What is different, or None."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return "%s %s and not %s %s" % (found.dtype, found.shape, expected.dtype, expected.shape)
    name = expected.dtype.name
    if name not in TOLERANCE:
        same = np.array_equal(found, expected)
    else:
        a, b = found.astype("float64"), expected.astype("float64")
        limit = tolerance if tolerance is not None else TOLERANCE[name]
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= limit * np.maximum(1.0, np.abs(b))
        same = np.all(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if same:
        return None
    return "%s and not %s" % (str(found.ravel()[:20]), str(expected.ravel()[:20]))


def registered():
    """The operations that have kernels on the device. Those of a negative priority are the SDK's, which only fail."""
    listed = kernels.get_all_registered_kernels().kernel
    return {kernel.op for kernel in listed if kernel.device_type == TYPE and kernel.priority >= 0}


def main(names):
    tf.config.set_soft_device_placement(False)
    np.seterr(all="ignore")
    groups = GROUPS + [state.variables, lists.lists] * (os.environ.get("REFDEVICE_SWEEP_VARIABLES") == "1")
    for group in groups:
        group()
    failures, done, due, before = [], {}, {}, counted()
    # Not a separate operation.
    known = registered() | {"Range"}
    met = {}
    for one in CASES:
        op = one.op or "Range"
        if op not in (names or known):
            continue
        met[op] = met.get(op, -1) + 1
        # Spread, because every second or fourth case may be the same in what an inner loop changes.
        if (met[op] * 2654435761 % 2**32) * SAMPLE >> 32 and not one.fails:
            continue
        what = "%s(%s)" % (op, ", ".join("%s%s" % (x.dtype, list(x.shape)) for x in map(np.asarray, one.inputs)))
        try:
            expected, _ = one.run(CPU)
        except Exception as error:  # The CPU has no kernel, or refuses.
            expected = error
        try:
            found, tensors = one.run(DEVICE)
        except Exception as error:
            found = error
        may_lack = LACKS_TYPES and not one.is_required
        if may_lack and isinstance(found, tf.errors.InvalidArgumentError) and "Could not satisfy device" in str(found):
            continue
        if may_lack and isinstance(found, tf.errors.NotFoundError) and "kernel" in str(found):
            continue
        # An op that has not this type anywhere.
        if may_lack and isinstance(found, Exception) and "is not in the list of allowed values" in str(expected):
            continue
        if one.fails:
            texts = one.fails.split("|")
            if not isinstance(found, Exception) or not any(text in str(found) for text in texts):
                failures.append("%s: %r and not an error with %r" % (what, found, one.fails))
            elif not isinstance(expected, Exception):
                failures.append("%s: %r on the CPU and %r on the device" % (what, expected, found))
        elif isinstance(expected, Exception):
            failures.append("%s on the CPU: %s" % (what, expected))
        elif isinstance(found, Exception):
            failures.append("%s on the device: %s" % (what, found))
        else:
            for index, (a, b) in enumerate(zip(found, expected)):
                text = differ(a, b, one.tolerance)
                if text:
                    failures.append("%s, output %d: %s" % (what, index, text))
        if one.op:
            done[op] = done.get(op, 0) + 1
            # A failing op may fail before its kernel runs.
            due[op] = due.get(op, 0) + (one.fails is None)
    after = counted()
    for op, times in sorted(done.items()):
        print("ok %s %d" % (op, times))
        if after is None:
            continue
        runs = after.get(op, 0) - before.get(op, 0)
        if runs < due[op] * 0.9:
            failures.append("%s ran %d times on the device and should have %d times" % (op, runs, due[op]))
    if not names:
        swept = {one.op or "Range" for one in CASES}
        swept &= set(done) | (set() if LACKS_TYPES else swept)
        # The CPU has no kernels for them; `train=recurrent` of refdevice.py compares the layers that Keras makes of them.
        swept |= {op for op in registered() if op.startswith("CudnnRNN")}
        # What a graph pass makes of others; fusion.py compares it with them.
        swept |= {op for op in registered() if op.startswith("RustGpu")}
        failures += ["%s has a kernel and was not swept" % op for op in sorted(registered() - swept)]
    for failure in failures:
        print("FAILED", failure)
    sys.exit("%d of %d failed" % (len(failures), len(CASES)) if failures else 0)


main(sys.argv[1:])
