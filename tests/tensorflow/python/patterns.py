"""Groups of ops in graphs on the device of the type TF_PLUGIN_DEVICE_TYPE that the graph pass replaces by others; steps, one an argument, in their order.
All but `rows`, `groups` and `finite` are about batch normalization.

    written    as `tf.nn.moments` and `tf.nn.batch_normalization` write it: results and gradients of all inputs are the CPU's, and those of the
               same ops one by one, in the same bits each time
    layers     as Keras' layer writes it, in float32 and mixed precision
    biases     after a bias, which changes nothing but the mean
    rows       layer normalization as Keras' layer writes it
    groups     group normalization as Keras' layer writes it
    others     what looks like it and is another thing is computed as it is written
    order      nodes that wait, are fed, or read memory that changes
    finite     whether all gradients are finite, which optimizers ask if they scale the loss
    off        nothing is replaced

RUST_GPU_COUNTERS is the file of the counters. Writes `ok STEP` after each step; the first that fails ends the process.
"""
import keras
import numpy as np
import tensorflow as tf

from fusion_compare import CPU, DEVICE, counted, raw
from pattern_compare import compare, gradients, near, random, run
from steps import check, take

MOMENTS, GRADIENT, LAYER, GROUP, FINITE = ["RustGpu" + name for name in "Moments BatchNormGrad LayerNormGrad GroupNormGrad AllFinite".split()]


def moments_first(x, scale=None, offset=None, axes=(0, 1, 2), keepdims=False):
    mean, variance = tf.nn.moments(x, axes, keepdims=keepdims)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3), mean, variance


# Each is two launches: of the sums, and of the rest.
BOTH = {MOMENTS: 2, GRADIENT: 2, "Tile": 0, "BroadcastTo": 0, "SquaredDifference": 0}


def written():
    shapes = [(4, 5, 3, 7), (2, 16, 16, 8), (3, 2, 2, 1), (64, 33), (2, 3, 4, 5, 6)]
    for number, shape in enumerate(shapes):
        axes, channels = tuple(range(len(shape) - 1)), shape[-1:]
        x, weights = (tf.constant(random.normal(3.0, 2.0, shape), tf.float32) for _ in range(2))
        scale, offset = (tf.constant(random.uniform(0.5, 2.0, channels), tf.float32) for _ in range(2))
        kept = tf.reshape(scale, (1,) * len(axes) + channels)
        any_batch = [tf.TensorSpec((None,) + shape[1:], tf.float32)] * 2 + [tf.TensorSpec(channels, tf.float32)] * 2
        usual = gradients(lambda x, scale, offset: moments_first(x, scale, offset, axes))
        compare(usual, [weights, x, scale, offset], "%r" % (shape,), BOTH)
        compare(usual, [weights, x, scale, offset], "%r of any batch" % (shape,), BOTH, signature=any_batch)
        if number > 1:
            continue
        for what, function, inputs in [
            ("without a scale", lambda x, offset: moments_first(x, None, offset), [x, offset]),
            ("without an offset", lambda x, scale: moments_first(x, scale, None), [x, scale]),
            ("alone", lambda x: moments_first(x), [x]),
            ("with axes of one", lambda x, scale, offset: moments_first(x, scale, offset, keepdims=True), [x, kept, kept]),
            ("with a scale of more axes", lambda x, scale, offset: moments_first(x, scale, offset), [x, kept, offset]),
            ("with one scale for all", lambda x, scale, offset: moments_first(x, scale, offset), [x, scale[0], offset]),
        ]:
            # A scale of one number is repeated first.
            launches = {**BOTH, GRADIENT: 3} if what == "with one scale for all" else BOTH
            compare(gradients(function), [weights] + inputs, "%r %s" % (shape, what), launches)

        def residual(x, scale, offset):
            y, *rest = moments_first(x, scale, offset)
            return tf.nn.relu(y) + tf.tanh(x) * x, *rest
        compare(gradients(residual), [weights, x, scale, offset], "%r beside another use" % (shape,), BOTH)

        def twice(x, scale, offset):
            first, *rest = moments_first(x, scale, offset)
            second, *more = moments_first(tf.sin(x), offset, scale)
            return first + second, *rest, *more
        compare(gradients(twice), [weights, x, scale, offset], "%r twice" % (shape,), {**BOTH, MOMENTS: 4, GRADIENT: 4})
    # A large mean takes few digits from the variance, and not all of them.
    x = tf.constant(random.normal(1000.0, 0.5, (4, 8, 8, 4)), tf.float32)
    compare(lambda x: moments_first(x)[1:], [x], "a large mean", {MOMENTS: 2})
    for what, x in [("NaN", np.where(np.arange(72).reshape(2, 3, 3, 4) == 5, np.nan, 1.5)), ("nothing", np.zeros((0, 3, 3, 4)))]:
        x = tf.constant(x, tf.float32)
        compare(gradients(moments_first), [tf.ones_like(x), x, tf.ones(4), tf.ones(4)], what, {MOMENTS: 2})


