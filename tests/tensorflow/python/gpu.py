"""What programs do with a GPU; a step for each argument, in their order.

    statistics  TensorFlow says how many bytes are in use; as the first step
    threads     16 threads compute at once
    far         elements behind the first 128 MiB of a tensor
    fork        a fork of a process that uses the GPU is told that it cannot, and the process goes on
    twice       the plugin is loaded once more
    train       losses are those of the CPU
    lengths     an op by itself whose lengths are integers, and which has an output in host memory
    integers    shapes are computed in host memory
    logical     logical devices, which TensorFlow ignores, are an error; as the only step
    cpus        logical CPUs do not disturb the GPU; as the only step
    types       variables of types for which the device has no arithmetic are trained
    exact       products of float32 have all bits
    tf32        products of float32 may lack those that TF32 does not have, and float16 is as before
    pressure    with a limit of 64 MiB: a batch that is too large is an error, and one that nearly is trains as on the CPU

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import os
import signal
import sys
import threading
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

GPU, CPU = "/device:GPU:0", "/device:CPU:0"


def check(condition, what):
    if not condition:
        sys.exit(what)


def statistics():
    [gpu] = tf.config.list_physical_devices("GPU")
    # As scripts for a GPU do. It changes nothing: memory grows on this device anyway.
    tf.config.experimental.set_memory_growth(gpu, True)
    with tf.device(GPU):
        small = tf.ones([16]) + 1.0
        before = tf.config.experimental.get_memory_info("GPU:0")
        large = tf.ones([1 << 20]) + 1.0
        after = tf.config.experimental.get_memory_info("GPU:0")
        check(before["current"] + (4 << 20) <= after["current"] <= after["peak"], "%r, then %r" % (before, after))
        check(float(large[-1]) == float(small[-1]) == 2.0, "%r" % large)
        del large
        left = tf.config.experimental.get_memory_info("GPU:0")
        check(left["current"] < after["current"] and left["peak"] >= after["peak"], "%r, then %r" % (after, left))


@tf.function(input_signature=[tf.TensorSpec([None, None])])
def steps(x):
    for _ in tf.range(6):
        x = tf.tanh(tf.matmul(x, x) * 0.1 + x)
    return x


def threads():
    results = {}

    def compute(number, device):
        # Sizes differ, and so do the shaders' numbers.
        x = np.random.default_rng(number).normal(size=(20 + number, 20 + number)).astype("float32")
        with tf.device(device):
            results[device, number] = [steps(tf.constant(x + turn)).numpy() for turn in range(3)]

    for device in GPU, CPU:
        started = [threading.Thread(target=compute, args=(number, device)) for number in range(16)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    for number in range(16):
        for found, expected in zip(results[GPU, number], results[CPU, number]):
            check(np.allclose(found, expected, rtol=1e-4, atol=1e-5), "thread %d: %r, %r" % (number, found, expected))


def far():
    length = 40 << 20
    with tf.device(GPU):
        y = tf.fill([length], 2.0) * 3.0
        check(y[-3:].numpy().tolist() == [6.0] * 3, "the end is %r" % y[-3:])
        longer = tf.concat([y, tf.constant([1.0, 2.0, 3.0])], 0) * 2.0
        check(longer[-4:].numpy().tolist() == [12.0, 2.0, 4.0, 6.0], "the end is %r" % longer[-4:])
        check(tf.gather(longer, [length + 1, 5]).numpy().tolist() == [4.0, 12.0], "what is gathered")
        sums = tf.reduce_sum(tf.reshape(y, [8, -1]), 1).numpy()
        check(np.allclose(sums, length // 8 * 6.0, rtol=1e-5), "the sums are %r" % sums)
        check(not (longer.numpy()[:-3] != 12.0).any(), "what is copied to the host")


def fork():
    with tf.device(GPU):
        x = tf.ones([4]) + 1.0
        x.numpy()
        child = os.fork()
        if child == 0:
            try:
                (x + 1.0).numpy()
            except tf.errors.OpError as error:
                os._exit(0 if "start processes with `spawn`" in str(error) else 2)
            os._exit(1)
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended == (0, 0):
            os.kill(child, signal.SIGKILL)
        check(ended == (child, 0), "the fork has ended with %r" % (ended,))
        check((x + 1.0).numpy().tolist() == [3.0] * 4, "the process does not go on")


def twice():
    # As where the directory of the plugins has two names.
    load_library.load_pluggable_device_library(os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"])
    check(len(tf.config.list_physical_devices("GPU")) == 1, "there are more GPUs")
    with tf.device(GPU):
        check((tf.ones([2]) + 1.0).numpy().tolist() == [2.0, 2.0], "the GPU does not compute")


def losses(device, rows):
    with tf.device(device):
        x = tf.random.stateless_normal([rows, 64], [1, 2])
        y = tf.reduce_mean(x, 1, keepdims=True)
        weights = tf.Variable(tf.random.stateless_normal([64, 32], [3, 4]) * 0.1)
        found = []
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, weights)) - y))
            [gradient] = tape.gradient(loss, [weights])
            weights.assign(weights - 2.0 * gradient)
            found.append(float(loss))
    return np.array(found)


def train(rows=1 << 10):
    found, expected = losses(GPU, rows), losses(CPU, rows)
    check(found[-1] < found[0] and np.allclose(found, expected, rtol=1e-4), "the losses are %r, not %r" % (found, expected))


def lengths():
    units, inputs = 3, 5
    columns = 4 * units
    tensors = [tf.random.normal(shape) for shape in ((4, 2, inputs), (1, 2, units), (columns * (inputs + units + 2),))]

    def outputs(of):
        x, state, params = tensors
        with tf.device(GPU):
            return tf.raw_ops.CudnnRNNV3(input=x, input_h=state, input_c=state, params=params, sequence_lengths=of, rnn_mode="lstm",
                                         is_training=True, time_major=True)[0].numpy()

    whole, ended = outputs([4, 4]), outputs([4, 2])
    check(np.array_equal(whole[:, 0], ended[:, 0]) and np.array_equal(whole[:2, 1], ended[:2, 1]), "%r, then %r" % (whole, ended))
    check(whole[2:, 1].all() and not ended[2:, 1].any(), "%r, then %r" % (whole, ended))


def integers():
    with tf.device(GPU):
        shape = tf.constant([3, 1, 2])
        for found, expected in [(tf.concat([shape, shape], 0), [3, 1, 2, 3, 1, 2]), (tf.slice(shape, [1], [2]), [1, 2]), (shape + shape, [6, 2, 4])]:
            check(found.numpy().tolist() == expected and "CPU" in found.backing_device, "%r in %s" % (found, found.backing_device))


def logical():
    [gpu] = tf.config.list_physical_devices("GPU")
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=64)])
    try:
        with tf.device(GPU):
            tf.ones([4]) + 1.0
    except tf.errors.FailedPreconditionError as error:
        check("`tf.config.set_logical_device_configuration` has no effect" in str(error), "the error is %s" % error)
    else:
        sys.exit("the limit is ignored")


def cpus():
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.device(GPU):
        x = tf.ones([4]) + 1.0
    with tf.device("/device:CPU:1"):
        y = x * 2.0
    check("GPU" in x.device and "CPU:1" in y.device, "%s, then %s" % (x.device, y.device))
    check(y.numpy().tolist() == [4.0] * 4, "the CPU computes %r" % y)


def types():
    for dtype in tf.float64, tf.complex64, tf.complex128, tf.float16, tf.bfloat16, tf.int8, tf.uint16, tf.int32, tf.uint64:
        with tf.device(GPU):
            variable = tf.Variable(tf.cast([3, 5], dtype))

            @tf.function
            def changed():
                for _ in tf.range(3):
                    variable.assign_add(tf.cast([2, 3], dtype))
                    variable.assign_sub(tf.cast([1, 1], dtype))
                return tf.identity(variable)

            found = changed()
            check(tf.cast(found, tf.int32).numpy().tolist() == [6, 11], "of %s: %r" % (dtype.name, found))
            variable.assign(variable + tf.cast([1, 1], dtype))
            check(tf.cast(variable, tf.int32).numpy().tolist() == [7, 12], "of %s: %r" % (dtype.name, variable))
    x, losses = np.ones((4, 3)), []
    for device in GPU, CPU:
        with tf.device(device):
            model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones", dtype="float64")])
            model.compile("adam", "mse")
            losses.append(model.fit(x, np.ones((4, 1)), epochs=3, verbose=0).history["loss"])
    check(losses[0][2] < losses[0][0] and np.allclose(*losses, rtol=1e-6), "the losses are %r" % losses)


def products(dtype, fraction):
    """By which part a product and three convolutions of 1 + `fraction` and 1 differ from 1, a power of two."""
    with tf.device(GPU):
        number, one = tf.fill([1, 4, 4, 8], tf.cast(1.0 + fraction, dtype)), tf.ones([1, 1, 8, 8], dtype)
        product = tf.matmul(tf.reshape(number, [16, 8]), tf.reshape(one, [8, 8])) / 8
        forward = tf.nn.conv2d(number, one * 0.125, 1, "SAME")
        image = tf.raw_ops.Conv2DBackpropInput(input_sizes=[1, 4, 4, 8], filter=one * 0.125, out_backprop=number, strides=[1] * 4, padding="SAME")
        filters = tf.raw_ops.Conv2DBackpropFilter(input=number, filter_sizes=[1, 1, 8, 8], out_backprop=tf.ones_like(number) * 0.0625, strides=[1] * 4, padding="SAME")
        return {float(part) - 1.0 for x in (product, forward, image, filters) for part in tf.cast(x, tf.float32).numpy().ravel()}


def exact():
    check(products(tf.float32, 2.0 ** -12) == {2.0 ** -12}, products(tf.float32, 2.0 ** -12))


def tf32():
    check(products(tf.float32, 2.0 ** -12) == {0.0}, products(tf.float32, 2.0 ** -12))
    check(products(tf.float32, 2.0 ** -10) == {2.0 ** -10}, products(tf.float32, 2.0 ** -10))
    check(products(tf.float16, 2.0 ** -10) == {2.0 ** -10}, products(tf.float16, 2.0 ** -10))


def pressure():
    try:
        losses(GPU, 1 << 18)
    except tf.errors.ResourceExhaustedError as error:
        check("GPU" in str(error), "the error is %s" % error)
    else:
        sys.exit("the batch fits into the GPU's memory")
    train(3 << 14)
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    check(32 << 20 < peak <= 64 << 20, "the peak is %d" % peak)


STEPS = {"statistics": statistics, "threads": threads, "far": far, "fork": fork, "twice": twice, "train": train, "lengths": lengths,
         "integers": integers, "logical": logical, "cpus": cpus, "types": types, "exact": exact, "tf32": tf32, "pressure": pressure}

for step in sys.argv[1:]:
    STEPS[step]()
    print("ok " + step, flush=True)
