"""What is at the edges of kernels: many rows, long loops, indices that are outside, NaN; a step for each argument.

    rows      70,000 rows change others, or are summed, as on the CPU: all in one place, each in its own
    loops     a result of many elements is that of the CPU, or an error says what to do
    indices   an index outside of a tensor reads zeros, and changes nothing
    nan       NaN is where the CPU has it
    bits      sums that are computed in parts have the same bits each time

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf

GPU, CPU = "/device:GPU:0", "/device:CPU:0"
NAN, INF = float("nan"), float("inf")


def check(condition, what):
    if not condition:
        sys.exit(what)


def on(device, compute):
    with tf.device(device):
        return [tensor.numpy() for tensor in tf.nest.flatten(compute())]


def compare(what, compute, tolerance=0.0):
    for expected, found in zip(on(CPU, compute), on(GPU, compute)):
        # Those of less than 32 bits have their own type in NumPy.
        expected, found = (x.astype("float64") if x.dtype.kind in "fV" else x for x in (expected, found))
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        same = expected.shape == found.shape and np.allclose(found, expected, tolerance, tolerance * scale, equal_nan=True)
        check(same, "%s is %r, on the CPU %r" % (what, found, expected))


def gradient(compute, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compute(x)
    return tape.gradient(y, x)


def rows():
    count = 70000
    x = np.random.default_rng(1).integers(-9, 9, (count, 3)).astype("float32")
    for place, places in ("one", np.zeros(count, "int32")), ("each", np.arange(count, dtype="int32")[::-1]), ("ten", np.arange(count, dtype="int32") % 10):
        index, size = places[:, None], places.max() + 1
        for op in (tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_min):
            compare("%s, %s" % (op.__name__, place), lambda: op(x, places, size))
        compare("scatter_nd, " + place, lambda: tf.scatter_nd(index, x, [size, 3]))
        for op in (tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_sub, tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min, tf.tensor_scatter_nd_update):
            compare("%s, %s" % (op.__name__, place), lambda: op(tf.ones([size, 3]), index, x))
        compare("the gradient of gather, " + place, lambda: tf.convert_to_tensor(gradient(lambda p: tf.gather(p, places) * x, tf.ones([size, 3]))))
        compare("the gradient of gather_nd, " + place, lambda: tf.convert_to_tensor(gradient(lambda p: tf.gather_nd(p, index) * x, tf.ones([size, 3]))))
    # Whose elements are changed by more rows than a launch has.
    compare("wide rows", lambda: tf.math.unsorted_segment_sum(tf.tile(x[:40000, :1], [1, 70]), np.arange(40000) % 3, 3))


def loops():
    numbers = np.random.default_rng(2)
    a, b = (numbers.random((140000, width), dtype="float32") for width in (4, 70))
    compare("a product", lambda: [tf.matmul(a, b, transpose_a=True), tf.matmul(b, b, transpose_a=True)], 1e-4)
    compare("a running product", lambda: tf.math.cumprod(tf.fill([70000, 2], 1.0001)), 1e-4)
    compare("a running sum", lambda: tf.cumsum(tf.ones([70000, 2])))
    x = numbers.random(10_000_000, dtype="float32")
    x[9_900_000] = 2
    compare("the greatest", lambda: [tf.argmax(x), tf.argmin(-x), tf.reduce_max(x)])
    images = numbers.random((8, 400, 400, 1), dtype="float32")
    depthwise = lambda f: tf.nn.depthwise_conv2d(images, f, [1, 1, 1, 1], "SAME")
    compare("the gradient of a filter", lambda: gradient(depthwise, tf.ones([1, 1, 1, 1])), 1e-4)
    compare("a large filter", lambda: tf.nn.conv2d(images[:1, :300, :300], tf.ones([300, 300, 1, 1]), 1, "VALID"), 1e-4)
    try:
        pooled = on(GPU, lambda: tf.nn.max_pool2d(images[:1], 399, 1, "VALID"))
    except tf.errors.UnimplementedError as error:
        check("turns" in str(error) and "/CPU:0" in str(error), "the error is %s" % error)
    else:
        check(np.array_equal(pooled[0], on(CPU, lambda: tf.nn.max_pool2d(images[:1], 399, 1, "VALID"))[0]), "a large pool differs")


def indices():
    p = tf.reshape(tf.range(1.0, 61.0), [12, 5])
    for integer in ("int32", "int64"):
        least, greatest = np.iinfo(integer).min, np.iinfo(integer).max
        outside = np.array([-1, 12, -12, least, least + 1, greatest], integer)
        for dtype in ("float32", "bool", "int64", "float16"):
            params = tf.cast(p, dtype)
            for axis, rows in ((0, tf.transpose(params)[:, :5]), (1, params)):
                [found] = on(GPU, lambda: tf.raw_ops.GatherV2(params=params, indices=outside, axis=axis))
                check(not found.astype("float32").any(), "GatherV2 of %s at %s is %r" % (dtype, outside, found))
        [found] = on(GPU, lambda: tf.gather_nd(p, np.stack([outside[::-1], np.ones(6, integer)], 1)))
        check(not found.any(), "gather_nd at %s is %r" % (outside, found))
        [found] = on(GPU, lambda: tf.gather_nd(p, np.stack([np.ones(6, integer), outside], 1)))
        check(not found.any(), "gather_nd at %s is %r" % (outside, found))
        blocks = lambda: tf.raw_ops.SpaceToBatchND(input=tf.zeros([1, 0, 2, 1]), block_shape=[2, 1], paddings=np.array([[1, 1], [0, 0]], integer))
        compare("SpaceToBatchND of nothing", blocks)
        [found] = on(GPU, lambda: tf.raw_ops.ImageProjectiveTransformV3(
            images=tf.zeros([1, 0, 4, 3]), transforms=tf.ones([1, 8]), output_shape=[2, 2], fill_value=0.5, interpolation="NEAREST", fill_mode="CONSTANT"))
        check(found.shape == (1, 2, 2, 3), "ImageProjectiveTransformV3 of nothing is %r" % found)
        [found] = on(GPU, lambda: tf.raw_ops.GatherV2(params=tf.zeros([0, 5]), indices=outside, axis=0))
        check(found.shape == (6, 5) and not found.any(), "GatherV2 of nothing is %r" % found)
        index = np.append(outside, np.array(2, integer))[:, None]
        expected = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        for what, compute in {
            "scatter_nd": lambda: tf.scatter_nd(index, tf.ones([7]), np.array([12], integer)),
            "tensor_scatter_nd_update": lambda: tf.tensor_scatter_nd_update(tf.zeros([12]), index, tf.ones([7])),
            "unsorted_segment_sum": lambda: tf.math.unsorted_segment_sum(tf.ones([7]), index[:, 0], 12),
        }.items():
            [found] = on(GPU, compute)
            check(found.tolist() == expected, "%s at %s is %r" % (what, index[:, 0], found))
        [found] = on(GPU, lambda: tf.tensor_scatter_nd_add(tf.zeros([0, 3]), index, tf.ones([7, 3])))
        check(found.shape == (0, 3), "tensor_scatter_nd_add of nothing is %r" % found)
        labels = np.array([-1, least, greatest, 4, 1], integer)
        [loss, _] = on(GPU, lambda: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=tf.ones([5, 4]), labels=labels))
        check(np.isnan(loss).tolist() == [True] * 4 + [False], "the losses of labels %s are %r" % (labels, loss))
        compare("one_hot", lambda: tf.one_hot(outside, 3))


def nan():
    values = [NAN, 1.0, -1.0, 0.0, INF, -INF]
    a, b = np.repeat(np.float32(values), 6), np.tile(np.float32(values), 6)
    for dtype in ("float32", "float16", "bfloat16"):
        x, y = tf.cast(a, dtype), tf.cast(b, dtype)
        for op in ("ReluGrad", "Relu6Grad"):
            compare("%s of %s" % (op, dtype), lambda: getattr(tf.raw_ops, op)(gradients=x, features=y))
        for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad") if dtype != "bfloat16" else ():
            compare("%s of %s" % (op, dtype), lambda: getattr(tf.raw_ops, op)(y=y, dy=x))
        for op in ("maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            compare("%s of %s" % (op, dtype), lambda: getattr(tf.math, op)(x, y))
        compare("clip_by_value of %s" % dtype, lambda: tf.clip_by_value(x, tf.cast(-0.5, dtype), tf.cast(0.5, dtype)))
        for column in ([NAN], [NAN, 1], [1, NAN], [0, NAN, 1], [1, NAN, 0], [-INF], [-INF, NAN], [1, 2, NAN, 1, 2, 3]):
            # Vectors of the CPU, and what is left of them.
            for width in (1, 8, 17):
                rows, count = tf.cast(tf.tile(tf.constant(column, "float32")[:, None], [1, width]), dtype), len(column)
                what = "of %s x %d of %s" % (column, width, dtype)
                for op in (tf.math.unsorted_segment_max, tf.math.unsorted_segment_min):
                    compare("%s %s" % (op.__name__, what), lambda: op(rows, [0] * count, 2))
                for op in (tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min):
                    for start in (0.0, NAN):
                        compare("%s %s from %s" % (op.__name__, what, start), lambda: op(tf.cast(tf.fill([1, width], start), dtype), [[0]] * count, rows))
                for op in (tf.reduce_max, tf.reduce_min, tf.reduce_sum, tf.argmax, tf.argmin):
                    compare("%s %s" % (op.__name__, what), lambda: op(rows, 0))
                images = tf.reshape(rows, [1, count, 1, width])
                pool = lambda x: tf.nn.max_pool2d(x, [min(count, 2), 1], 1, "SAME")
                compare("max_pool2d " + what, lambda: pool(images))
                compare("the gradient of max_pool2d " + what, lambda: gradient(pool, images))
            # The CPU treats the last channels behind its vectors in another way.
            volumes = tf.cast(tf.tile(tf.reshape(tf.constant(column, "float32"), [1, count, 1, 1, 1]), [1, 1, 1, 1, 16]), dtype)
            compare("max_pool3d of %s of %s" % (column, dtype), lambda: tf.nn.max_pool3d(volumes, [count, 1, 1], 1, "VALID"))


def bits():
    random = np.random.default_rng(3)
    x, row = (tf.constant(random.normal(size=shape), "float32") for shape in ([6, 41, 37, 12], [12]))
    raw, none = tf.raw_ops, tf.zeros([0])
    strides = dict(strides=[1, 1, 1, 1], padding="SAME")
    for dtype in ("float32", "float16", "bfloat16"):
        y = tf.cast(x, dtype)
        for what, compute in {
            "sums": lambda: [tf.reduce_sum(y), tf.reduce_sum(y, [0, 1, 2]), tf.reduce_sum(y, [0, 1, 3]), tf.nn.l2_loss(y)],
            "a mean of rows": lambda: tf.reduce_mean(tf.reshape(y, [12, -1]), 1),
            "FusedBatchNormV3": lambda: raw.FusedBatchNormV3(x=y, scale=row, offset=row, mean=none, variance=none)[:3],
            "FusedBatchNormGradV3": lambda: raw.FusedBatchNormGradV3(
                y_backprop=y, x=y * y, scale=row, reserve_space_1=row, reserve_space_2=row * row, reserve_space_3=none)[:3],
            "the gradient of a depthwise filter": lambda: raw.DepthwiseConv2dNativeBackpropFilter(input=y, filter_sizes=[3, 3, 12, 1], out_backprop=y, **strides),
            "the gradient of a filter": lambda: raw.Conv2DBackpropFilter(input=y, filter_sizes=[1, 1, 12, 12], out_backprop=y, **strides),
        }.items():
            first = [found.tobytes() for found in on(GPU, compute)]
            for _ in range(9):
                check([found.tobytes() for found in on(GPU, compute)] == first, "%s of %s has other bits" % (what, dtype))


STEPS = {"rows": rows, "loops": loops, "indices": indices, "nan": nan, "bits": bits}

for step in sys.argv[1:]:
    STEPS[step]()
    print("ok " + step, flush=True)