def layers():
    for policy, limit in (("float32", 5e-5), ("mixed_float16", 5e-3), ("mixed_bfloat16", 4e-2)):
        keras.mixed_precision.set_global_policy(policy)
        for options in [dict(), dict(axis=3), dict(scale=False), dict(center=False)]:
            # As after a convolution.
            x = tf.constant(random.normal(1.0, 2.0, (4, 6, 5, 8)), keras.mixed_precision.global_policy().compute_dtype)
            weights = tf.cast(random.normal(size=x.shape), x.dtype)
            results = []
            for device in (DEVICE, CPU):
                with tf.device(device):
                    layer = keras.layers.BatchNormalization(momentum=0.9, **options)
                    layer.build(x.shape)
                    for variable in layer.trainable_variables:
                        variable.assign(tf.reshape(tf.linspace(0.5, 1.5, 8), variable.shape))

                def step(weights, x, layer=layer):
                    with tf.GradientTape() as tape:
                        tape.watch(x)
                        y = keras.ops.relu(layer(x * 2, training=True))
                    variables = [variable.value for variable in layer.trainable_variables]
                    return [y, *tape.gradient(y, [x] + variables, output_gradients=weights)]
                found, ran = run(step, [weights, x], device)
                results.append(found + [variable.numpy() for variable in layer.non_trainable_variables])
                if device == DEVICE:
                    missing = {op: ran[op] for op, launches in BOTH.items() if ran[op] != launches}
                    check(not missing, "%s %r: %r" % (policy, options, missing))
                    # What is 16 bits wide stays so.
                    check(policy == "float32" or ran["Cast"] == 0, "%s %r: %d conversions" % (policy, options, ran["Cast"]))
            for index, (a, b) in enumerate(zip(*results)):
                near(a, b, limit, "%s %r, output %d" % (policy, options, index))
    keras.mixed_precision.set_global_policy("float32")


# Neither sum nor gradient of the bias is a launch of its own.
NO_BIAS = {**BOTH, "BiasAdd": 0, "BiasAddGrad": 0}


