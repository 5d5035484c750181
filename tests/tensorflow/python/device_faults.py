"""Runs a small program on the device of the type RUST_TEST, once for each case, each in its own process.

    device_faults.py SO COPY LIMIT CASE...

COPY is a copy of the plugin SO. TensorFlow is imported once; the processes are forked from there, before it has
threads. A case is a plan of faults, which becomes the variable HOSTDEVICE_FAULT, and, each behind a `;` and if there
are any, the steps to take in place of those of `PROGRAM`, and more variables:

    Stream::record_event fail@3;load copy_in kernel;TF_SE_PLUGIN_DEVICES=1

Writes a line of JSON for each case, in the order in which they end:

    {"case": ..., "status": exit status, or minus the signal, or null after LIMIT seconds, "steps": [[name, result]...],
     "stderr": ...}

A step's result is "ok", "wrong: ..." for other numbers than expected, the error's type and text, or "ended" if the
process did not get further.
"""
import json
import os
import signal
import sys
import tempfile
import time
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

DEVICE = "/device:RUST_TEST:0"

# How many processes run at a time; some only wait.
WIDTH = (os.cpu_count() or 1) + 2


class Wrong(Exception):
    """Numbers that are not those expected."""


def equal(tensor, expected):
    actual = tensor.numpy().tolist()
    if actual != expected:
        raise Wrong("%r, expected %r" % (actual, expected))


def constant(value):
    with tf.device(DEVICE):
        tensor = tf.constant(value, "float32")
    if not tensor.device.endswith(DEVICE):
        raise Wrong(tensor.device)
    return tensor


def load():
    load_library.load_pluggable_device_library(LIBRARY)


def load_copy():
    # Another file is another plugin, of the same name.
    load_library.load_pluggable_device_library(COPY)


def devices():
    count = len(tf.config.list_physical_devices("RUST_TEST"))
    if count != 1:
        raise Wrong("%d devices" % count)


def copy_in():
    constant([1.0, -2.0, 3.0])


def copy_out():
    equal(constant([1.0, -2.0, 3.0]), [1, -2, 3])


def kernel():
    x = constant([1.0, 2.0])
    with tf.device(DEVICE):
        y = x + x
    equal(y, [2, 4])


@tf.function
def function_of(x):
    with tf.device(DEVICE):
        for _ in range(5):
            x = tf.nn.relu(x + tf.constant([1.0, 1.0]))
        return -x


def function():
    equal(function_of(constant([1.0, 2.0])), [-6, -7])


def lists():
    # Copies within the device, and a fill for the element that is not set.
    with tf.device(DEVICE):
        handle = tf.raw_ops.TensorListReserve(
            element_shape=tf.constant([2]), num_elements=tf.constant(3), element_dtype=tf.float32
        )
        handle = tf.raw_ops.TensorListSetItem(
            input_handle=handle, index=tf.constant(1), item=constant([1.0, 2.0])
        )
        stacked = tf.raw_ops.TensorListStack(
            input_handle=handle, element_shape=tf.constant([2]), element_dtype=tf.float32
        )
    equal(stacked, [[0, 0], [1, 2], [0, 0]])


def again():
    kernel()


def cpu():
    with tf.device("/device:CPU:0"):
        equal(tf.constant([1.0]) + tf.constant([2.0]), [3])


def across():
    # A copy from the device that nobody waits for in Python.
    x = constant([1.0, 2.0])
    with tf.device("/device:CPU:0"):
        equal(tf.identity(x) + tf.constant([1.0, 1.0]), [2, 3])


@tf.function
def function_across(x):
    with tf.device("/device:CPU:0"):
        return tf.identity(x) + tf.constant([1.0, 1.0])


def across_in_graph():
    equal(function_across(constant([1.0, 2.0])), [2, 3])


def too_large():
    # More than all of the device's memory.
    constant(np.zeros(20 << 20, "float32"))


def too_much():
    # Two of these are half of the device's memory each, as TensorFlow divides it.
    KEPT.append(constant(np.ones(6 << 20, "float32")))
    with tf.device(DEVICE):
        KEPT.append(KEPT[0] + KEPT[0])
        KEPT.append(KEPT[1] + KEPT[1])


