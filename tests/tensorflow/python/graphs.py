"""Steps with graphs and profiles on the device of the type RUST_TEST, one an argument, in their order.

    load=SO          load_pluggable_device_library succeeds
    constant=VALUE   a graph on the device whose constant is 1234.5 returns VALUE
    elsewhere        a graph on the CPU whose constant is 1234.5 answers that
    jit              a function that requests XLA runs on the device within another function
    profile=COUNT    a profile has COUNT planes of the device, with what its streams did

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import glob
import os
import tempfile
import time

import tensorflow as tf
from tensorflow.python.framework import load_library
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from steps import same, take

DEVICE = "/device:RUST_TEST:0"


def load(library):
    load_library.load_pluggable_device_library(library)


def answer(device):
    """What a graph of enough nodes for a graph pass answers."""
    with tf.device(device):
        variable = tf.Variable([0.0], shape=tf.TensorShape(None))
        other = tf.Variable([1.0])

    @tf.function
    def function():
        with tf.device(device):
            variable.assign(tf.constant([1234.5]))
            other.assign(other.read_value())
            return variable.read_value()

    return function().numpy().tolist()


def constant(value):
    same(answer(DEVICE), [float(value)], "the answer")


def elsewhere():
    same(answer("/device:CPU:0"), [1234.5], "the answer")


def jit():
    with tf.device(DEVICE):
        variable = tf.Variable([2.0])
        other = tf.Variable([1.0])

    @tf.function(jit_compile=True)
    def inner():
        other.assign(variable.read_value())
        return other.read_value()

    @tf.function
    def outer():
        with tf.device(DEVICE):
            result = inner()
            variable.assign(result)
            return variable.read_value()

    same(outer().numpy().tolist(), [2.0], "the answer")


def profile(count):
    with tempfile.TemporaryDirectory() as directory:
        before = time.time_ns()
        tf.profiler.experimental.start(directory)
        time.sleep(0.2)
        for size in range(10):
            with tf.device(DEVICE):
                tensor = tf.constant([1.0] * (size + 1))
            tensor.numpy()
        tf.profiler.experimental.stop()
        after = time.time_ns()
        [path] = glob.glob(os.path.join(directory, "**", "*.xplane.pb"), recursive=True)
        space = xplane_pb2.XSpace()
        with open(path, "rb") as file:
            space.ParseFromString(file.read())
    planes = [plane for plane in space.planes if "RUST_TEST" in plane.name]
    names = ["/device:CUSTOM:RUST_TEST:0"] * int(count)
    same([plane.name for plane in planes], names, "the list of the device's planes")
    for plane in planes:
        same(all(line.name.startswith("Stream ") for line in plane.lines), True, "lines for streams")
        events = [(line, event) for line in plane.lines for event in line.events]
        kinds = {plane.event_metadata[event.metadata_id].name for _, event in events}
        same(kinds, {"job"}, "what the streams did")
        same(len(events) >= 10, True, "at least a job for each copy, which %d is" % len(events))
        for line, event in events:
            # TensorFlow makes the time relative to the beginning of the profile.
            start = line.timestamp_ns + event.offset_ps // 1000
            same(2e8 <= start <= after - before, True, "%d after the sleep, in the profile" % start)
            same(event.duration_ps <= (after - before) * 1000, True, "a duration within the profile")


take(load, constant, elsewhere, jit, profile)