def biases():
    # As of a convolution, whose axes are known.
    def add(x, bias):
        return tf.nn.bias_add(tf.nn.conv2d(x, 2 * tf.eye(x.shape[-1])[None, None], 1, "VALID"), bias)

    def normalize(x, bias, scale, offset):
        return tf.nn.relu(moments_first(add(x, bias), scale, offset)[0]),

    # The mean is that of the sum.
    def with_mean(x, bias, scale, offset):
        return moments_first(add(x, bias), scale, offset)

    def twice(x, bias, scale, offset):
        return tf.nn.relu(normalize(x, bias, scale, offset)[0] + normalize(tf.sin(x), scale, bias, offset)[0]),
    # The gradient of the bias is 0, and on the CPU a sum of rounding errors.
    limit = 2e-4
    for shape in [(4, 5, 3, 7), (2, 16, 16, 8), (3, 2, 2, 1)]:
        x, weights = (tf.constant(random.normal(3.0, 2.0, shape), tf.float32) for _ in range(2))
        inputs = [tf.constant(random.uniform(0.5, 2.0, shape[-1:]), tf.float32) for _ in range(3)]
        for function in (normalize, with_mean):
            compare(gradients(function), [weights, x] + inputs, "%s %r" % (function.__name__, shape), NO_BIAS, limit)
        compare(gradients(twice), [weights, x] + inputs, "twice %r" % (shape,), {**NO_BIAS, MOMENTS: 4, GRADIENT: 4}, limit)
        # What is not finite stays so.
        wrong = tf.tensor_scatter_nd_update(weights, [[0] * 4], [np.inf])
        compare(gradients(with_mean), [wrong, x] + inputs, "infinite %r" % (shape,), NO_BIAS, limit)
    # A mean for each of several axes, for each row of a channel, or for all elements has no bias of its own.
    x, weights = (tf.constant(random.normal(3.0, 2.0, (8, 4, 16)), tf.float32) for _ in range(2))
    bias = tf.constant(random.uniform(0.5, 2.0, 16), tf.float32)
    for axes in ([0], [0, 1], [0, 1, 2]):
        ones = tf.ones([1 if axis in axes else size for axis, size in enumerate(x.shape)])
        several = lambda x, bias, scale, offset: moments_first(tf.nn.bias_add(x, bias), scale, offset, axes, keepdims=True)
        compare(gradients(several), [weights, x, bias, ones, ones], "a bias before moments over %r" % axes, {}, limit)

    def other_axis(weights, x, bias, scale, offset):
        with tf.GradientTape() as tape:
            y = add(x, bias)
            tape.watch(y)
            normal = moments_first(y, scale, offset)[0]
        return tf.raw_ops.BiasAddGrad(out_backprop=tape.gradient(normal, y, output_gradients=weights), data_format="NCHW"),
    x, weights = (tf.constant(random.normal(3.0, 2.0, (2, 4, 3, 4)), tf.float32) for _ in range(2))
    compare(other_axis, [weights, x] + [tf.ones(4)] * 3, "a sum along another axis", {}, limit)
    for policy, limit in (("float32", 2e-4), ("mixed_float16", 5e-3), ("mixed_bfloat16", 4e-2)):
        keras.mixed_precision.set_global_policy(policy)
        x = tf.constant(random.normal(1.0, 2.0, (4, 6, 5, 3)), keras.mixed_precision.global_policy().compute_dtype)
        weights = tf.cast(random.normal(size=(4, 6, 5, 8)), x.dtype)
        results = []
        for device in (DEVICE, CPU):
            with tf.device(device):
                keras.utils.set_random_seed(5)
                layers = [keras.layers.Conv2D(8, 1, bias_initializer="random_normal"), keras.layers.BatchNormalization(momentum=0.9)]
                model = keras.Sequential([keras.Input((6, 5, 3), dtype=x.dtype.name), *layers, keras.layers.Activation("tanh")])

            def step(weights, x, model=model):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = model(x, training=True)
                variables = [variable.value for variable in model.trainable_variables]
                return [y, *tape.gradient(y, [x] + variables, output_gradients=weights)]
            found, ran = run(step, [weights, x], device)
            results.append(found + [variable.numpy() for variable in model.non_trainable_variables])
            if device == DEVICE:
                missing = {op: ran[op] for op, launches in NO_BIAS.items() if ran[op] != launches}
                check(not missing, "%s: %r" % (policy, missing))
        for index, (a, b) in enumerate(zip(*results)):
            # The CPU sums the gradient of the bias of 120 rounded numbers.
            near(a, b, 10 * limit if index == 3 else limit, "%s, output %d" % (policy, index))
    keras.mixed_precision.set_global_policy("float32")


ROWS = {MOMENTS: 1, LAYER: 3, "Tile": 0, "BroadcastTo": 0, "SquaredDifference": 0}