def no_room_for_an_output():
    # The first region of two MiB is full, there is no other, and each output takes some of what was set aside.
    x = constant([1.0, 2.0])
    KEPT.append(constant(np.zeros(((2 << 20) - 256) // 4, "float32")))
    with tf.device(DEVICE):
        for _ in range((2 << 20) // 256):
            KEPT.append(x + x)


def room_for_small_ones():
    # As before, except for what was set aside.
    KEPT.append(constant(np.zeros(((2 << 20) - 256) // 4, "float32")))
    for value in range(100):
        KEPT.append(constant([float(value)] * 64))
    for value, kept in enumerate(KEPT[1:]):
        with tf.device(DEVICE):
            equal(kept + kept, [2.0 * value] * 64)
    KEPT.clear()
    constant(np.zeros(1 << 18, "float32"))


def keep():
    KEPT.append(constant([1.0, 2.0]))


def kernel_on_kept():
    # No copy comes before it.
    with tf.device(DEVICE):
        KEPT[0] + KEPT[0]


def let_go():
    KEPT.clear()


def larger():
    # More than TensorFlow has in any region: it gives regions back.
    x = constant(np.full(10 << 20, 7.0, "float32"))
    if not (x.numpy() == 7).all():
        raise Wrong("other numbers than 7")


def threads():
    import threading

    errors = []

    def run():
        try:
            for _ in range(10):
                kernel()
        except Exception as error:
            errors.append(error)

    running = [threading.Thread(target=run) for _ in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


KEPT = []
LIBRARY, COPY, LIMIT, CASES = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
PROGRAM = [load, devices, copy_in, copy_out, kernel, function, lists, again, cpu]
OTHERS = [
    load_copy, across, across_in_graph, keep, kernel_on_kept, too_large, too_much, no_room_for_an_output,
    room_for_small_ones, let_go, larger, threads,
]
STEPS = {step.__name__: step for step in PROGRAM + OTHERS}


def attempt(step):
    try:
        step()
        return "ok"
    except Wrong as wrong:
        return "wrong: %s" % wrong
    except Exception as error:
        return "%s: %s" % (type(error).__name__, " ".join(str(error).split()))


def child(steps, variables, results):
    os.environ.update(variables)
    tf.config.set_soft_device_placement(False)
    for step in steps:
        # Before the step, so that it is known which one ends the process.
        results.write(json.dumps(step.__name__) + " ")
        results.flush()
        results.write(json.dumps(attempt(step)) + "\n")
        results.flush()


class Case:
    def __init__(self, text):
        self.text = text
        plan, names, variables = (text + ";;").split(";")[:3]
        steps = [STEPS[name] for name in names.split()] or PROGRAM
        variables = dict(variable.split("=", 1) for variable in variables.split())
        variables["HOSTDEVICE_FAULT"] = plan
        self.results, self.stderr = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.since = time.monotonic()
        self.pid = os.fork()
        if self.pid != 0:
            return
        os.dup2(self.stderr.fileno(), 2)
        try:
            child(steps, variables, self.results)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(70)
        # The process ends as others do, with all that runs at the exit.
        sys.exit(0)

    def ended(self):
        """What came of it, or None as long as it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        timed_out = pid == 0 and time.monotonic() - self.since > LIMIT
        if timed_out:
            # `faulthandler` says where it hangs.
            os.kill(self.pid, signal.SIGABRT)
            time.sleep(1)
            os.kill(self.pid, signal.SIGKILL)
            pid, status = os.waitpid(self.pid, 0)
        if pid == 0:
            return None
        steps = []
        self.results.seek(0)
        for line in self.results:
            name, end = json.JSONDecoder().raw_decode(line)
            steps.append([name, json.loads(line[end:].strip() or '"ended"')])
        self.stderr.seek(0)
        return {
            "case": self.text,
            "status": None if timed_out else os.waitstatus_to_exitcode(status),
            "steps": steps,
            "stderr": self.stderr.read(),
        }


def main():
    waiting, running = list(reversed(CASES)), []
    while waiting or running:
        while waiting and len(running) < WIDTH:
            running.append(Case(waiting.pop()))
        for case in list(running):
            ended = case.ended()
            if ended is not None:
                running.remove(case)
                print(json.dumps(ended), flush=True)
        time.sleep(0.01)


main()
