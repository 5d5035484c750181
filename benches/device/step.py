"""Trains the demo's models on the reference device and on TensorFlow's CPU, in one process.

    python step.py --plugin librefdevice.so --models examples/device_demo [--rounds 15]

Rounds of STEPS steps, in which the devices take turns. On standard output: one JSON object, {"rows": [{"name",
DEVICE...}]}, with the seconds of one step for each round.
"""
import argparse
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

DEVICES = ["RUST_REF", "CPU"]
STEPS = 20


class Contestant:
    def __init__(self, kind, make_model, name, batch):
        random = np.random.default_rng(1)
        self.place = "/device:%s:0" % kind
        self.batch = batch
        self.images = random.random((STEPS * batch, 8, 8, 1), dtype=np.float32)
        self.labels = random.integers(0, 10, STEPS * batch, dtype=np.int32)
        with tf.device(self.place):
            self.model = make_model(name)
        places = {getattr(variable.value, "device", "") for variable in self.model.trainable_variables}
        if not all(place.endswith(self.place) for place in places):
            sys.exit("the variables are on %r, not on %r" % (places, self.place))

    def seconds(self):
        with tf.device(self.place):
            start = time.perf_counter()
            history = self.model.fit(self.images, self.labels, batch_size=self.batch, shuffle=False, verbose=0)
            elapsed = time.perf_counter() - start
        self.loss = history.history["loss"][0]
        return elapsed / STEPS


def measure(name, demo, rounds):
    print("timing: a step of the %s model" % name, file=sys.stderr, flush=True)
    contestants = [Contestant(kind, demo.make_model, name, demo.BATCH) for kind in DEVICES]
    taken = {kind: [] for kind in DEVICES}
    # The first round traces and warms up.
    for number in range(rounds + 1):
        for turn in range(len(DEVICES)):
            index = (turn + number) % len(DEVICES)
            seconds = contestants[index].seconds()
            if number:
                taken[DEVICES[index]].append(seconds)
        losses = [contestant.loss for contestant in contestants]
        if not np.allclose(*losses, rtol=1e-3):
            sys.exit("the losses differ: %r" % losses)
    return dict(name="the %s model" % name, **taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--models", required=True, help="the folder of job.py")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    load_library.load_pluggable_device_library(os.path.abspath(arguments.plugin))
    sys.path.insert(0, arguments.models)
    import job as demo

    print(json.dumps(dict(rows=[measure(name, demo, arguments.rounds) for name in ("dense", "convolutional")])))


if __name__ == "__main__":
    main()