def rows():
    for policy, limit in (("float32", 2e-5), ("mixed_float16", 4e-3), ("mixed_bfloat16", 3e-2)):
        keras.mixed_precision.set_global_policy(policy)
        dtype = keras.mixed_precision.global_policy().compute_dtype
        for shape in [(3, 5, 8), (2, 7), (4, 3, 2, 33), (70, 1000), (2, 9, 4096), (300, 2, 12)]:
            x, weights = (tf.constant(random.normal(2.0, 1.5, shape), dtype) for _ in range(2))
            scale, offset = (tf.constant(random.uniform(0.5, 2.0, shape[-1:]), tf.float32) for _ in range(2))

            def normalize(x, scale, offset):
                y = keras.ops.layer_normalization(x * 2, scale, offset, -1, 1e-3)
                return keras.ops.cast(y, dtype),
            any_batch = [tf.TensorSpec((None,) + shape[1:], dtype)] * 2 + [tf.TensorSpec(shape[-1:], tf.float32)] * 2
            for signature in (None, any_batch):
                what = "%s %r%s" % (policy, shape, " of any batch" if signature else "")
                compare(gradients(normalize), [weights, x, scale, offset], what, ROWS, limit, signature)
    keras.mixed_precision.set_global_policy("float32")
    x, weights = (tf.constant(random.normal(2.0, 1.5, (6, 5, 8)), tf.float32) for _ in range(2))
    ones = tf.ones(8)

    def residual(x, scale, offset):
        return keras.ops.layer_normalization(x, scale, offset, -1, 1e-3) + tf.tanh(x) * x,
    compare(gradients(residual), [weights, x, ones, ones], "beside another use", ROWS)

    # Without a scale or an offset the moments alone are found.
    for what, function, inputs in [
        ("without a scale", lambda x, offset: (keras.ops.layer_normalization(x, None, offset, -1, 1e-3),), [x, ones]),
        ("without an offset", lambda x, scale: (keras.ops.layer_normalization(x, scale, None, -1, 1e-3),), [x, ones]),
        ("of two axes", lambda x: (keras.ops.layer_normalization(x, tf.ones((5, 8)), tf.ones((5, 8)), [-2, -1], 1e-3),), [x]),
    ]:
        compare(gradients(function), [weights] + inputs, what, {LAYER: 0})
    empty = tf.ones((0, 5, 8))
    compare(gradients(residual), [empty, empty, ones, ones], "nothing", {})


# The moments are sums and the rest, the gradient sums, those of groups, those of channels, and the elements.
GROUPS = {MOMENTS: 2, GROUP: 4, "Tile": 0, "BroadcastTo": 0, "SquaredDifference": 0}


def group_layer(shape, dtype, expected, limit, what, any_batch=False, **options):
    """A layer between two ops, with all its gradients, on both devices."""
    layer = keras.layers.GroupNormalization(**options)
    with tf.device(CPU):
        layer.build(shape)
    x, weights = (tf.constant(random.normal(2.0, 1.5, shape), dtype) for _ in range(2))
    variables = [tf.constant(random.uniform(0.5, 2.0, variable.shape), tf.float32) for variable in layer.trainable_variables]

    def normalize(x, *values):
        y, _ = layer.stateless_call(values, [], x * 2)
        return keras.ops.tanh(y),
    signature = [tf.TensorSpec((None,) + shape[1:], dtype)] * 2 + [tf.TensorSpec(value.shape, tf.float32) for value in variables]
    compare(gradients(normalize), [weights, x] + variables, what, expected, limit, signature if any_batch else None)


