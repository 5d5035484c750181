"""Adds four floats on the devices of two plugins and on TensorFlow's CPU, in one process.

    python dispatch.py --plugin libbenchdevice.so --plugin libdevice_cpp.so [--rounds 101]

Each row is run in rounds, in which the devices take turns and another one goes first in each. On standard output: one
JSON object, {"rows": [{"name", DEVICE...}]}, with the seconds of one AddV2 for each round.
"""
import argparse
import gc
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library
from tensorflow.python.ops import gen_math_ops

DEVICES = ["RUST_BENCH", "CPP_BENCH", "CPU"]
OPS = 500


def eager(x, y):
    """One op after the other, as Python gets to them."""
    for _ in range(OPS):
        result = gen_math_ops.add_v2(x, y)
    return result


@tf.function(jit_compile=False)
def graph(x, y):
    """The same number in a graph, one behind the other."""
    for _ in range(OPS):
        x = gen_math_ops.add_v2(x, y)
    return x


ROWS = {"eager": (eager, 1), "in a graph, which runs them one by one": (graph, OPS)}


class Contestant:
    """A device with two tensors, and OPS additions of them."""

    def __init__(self, kind, function, times):
        self.place = "/device:%s:0" % kind
        self.function = function
        x, y = (np.arange(4, dtype=np.float32) + start for start in (1, 2))
        with tf.device(self.place):
            self.x, self.y = tf.constant(x), tf.constant(y)
        self.expected = x + times * y

    def seconds(self):
        with tf.device(self.place):
            start = time.perf_counter()
            result = self.function(self.x, self.y)
            # The work of the device is part of it.
            value = result.numpy()
            elapsed = time.perf_counter() - start
        if not result.device.endswith(self.place):
            sys.exit("the ops ran on %r, not on %r" % (result.device, self.place))
        if not np.array_equal(value, self.expected):
            sys.exit("%r adds wrongly: %r" % (self.place, value))
        return elapsed / OPS


def measure(name, function, times, rounds):
    print("timing: `AddV2`, " + name, file=sys.stderr, flush=True)
    contestants = [Contestant(kind, function, times) for kind in DEVICES]
    taken = {kind: [] for kind in DEVICES}
    # The first round warms up.
    for number in range(rounds + 1):
        for turn in range(len(DEVICES)):
            index = (turn + number) % len(DEVICES)
            seconds = contestants[index].seconds()
            if number:
                taken[DEVICES[index]].append(seconds)
    return dict(name=name, **taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", action="append", required=True)
    parser.add_argument("--rounds", type=int, default=101)
    arguments = parser.parse_args()
    for plugin in arguments.plugin:
        load_library.load_pluggable_device_library(os.path.abspath(plugin))
    # Ops that could be fused stay one after the other.
    tf.config.optimizer.set_experimental_options(dict(disable_meta_optimizer=True))
    gc.disable()
    rows = [measure(name, function, times, arguments.rounds) for name, (function, times) in ROWS.items()]
    print(json.dumps(dict(rows=rows)))


if __name__ == "__main__":
    main()
