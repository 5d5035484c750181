"""Steps to take right after `import tensorflow`, one an argument, in their order.

    listed=COUNT   so many devices of the type RUST_TEST are there
    load=SO        load_pluggable_device_library succeeds
    copies         tensors of many sizes and types get onto the device and back unchanged
    exists=URI     the filesystem of the URI's scheme is there
    computes       kernels compute, also with inputs in host memory, lists, and in place
    threads        kernels compute in 8 threads
    fails          kernels that fail or do something wrong raise errors, and nothing else breaks
    fails_later    work that fails raises an error once a value is fetched, and in later kernels
    variables      a variable is changed in place
    no_variables   an error says what to write in place of changing a variable in place
    other_types    for types without a kernel the error names the kernel that is missing; int32 works
    zeros_like     zeros and ones like a tensor of int32
    attributes     a kernel reads attributes of each type
    ops            new ops have shapes

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

from steps import same, take

DEVICE = "/device:RUST_TEST:0"


def listed(count):
    same(len(tf.config.list_physical_devices("RUST_TEST")), int(count), "the number of devices")


def lets_kernels_change_variables():
    return not (2, 19) <= tuple(map(int, tf.__version__.split(".")[:2])) <= (2, 21)


def load(library):
    load_library.load_pluggable_device_library(library)


def copies():
    random = np.random.default_rng(1)
    for size in [0, 1, 3, 255, 256, 257, 100000, 1 << 20]:
        for dtype in ["uint8", "float32", "int64", "complex128"]:
            there = random.integers(0, 255, size).astype(dtype)
            with tf.device(DEVICE):
                tensor = tf.constant(there)
            same(tensor.device.endswith(DEVICE), True, "%r ends with %r" % (tensor.device, DEVICE))
            back = tensor.numpy()
            same(back.dtype, there.dtype, "the type")
            same(np.array_equal(back, there), True, "equality of %d values of %s" % (size, dtype))
            with tf.device("/device:CPU:0"):
                same(np.array_equal(tf.identity(tensor).numpy(), there), True, "the copy on the CPU")


def exists(uri):
    same(tf.io.gfile.exists(uri), True, "the existence of " + uri)


def on_device(function, *arguments):
    """Calls a function on the device; what it answers is there, too."""
    with tf.device(DEVICE):
        answer = function(*arguments)
    same(answer.device.endswith(DEVICE), True, "%r ends with %r" % (answer.device, DEVICE))
    return answer


def constant(value, dtype="float32"):
    return on_device(lambda: tf.constant(value, dtype))


def equal(tensor, expected, what):
    actual = tensor.numpy().tolist()
    same(actual, expected, what)


def raises(error, text, function, *arguments):
    try:
        on_device(function, *arguments).numpy()
    except error as raised:
        same(text in str(raised), True, "%r in %r" % (text, str(raised)))
        return
    sys.exit("%s was expected: %s" % (error.__name__, text))


def in_place():
    from tensorflow.python.eager import context, execute

    with tf.device(DEVICE):
        [count] = execute.execute(
            b"HostdeviceInPlace", 1, inputs=[], attrs=(), ctx=context.context()
        )
    return int(count)


def computes():
    x = constant([1.0, -2.0, 3.0])
    equal(on_device(lambda: x + x), [2, -4, 6], "AddV2")
    equal(on_device(lambda: x + constant(1.0)), [2, -1, 4], "AddV2 with a scalar")
    equal(on_device(lambda: -x), [-1, 2, -3], "Neg")
    equal(on_device(lambda: -constant([])), [], "Neg of nothing")
    equal(on_device(lambda: constant([1, 2], "int64") + constant([3, 4], "int64")), [4, 6], "AddV2 of int64")
    equal(on_device(tf.nn.relu, x), [1, 0, 3], "Relu")
    equal(x, [1, -2, 3], "the input of Relu")
    equal(on_device(tf.nn.relu, constant([], "float64")), [], "Relu of nothing")
    equal(on_device(tf.add_n, [x, x, x]), [3, -6, 9], "AddN")
    for index in ["int32", "int64"]:
        dims = tf.constant([2, 1], index)
        filled = on_device(lambda: tf.raw_ops.Fill(dims=dims, value=constant(7.0)))
        equal(filled, [[7], [7]], "Fill with " + index)

    same(in_place(), 0, "the number of times in place so far: Python has the inputs")

    @tf.function
    def function(x, y):
        return tf.nn.relu(x + y)

    for _ in range(20):
        equal(on_device(function, x, constant([1.0, 1.0, 1.0])), [2, 0, 4], "Relu in a function")
    # Nobody else has the sum.
    same(in_place(), 20, "the number of times in place")


def threads():
    import threading

    @tf.function
    def function(x, y):
        for _ in range(10):
            x = tf.nn.relu(x + y)
        return -x

    def run(failures, number):
        for _ in range(5):
            value = on_device(function, constant([number]), constant([2.0])).numpy().tolist()
            if value != [-number - 20]:
                failures.append(value)

    failures = []
    running = [threading.Thread(target=run, args=(failures, number)) for number in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    same(failures, [], "what differs")


def fails():
    errors = tf.errors
    x = constant([1.0])
    raises(errors.InvalidArgumentError, "this kernel fails", tf.exp, x)
    panic = "plugin panicked in `hostdevice::kernels::Panics` at "
    raises(errors.InternalError, panic, tf.math.log, x)
    raises(errors.InternalError, ": this kernel panics", tf.math.log, x)
    raises(errors.InternalError, ": this kernel panics, too", tf.sign, x)
    # Of two kernels for the same nodes the one of the higher priority runs.
    raises(errors.InternalError, "the preferred kernel fails", tf.nn.relu6, x)
    raises(errors.InternalError, "the kernel made no output 0 of 1", tf.tanh, x)
    raises(errors.FailedPreconditionError, "this kernel cannot be made", tf.sin, x)
    raises(errors.InternalError, "this kernel panics when it is made", tf.cos, x)
    raises(errors.InvalidArgumentError, "there is no output 1: the node has 1", tf.tan, x)
    raises(errors.InvalidArgumentError, "input 0 is in device memory", tf.sinh, x)
    raises(errors.InvalidArgumentError, "no tensor has the shape [-1]", tf.cosh, x)
    raises(errors.InvalidArgumentError, "cannot be added", lambda: x + constant([1.0, 2.0, 3.0]))
    # The first of two kernels for the same nodes is there, the second is not.
    same(on_device(tf.math.rsqrt, x).shape, [], "the shape")
    # Kernels that name what their op does not have are left out, so that the op works elsewhere.
    for function in [tf.math.ceil, tf.math.floor]:
        raises(errors.InvalidArgumentError, "Could not satisfy", function, x)
        with tf.device("/device:CPU:0"):
            equal(function(tf.constant([1.0])), [1], "on the CPU")
    equal(on_device(tf.nn.relu, x), [1], "Relu after all that")


def fails_later():
    on_device(tf.math.asin, constant([1.0]))
    # 2.22 and later wait for the stream, which has the work's own error.
    minor = int(tf.__version__.split(".")[1])
    error = "PluggableDevice SyncAll failed" if minor < 22 else "this work fails"
    raises(tf.errors.InternalError, error, lambda: constant([1.0]))
    raises(tf.errors.InternalError, "this work fails", lambda: constant([1.0]) + constant([1.0]))


def variables():
    with tf.device(DEVICE):
        v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    on_device(lambda: v.assign_add([1.0, 1.0]).read_value())
    on_device(lambda: v.assign_sub([0.5, 0.0]).read_value())
    equal(v.read_value(), [1.5, 3.0], "the variable")
    equal(before, [1.0, 2.0], "what was read before")


def no_variables():
    with tf.device(DEVICE):
        v = tf.Variable([1.0, 2.0])
    raises(tf.errors.UnimplementedError, "write `v.assign(v + d)`", lambda: v.assign_add([1.0, 1.0]))
    on_device(lambda: v.assign(v + constant([1.0, 1.0])).read_value())
    equal(v.read_value(), [2.0, 3.0], "the variable")


def other_types():
    for dtype in ["float64", "int64", "float16", "complex64"]:
        with tf.device(DEVICE):
            v = tf.Variable(tf.constant([1, 2], dtype))
        in_place = "no kernel `AssignSubVariableOp` of %s" % dtype
        reason = in_place if lets_kernels_change_variables() else "this TensorFlow does not let plugins"
        raises(tf.errors.UnimplementedError, reason, lambda: v.assign_sub(tf.constant([1, 1], dtype)))
        # In a function the CPU computes what the device has no `Sub` for.
        tf.function(lambda: v.assign_sub(tf.constant([1, 1], dtype)))()
        equal(v.read_value(), [0, 1], "the variable of %s" % dtype)
        # And the device where it has `AddV2`, in each release.
        tf.function(lambda: v.assign_add(tf.constant([1, 1], dtype)))()
        equal(v.read_value(), [1, 2], "the variable of %s" % dtype)
    # TensorFlow keeps these on the CPU.
    tf.config.set_soft_device_placement(True)
    with tf.device(DEVICE):
        v = tf.Variable([1, 2])
        v.assign_add([1, 1])
    equal(v.read_value(), [2, 3], "the variable of int32")


def zeros_like():
    x = constant([[1, 2], [3, 4]], "int32")
    equal(tf_on(lambda: tf.zeros_like(x)), [[0, 0], [0, 0]], "zeros")
    equal(tf_on(lambda: tf.ones_like(x)), [[1, 1], [1, 1]], "ones")


def tf_on(function):
    with tf.device(DEVICE):
        return function()


def attributes():
    from tensorflow.python.framework import op_def_library

    values = {
        "i": -3, "is": [1, -2], "f": 0.5, "fs": [1.5, 2.5], "b": True, "bs": [True, False], "s": "text",
        "ss": ["a", "", "bc"], "t": tf.float64, "ts": [tf.int8, tf.bool], "shape": [2, None],
        "tensor": tf.make_tensor_proto([1.0, 2.0]),
    }

    @tf.function
    def function():
        with tf.device(DEVICE):
            return op_def_library.apply_op("HostdeviceAttributes", **values)

    text = function()
    same(
        bytes(text.numpy()).decode(),
        '-3 -3 [1, -2] 0.5 [1.5, 2.5] true [true, false] "text" ["a", "", "bc"] float64 [Int8, Bool] '
        "Some([Some(2), None]) [1.0, 2.0] true false true",
        "the attributes",
    )


def ops():
    from tensorflow.python.framework import op_def_library

    def twice(x):
        return op_def_library.apply_op("HostdeviceTwice", x=x)

    with tf.Graph().as_default():
        for shape, doubled in [([], []), ([2, 3], [2, 3, 2, 3]), ([None], [None, None]), (None, None)]:
            x = tf.compat.v1.placeholder(tf.float32, shape)
            actual = twice(x).shape
            same(actual.as_list() if actual.rank is not None else None, doubled, "the shape")
        try:
            twice(tf.compat.v1.placeholder(tf.float32, [7]))
            sys.exit("an error was expected")
        except ValueError as error:
            same("seven is one too many" in str(error), True, str(error))
    # TensorFlow's own op is still there.
    with tf.device("/device:CPU:0"):
        equal(tf.square(tf.constant([3.0])), [9], "the square")


def both():
    from tensorflow.python.framework import op_def_library

    @tf.function
    def double(x, device):
        with tf.device(device):
            return op_def_library.apply_op("BothDouble", x=x)

    # An op runs on the device that is asked for, or not at all.
    for device in ["/device:CPU:0", DEVICE]:
        equal(double(tf.constant([[1.5, 2.0]]), device), [[3, 4]], device)
    integers = tf.constant([5], tf.int64)
    equal(double(integers, "/device:CPU:0"), [10], "int64")
    try:
        double(integers, DEVICE)
        sys.exit("the device has no kernel for int64")
    except tf.errors.InvalidArgumentError as error:
        same("BothDouble" in str(error), True, str(error))


tf.config.set_soft_device_placement(False)
take(
    listed, load, copies, exists, computes, threads, fails, fails_later, variables, no_variables, other_types, zeros_like,
    attributes, ops, both,
)