def groups():
    for policy, limit in (("float32", 5e-5), ("mixed_float16", 6e-3), ("mixed_bfloat16", 4e-2)):
        keras.mixed_precision.set_global_policy(policy)
        dtype = keras.mixed_precision.global_policy().compute_dtype
        for shape, count in [((3, 5, 4, 12), 4), ((2, 7, 3, 15), 5), ((1, 16, 16, 64), 32), ((4, 9, 6), 2), ((2, 3, 2, 4, 10), 5), ((70, 2, 2, 8), 2),
                             ((2, 3, 3, 600), 2), ((2, 33, 33, 6), 1), ((3, 5, 7, 8), -1), ((3, 5, 7, 5), -1)]:
            for any_batch in (False, True):
                what = "%s %r in %d groups%s" % (policy, shape, count, " of any batch" if any_batch else "")
                # Sums over an axis of one are left out, or named as well: the gradient of one image, group or channel may stay.
                is_usual = abs(count) != 1 if any_batch else shape[0] > 1
                expected = GROUPS if is_usual else {MOMENTS: 2}
                group_layer(shape, dtype, expected, limit, what, any_batch, groups=count)
        # Without an offset its gradient is left out, and without a scale the moments alone are found.
        shape = (3, 5, 4, 12)
        group_layer(shape, dtype, GROUPS, limit, "%s without an offset" % policy, groups=4, center=False)
        group_layer(shape, dtype, {MOMENTS: 2, GROUP: 0}, limit, "%s without a scale" % policy, groups=4, scale=False)
        group_layer(shape, dtype, {GROUP: 0}, limit, "%s with channels first" % policy, groups=5, axis=1)
    keras.mixed_precision.set_global_policy("float32")
    group_layer((0, 5, 4, 12), "float32", {}, 5e-5, "no images", True, groups=4)
    x, weights = (tf.constant(random.normal(2.0, 1.5, (3, 5, 4, 3, 2)), tf.float32) for _ in range(2))
    kept = tf.constant(random.uniform(0.5, 2.0, (1, 1, 1, 3, 2)), tf.float32)

    def variant(axes, of=lambda x: x):
        def normalize(x, scale, offset):
            mean, variance = tf.nn.moments(tf.reshape(x, (3, 5, 4, 3, 2)), axes, keepdims=True)
            return tf.nn.batch_normalization(of(x), mean, variance, offset, scale, 1e-3), mean, variance
        return gradients(normalize)
    for axes in [(1, 2), (1, 2, 3), (2, 4), (1, 2, 3, 4), (0, 1, 2, 4)]:
        compare(variant(axes), [weights, x, kept, kept * 2], "axes %r" % (axes,), {GROUP: 0}, 5e-5)
    compare(variant((1, 2, 4), lambda x: x * 1.5), [weights, x, kept, kept * 2], "another tensor's", {GROUP: 0}, 5e-5)
    # A large mean takes few digits from the variance, and not all of them; NaN stays in its group.
    for what, x in [("a large mean", random.normal(1000.0, 0.5, (4, 8, 8, 2, 4))), ("NaN", np.where(np.arange(240).reshape(2, 5, 4, 3, 2) == 9, np.nan, 1.5))]:
        moments = lambda x: tf.nn.moments(tf.reshape(x, x.shape), (1, 2, 4), keepdims=True)
        compare(moments, [tf.constant(x, tf.float32)], what, {})


def others():
    shape = (3, 4, 4, 4)
    x, weights = (tf.constant(random.normal(3.0, 2.0, shape), tf.float32) for _ in range(2))
    ones = tf.ones(4)

    def variant(mean_axes=(0, 1, 2), variance_axes=(0, 1, 2), of=lambda x: x, factor=1.0):
        def normalize(x, scale, offset):
            mean = tf.reduce_mean(x, mean_axes, keepdims=True)
            variance = factor * tf.reduce_mean(tf.math.squared_difference(of(x), tf.stop_gradient(mean)), variance_axes, keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3), mean, variance
        return gradients(normalize)
    whole = {MOMENTS: 0, GRADIENT: 0}
    for what, function, expected in [
        ("other axes of the mean", variant(mean_axes=(0, 1)), whole),
        ("axes in the middle", variant((1, 2), (1, 2)), whole),
        ("the last axis, with other scales", variant((-1,), (-1,)), {MOMENTS: 1, GRADIENT: 0}),
        ("the variance of another tensor", variant(of=lambda x: x * 1.5), whole),
        # The moments are, and the gradient is of something else.
        ("a part of the variance", variant(factor=0.5), {MOMENTS: 2, GRADIENT: 0}),
    ]:
        compare(function, [weights, x, ones, ones], what, expected)

    # Channels of several axes: the moments alone are found.
    rows = [weights, x, tf.ones(shape[1:]) * 0.5, tf.ones(shape[1:])]
    compare(gradients(lambda x, scale, offset: moments_first(x, scale, offset, (0,))), rows, "rows", {MOMENTS: 2}, 5e-5)

    # The mean is not constant for the variance.
    def through_the_mean(x, scale, offset):
        mean = tf.reduce_mean(x, (0, 1, 2), keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), (0, 1, 2), keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3), mean, variance
    compare(gradients(through_the_mean), [weights, x, ones, ones], "a gradient through the mean", {MOMENTS: 2})

    # Mean and variance are used elsewhere, with gradients.
    def penalty(x, scale, offset):
        y, mean, variance = moments_first(x, scale, offset)
        return y + tf.reduce_sum(mean * mean) * 0.1 + tf.reduce_sum(variance) * 0.01, mean, variance
    compare(gradients(penalty), [weights, x, ones, ones], "a penalty", {MOMENTS: 2, GRADIENT: 0})

    # Gradients of gradients.
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.tanh(moments_first(x, ones, ones)[0]) * weights)
            slope = inner.gradient(y, x)
            loss = tf.reduce_sum(slope * slope)
        return [slope, outer.gradient(loss, x)]
    compare(second, [x], "a gradient of a gradient", {MOMENTS: 2}, limit=1e-4)

    def loop(x):
        for _ in tf.range(3):
            x = tf.tanh(moments_first(x, ones, ones)[0])
        return x
    compare(gradients(lambda x: (loop(x),)), [weights, x], "a loop", {}, limit=1e-4)


