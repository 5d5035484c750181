"""What TensorFlow and Keras do only on devices of the type `GPU`; a step for each argument, in their order.

    kernels    each op that TensorFlow compiles with XLA for that type has a kernel of the plugin
    xla        such ops have the CPU's results, eagerly and in functions, and those with functions as attributes
    mistakes   their errors are the CPU's, and the process goes on
    ctc        `tf.nn.ctc_loss` of sparse labels, which is an op of cuDNN there: loss and gradient are the CPU's
    beside     of two plugins that want the type, RUST_GPU and RUST_GPV, one has its own; both compute
    names      graphs may have different functions of the same name; as the last step, since a session turns soft placement off

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import keras
import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops as ops
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.framework import kernels as registered

GPU, CPU = "/device:GPU:0", "/device:CPU:0"


def check(condition, what):
    if not condition:
        sys.exit(what)


def kernels():
    priorities = {}
    for kernel in registered.get_all_registered_kernels().kernel:
        if kernel.device_type == "GPU" and kernel.op.startswith("Xla"):
            priorities.setdefault(kernel.op, set()).add(kernel.priority)
    left = [op for op, found in priorities.items() if max(found) == 0]
    check(len(priorities) > 25 and left == ["XlaLaunch"], "TensorFlow's own: %r of %r" % (left, sorted(priorities)))


def beside():
    """In the order of the files in a directory."""
    others = [kind for kind in ("RUST_GPU", "RUST_GPV") if tf.config.list_physical_devices(kind)]
    check(len(others) == 1, "TensorFlow lists %s" % tf.config.list_physical_devices())
    for kind in ["GPU"] + others:
        with tf.device("/device:%s:0" % kind):
            total = tf.ones([2]) + 1.0
        check(total.device.endswith("/device:%s:0" % kind) and total.numpy().tolist() == [2.0, 2.0], "%s on %s" % (total, total.device))


@tf.function
def added(a, b):
    return a + b


@tf.function
def multiplied(a, b):
    return a * b


@tf.function
def less(a, b, *_):
    return a < b


def of(function, *arguments):
    return function.get_concrete_function(*arguments)


def cases():
    random = np.random.default_rng(7)
    x, y = (tf.constant(random.normal(size=(4, 6)), tf.float32) for _ in range(2))
    image, filters = tf.constant(random.normal(size=(2, 5, 5, 4)), tf.float32), tf.constant(random.normal(size=(3, 3, 2, 6)), tf.float32)
    scalar = tf.TensorSpec([], tf.float32)
    for index in tf.int32, tf.int64:
        for start in [1, 2], [-3, 9]:
            start = tf.constant(start, index)
            yield "slice_update", lambda start=start: keras.ops.slice_update(x, start, y[:2, :3])
            yield "dynamic_slice", lambda start=start, index=index: xla.dynamic_slice(x, start, tf.constant([2, 3], index))
    for dtype in tf.float16, tf.bfloat16, tf.float64, tf.complex64, tf.int8, tf.int32, tf.int64, tf.bool:
        whole = tf.cast(tf.constant(np.arange(24).reshape(4, 6)), dtype)
        yield "update of %s" % dtype.name, lambda whole=whole: ops.xla_dynamic_update_slice(whole, whole[:2, :3], tf.constant([2, 2]))
    yield "pad", lambda: xla.pad(x, 0.5, [1, 0], [0, 2], [1, 0])
    yield "barrier", lambda: ops.xla_optimization_barrier([x, tf.cast(x, tf.int32)])
    yield "sharding", lambda: ops.xla_sharding(x, sharding="")
    yield "reduce_precision", lambda: ops.xla_reduce_precision(x, 5, 3)
    yield "sort", lambda: ops.xla_sort(x)
    yield "key_value_sort", lambda: ops.xla_key_value_sort(x[0], tf.range(6))
    yield "einsum", lambda: xla.einsum(x, y, "ab,cb->ac")
    yield "dot", lambda: xla.dot(x, tf.transpose(y))
    yield "conv", lambda: xla.conv(image, filters, [2, 1], [(1, 1), (0, 2)], [1, 1], [1, 1], numbers(), feature_group_count=2)
    yield "broadcast_helper", lambda: ops.xla_broadcast_helper(x, x[0], [1])
    yield "reduce", lambda: xla.reduce(x, 0.5, [1], of(added, scalar, scalar))
    yield "reduce_window", lambda: xla.reduce_window(x, 1.0, of(multiplied, scalar, scalar), [2, 2], [1, 2])
    yield "select_and_scatter", lambda: xla.select_and_scatter(
        x, [2, 2], [2, 2], [(0, 0), (0, 0)], y[:2, :3], 0.0, of(less, scalar, scalar), of(added, scalar, scalar))
    yield "variadic_sort", lambda: ops.xla_variadic_sort([x], tf.constant(1), of(less, scalar, scalar), True)
    places = tf.constant([[2], [0]])
    yield "gather", lambda: ops.xla_gather(x, places, tf.constant([1, 6]), rows(), False)
    yield "scatter", lambda: ops.xla_scatter(x, places, y[:2], of(added, scalar, scalar), rows_to_change(), False)
    yield "self_adjoint_eig", lambda: tf.abs(ops.xla_self_adjoint_eig(tf.matmul(x, x, transpose_b=True), lower=True, max_iter=100, epsilon=1e-6)[0])


def numbers():
    dimensions = xla.xla_data_pb2.ConvolutionDimensionNumbers()
    dimensions.input_batch_dimension, dimensions.input_feature_dimension = 0, 3
    dimensions.output_batch_dimension, dimensions.output_feature_dimension = 0, 3
    dimensions.kernel_input_feature_dimension, dimensions.kernel_output_feature_dimension = 2, 3
    for spatial in dimensions.input_spatial_dimensions, dimensions.output_spatial_dimensions:
        spatial.extend([1, 2])
    dimensions.kernel_spatial_dimensions.extend([0, 1])
    return dimensions


def rows():
    """The rows of a matrix by a vector of their numbers."""
    dimensions = xla.xla_data_pb2.GatherDimensionNumbers(offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1)
    return dimensions.SerializeToString()


def rows_to_change():
    dimensions = xla.xla_data_pb2.ScatterDimensionNumbers(
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1)
    return dimensions.SerializeToString()


def results(function, device):
    with tf.device(device):
        return [one.numpy() for one in tf.nest.flatten(function())]


def xla_ops():
    for name, function in cases():
        expected = results(function, CPU)
        for way, call in ("eagerly", function), ("in a function", tf.function(function)):
            found = results(call, GPU)
            for one, other in zip(found, expected, strict=True):
                same = one.dtype == other.dtype and np.allclose(one.astype("complex64"), other.astype("complex64"), rtol=1e-5, atol=1e-5)
                check(same, "%s %s: %r, and not %r" % (name, way, one, other))


def names():
    for turn in range(3):
        for function, expected in (added, 10.0), (multiplied, 24.0):
            with tf.Graph().as_default() as graph:
                scalar = tf.TensorSpec([], tf.float32)
                x = tf.constant([1.0, 2.0, 3.0, 4.0])
                tf.identity(xla.reduce(x, float(function is multiplied), [0], of(function, scalar, scalar)), name="result")
            definition = graph.as_graph_def()
            [only] = definition.library.function
            [reduce] = [node for node in definition.node if node.op == "XlaReduce"]
            only.signature.name = reduce.attr["reducer"].func.name = "same"
            with tf.Graph().as_default() as graph, tf.device(GPU):
                tf.import_graph_def(definition, name="")
                with tf.compat.v1.Session() as session:
                    found = session.run("result:0")
            check(found == expected, "turn %d of %s: %r" % (turn, function, found))


def mistakes():
    x = tf.zeros([2, 4])
    for function in [lambda: ops.xla_dynamic_update_slice(x, tf.ones([2, 1, 1]), [0, 1]), lambda: ops.xla_pad(x, 0.0, [0], [1, 1], [0, 0]),
                     lambda: keras.ops.slice_update(x, [0, 0], tf.ones([3, 4])), lambda: ops.xla_einsum(x, x, "ab,cd->ad,e")]:
        for call in function, tf.function(function):
            try:
                results(call, GPU)
            except (tf.errors.OpError, ValueError) as error:
                check("compiler for platform" not in str(error), "%s" % error)
            else:
                sys.exit("a mistake is not an error")
    # It frees all kernels.
    tf.random.set_seed(1)
    check(results(lambda: x + 1.0, GPU)[0].sum() == 8.0, "the device does not compute")


def losses(device, blank, wrap):
    random = np.random.default_rng(3)
    logits = tf.constant(random.normal(size=(12, 2, 6)), tf.float32)
    labels = np.array([[1, 2, 2], [3, 1, 0]]) if blank == 0 else np.array([[1, 2, 2], [3, 1, 4]])
    sparse = tf.sparse.from_dense(labels.astype("int32"))

    def loss(logits):
        return tf.nn.ctc_loss(sparse, logits, None, [12, 10], blank_index=blank)

    with tf.device(device), tf.GradientTape() as tape:
        tape.watch(logits)
        found = (tf.function(loss) if wrap else loss)(logits)
    return [found.numpy(), tape.gradient(found, logits).numpy()]


def ctc():
    for blank in 0, -1, 5:
        expected = losses(CPU, blank, False)
        for device in GPU, None:
            for wrap in False, True:
                found = losses(device, blank, wrap)
                for one, other in zip(found, expected, strict=True):
                    check(np.allclose(one, other, rtol=1e-4, atol=1e-5), "blank %d: %r, and not %r" % (blank, one, other))


STEPS = {"kernels": kernels, "xla": xla_ops, "mistakes": mistakes, "ctc": ctc, "beside": beside, "names": names}

for step in sys.argv[1:]:
    STEPS[step]()
    print("ok " + step, flush=True)