def waits(device):
    """What a variable has after an assignment that only the squares wait for, and another one."""
    with tf.device(device):
        variable, x = tf.Variable(0.0), tf.constant(random.normal(size=(4, 3, 2, 5)), tf.float32)

    @tf.function(jit_compile=False)
    def function(large):
        with tf.device("/CPU:0"):
            late = tf.reduce_sum(tf.matmul(tf.matmul(large, large), large)) * 0.0
        with tf.device(device):
            mean = tf.reduce_mean(x, (0, 1, 2), keepdims=True)
            with tf.control_dependencies([variable.assign(late + 1.0)]):
                squares = tf.math.squared_difference(x, mean)
            variance = tf.reduce_mean(squares, (0, 1, 2), keepdims=True)
            variable.assign(tf.reduce_sum(variance) * 0.0 + 10.0)
            return variance
    function(tf.ones((1000, 1000))).numpy()
    return float(variable.numpy())


def fetched(build, device):
    """What a session fetches of a graph: its tensors, and what is fed."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        with tf.device(device):
            tensors, feeds = build()
        with v1.Session(graph=graph, config=v1.ConfigProto(allow_soft_placement=True)) as session:
            session.run(v1.global_variables_initializer())
            return session.run(tensors, feeds, options=v1.RunOptions(timeout_in_ms=60_000))


def order():
    check(waits(DEVICE) == waits(CPU) == 10.0, "an assignment is too late")
    v1, values = tf.compat.v1, random.normal(1.0, 2.0, (4, 3, 2, 5)).astype("float32")

    def fed(which):
        def build():
            given = v1.placeholder(tf.float32, values.shape)
            x = tf.identity(given)
            mean = tf.reduce_mean(x, (0, 1, 2), keepdims=True)
            squares = tf.math.squared_difference(x, mean)
            variance = tf.reduce_mean(squares, (0, 1, 2), keepdims=True)
            value = {"x": (x, values), "mean": (mean, np.zeros((1, 1, 1, 5), "float32")), "squares": (squares, np.ones_like(values))}
            feeds = dict([value[which]])
            return [variance + 0.5], feeds if which == "x" else {given: values, **feeds}
        return build

    def reference():
        with tf.device("/CPU:0"):
            variable = v1.get_variable("reference", initializer=tf.reshape(tf.range(12.0), (4, 3)), use_resource=False)
            first = variable.read_value()
        mean = tf.reduce_mean(first, (0,), keepdims=True)
        with tf.device("/CPU:0"):
            with tf.control_dependencies([tf.identity(mean)]):
                changed = v1.assign(variable, tf.reshape(tf.range(12.0), (4, 3)) * 7.0)
            with tf.control_dependencies([changed.op]):
                second = variable.read_value()
        return [tf.exp(tf.reduce_mean(tf.math.squared_difference(second, mean), (0,), keepdims=True) * -0.001)], {}

    def queue():
        """The second variable is read after the first was changed, which no edge tells."""
        names = ["first", "its momentum", "second", "momentum"]
        first, of_first, second, of_second = [v1.get_variable(name.replace(" ", "_"), (8,), initializer=v1.ones_initializer(), use_resource=True) for name in names]
        changed = first.assign(raw.AddV2(x=first.read_value(), y=of_first.read_value()), read_value=False)
        with tf.device("/CPU:0"):
            line = tf.queue.FIFOQueue(2, [tf.float32], shapes=[()])
            with tf.control_dependencies([changed]):
                sent = line.enqueue(tf.constant(1.0))
            received = line.dequeue()
        with tf.control_dependencies([received]):
            read = second.read_value()
        then = second.assign(raw.AddV2(x=read, y=of_second.read_value()), read_value=False)
        return [received, changed, sent, then], {}

    for what, build in [(which, fed(which)) for which in ("x", "mean", "squares")] + [("a reference", reference), ("a queue", queue)]:
        near(fetched(build, DEVICE)[0], fetched(build, CPU)[0], 2e-5, what)

    # Shapes that the ops do not have.
    x, weights = (tf.constant(random.normal(1.0, 2.0, values.shape), tf.float32) for _ in range(2))
    for shape in [(5,), (), (2, 1, 1, 1, 5)]:
        def averages(x, old):
            mean, variance = tf.nn.moments(x, (0, 1, 2), keepdims=True)
            return old * 0.9 + mean * 0.1, old * 0.9 + variance * 0.1
        compare(averages, [x, tf.ones(shape)], "averages of %r" % (shape,), {MOMENTS: 2})
    channels = lambda x, scale, offset: moments_first(x, scale, offset, (0,), keepdims=True)
    compare(gradients(channels), [weights, x, tf.ones(5) * 2.0, tf.ones(5)], "channels of several axes", {MOMENTS: 2})
    x, weights = (tf.constant(random.normal(1.0, 2.0, (4, 3, 5)), tf.float32) for _ in range(2))

    def positions(x, scale, offset, positions):
        return keras.ops.layer_normalization(x, scale, offset, -1, 1e-3) + positions,
    compare(gradients(positions), [weights, x, tf.ones(5), tf.ones(5), tf.ones((3, 5))], "positions", {MOMENTS: 1, LAYER: 3})


def all_finite(tensors):
    """As `keras.optimizers.LossScaleOptimizer` has it."""
    return keras.ops.all(keras.ops.convert_to_tensor([keras.ops.all(keras.ops.isfinite(x)) for x in tensors]))


def finite():
    sizes = [(3, 3, 8, 16), (16,), (7, 5), (1,), (5000, 300), (4, 4), (2, 3, 4, 5), (0, 3)] + [(n,) for n in range(1, 12)]
    # The rank of each is known, and the sizes are not.
    for dtype in (tf.float32, tf.float16, tf.bfloat16):
        good = [tf.cast(random.normal(size=size), dtype) for size in sizes]
        signature = [tf.TensorSpec([None] * len(size), dtype) for size in sizes]

        def check_all(*tensors):
            tensors = [tf.reshape(tensors[0], [3, 3, 8, 16])] + [x * 1 for x in tensors[1:]]
            return all_finite(tensors + [tf.cast(tensors[1], tf.float32)])
        compare(check_all, good, "finite %s" % dtype.name, {"All": 0, "Pack": 0, "IsFinite": 0}, signature=signature)
        for at, bad in [(0, np.nan), (4, np.inf), (4, -np.inf), (7, np.nan), (len(sizes) - 1, np.inf), (3, np.nan)]:
            values = good[at].numpy().ravel().astype("float64")
            values[-1:] = bad
            tensors = good[:at] + [tf.cast(values.reshape(sizes[at]), dtype)] + good[at + 1:]
            compare(check_all, tensors, "%r in %d of %s" % (bad, at, dtype.name), {FINITE: 4}, signature=signature)
    # The rank before a reshape is not that after it.
    def reshaped(x, y, shape):
        all_of_it = tf.reduce_all(tf.reshape(tf.math.is_finite(tf.matmul(x, y)), shape), (0, 1))
        return tf.reduce_all(tf.stack([all_of_it, all_of_it]), 0)
    compare(reshaped, [tf.ones((2, 3)), tf.ones((3, 4)), tf.constant([2, 2, 2])], "a reshape", {FINITE: 0})
    # Vectors of predicates stay.
    rows = lambda x, y: tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(x), 0), tf.reduce_all(tf.math.is_finite(y), 0)]), 0)
    compare(rows, [tf.ones((3, 4)), tf.constant([[1.0, np.nan, 2.0, 3.0]])], "rows", {FINITE: 0})


def off():
    x = tf.constant(random.normal(size=(2, 3, 3, 4)), tf.float32)
    compare(gradients(moments_first), [tf.ones_like(x), x, tf.ones(4), tf.ones(4)], "off", {MOMENTS: 0, GRADIENT: 0})
    compare(lambda x: all_finite([x, x * 2]), [x], "off", {FINITE: 0})


take(written, layers, biases, rows, groups, others, order, finite, off)
