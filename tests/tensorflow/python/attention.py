"""Attention in graphs on the device of the type TF_PLUGIN_DEVICE_TYPE, which the graph pass replaces by one op and its gradient by another; steps,
one an argument, in their order.

    shapes[=sample]   results and gradients of `keras.ops.dot_product_attention` are the CPU's, in float32 and in the same bits each time
    masks[=sample]    so they are with masks and biases of any shape, causal, with rows that see nothing
    types[=sample]    and in float16 and bfloat16, at most as far from those of float32 as separate ops are
    written           with heads before lines, and as older layers write it
    layers            `keras.layers.MultiHeadAttention` in training and inference, in float32 and mixed precision
    special           NaN, infinities and large scores are where the CPU has them
    others            what looks like it and is another thing is computed as it is written
    memory            the scores of 2,048 lines are not in memory
    off               nothing is replaced

RUST_GPU_COUNTERS is the file of the counters. Writes `ok STEP` after each step; the first that fails ends the process.
"""
import keras
import numpy as np
import tensorflow as tf

from fusion_compare import CPU, DEVICE, counted
from pattern_compare import compare, gradients, near, random, run
from steps import check, take

ATTENTION, GRADIENT = "RustGpuAttention", "RustGpuAttentionGrad"
# The gradient is a launch for the query and one for key and value.
BOTH = {ATTENTION: 1, GRADIENT: 2, "Softmax": 0, "Einsum": 0}
FORWARD = {ATTENTION: 1, GRADIENT: 0, "Softmax": 0, "Einsum": 0}
NONE = {ATTENTION: 0, GRADIENT: 0}
LIMITS = {tf.float32: 2e-5, tf.float16: 4e-3, tf.bfloat16: 3e-2}


def attention(**options):
    return lambda query, key, value: (keras.ops.dot_product_attention(query, key, value, **options),)


def tensors(batch, rows, columns, heads, depth, width=None, dtype=tf.float32):
    """The gradient of the result, query, key and value."""
    width = width or depth
    shapes = [(batch, rows, heads, width), (batch, rows, heads, depth), (batch, columns, heads, depth), (batch, columns, heads, width)]
    return [tf.cast(random.normal(size=shape), dtype) for shape in shapes]


def of_any_size(inputs):
    return [tf.TensorSpec((None, None) + tuple(x.shape[2:]), x.dtype) for x in inputs]


# Batch, lines of the query, lines of the key, heads, elements of a line, and those of a value.
SHAPES = [(2, 5, 7, 3, 4), (1, 1, 1, 1, 1), (2, 33, 65, 2, 16), (1, 64, 64, 4, 32), (3, 17, 31, 1, 20, 12), (1, 130, 70, 2, 8), (2, 16, 40, 2, 128),
          (1, 20, 9, 2, 130, 3), (1, 9, 50, 1, 5, 260), (70, 40, 33, 4, 8), (1, 3, 300, 1, 64), (2, 100, 2, 2, 7)]


def shapes(sample=None):
    for number, shape in enumerate(SHAPES):
        if sample and number % 3 != 2:
            continue
        inputs = tensors(*shape)
        # TensorFlow does without a sum of one number.
        compare(gradients(attention()), inputs, "%r" % (shape,), {} if shape[2] == 1 else BOTH)
        compare(attention(scale=0.3), inputs[1:], "%r forward" % (shape,), FORWARD)
        compare(gradients(attention(scale=1.0)), inputs, "%r of any size" % (shape,), BOTH, signature=of_any_size(inputs))
    for shape in [(0, 3, 4, 2, 8), (2, 0, 4, 2, 8), (2, 3, 0, 2, 8)]:
        inputs = tensors(*shape)
        compare(gradients(attention(scale=0.5)), inputs, "%r" % (shape,), {}, signature=of_any_size(inputs))


def masks(sample=None):
    batch, rows, columns, heads = 3, 37, 45, 2
    inputs = tensors(batch, rows, columns, heads, 12)
    keep = lambda *shape: tf.constant(random.random(shape) < 0.7)
    # A row of the second batch sees nothing.
    nothing = np.array(keep(batch, 1, rows, columns))
    nothing[1, 0, 3] = False
    add = lambda *shape: tf.constant(random.normal(size=shape), tf.float32)
    cases = [
        ("causal", dict(is_causal=True)),
        ("padding", dict(mask=keep(batch, 1, 1, columns))),
        ("whole mask", dict(mask=keep(batch, heads, rows, columns))),
        ("mask of lines", dict(mask=keep(1, 1, rows, columns))),
        ("mask of heads", dict(mask=keep(1, heads, 1, columns))),
        ("nothing", dict(mask=tf.constant(nothing))),
        ("causal and padding", dict(is_causal=True, mask=keep(batch, 1, 1, columns))),
        ("bias", dict(bias=add(batch, heads, rows, columns))),
        ("bias of heads", dict(bias=add(1, heads, rows, columns))),
        ("bias and mask", dict(bias=add(batch, 1, 1, columns), mask=keep(1, 1, rows, columns), scale=2.0)),
        ("a bias that hides", dict(bias=tf.where(keep(batch, 1, 1, columns), 0.0, -1e9))),
    ]
    for number, (what, options) in enumerate(cases):
        if sample and number % 3:
            continue
        compare(gradients(attention(**options)), inputs, what, BOTH)
        compare(gradients(attention(**options)), inputs, what + " of any size", BOTH, signature=of_any_size(inputs))


def types(sample=None):
    for dtype in (tf.float16, tf.bfloat16):
        for shape in SHAPES[4:5] if sample else SHAPES:
            inputs = tensors(*shape, dtype=dtype)
            rows, columns = shape[1:3]
            mask = tf.constant(random.random((shape[0], 1, 1, columns)) < 0.8)
            cases = [("", {}), ("masked", dict(mask=mask)), ("causal", dict(is_causal=True, scale=0.25))]
            for what, options in cases[1:2] if sample else cases:
                launches = {} if columns == 1 else BOTH
                compare(gradients(attention(**options)), inputs, "%s %r %s" % (dtype.name, shape, what), launches, LIMITS[dtype] * 2)
                # Beside those of float32 of the same numbers.
                found, _ = run(gradients(attention(**options)), inputs, DEVICE)
                right, _ = run(gradients(attention(**options)), [tf.cast(x, tf.float32) for x in inputs], DEVICE)
                for index, (a, b) in enumerate(zip(found, right)):
                    near(a, b, LIMITS[dtype], "%s %r %s beside float32, output %d" % (dtype.name, shape, what, index))


def written():
    """As programs write it without Keras."""
    batch, rows, columns, heads, depth = 2, 21, 34, 3, 8
    inputs = tensors(batch, rows, columns, heads, depth)
    first = [tf.transpose(x, [0, 2, 1, 3]) for x in inputs]
    mask, bias = tf.constant(random.random((batch, 1, 1, columns)) < 0.7), tf.constant(random.normal(size=(1, heads, rows, columns)), tf.float32)

    def heads_first(query, key, value):
        scores = tf.einsum("bntd,bnsd->bnts", query, key) * 0.25 + bias
        return tf.einsum("bnts,bnsd->bntd", tf.nn.softmax(scores), value),

    def scaled_query(query, key, value):
        scores = tf.einsum("aecd,abcd->acbe", key, query * 0.25)
        return tf.einsum("acbe,aecd->abcd", tf.nn.softmax(tf.where(mask, scores, -1e9)), value),

    def added(query, key, value):
        scores = tf.einsum("aecd,abcd->acbe", key, query) + (1.0 - tf.cast(mask, tf.float32)) * -1e9
        return tf.einsum("acbe,aecd->abcd", tf.nn.softmax(scores), value),
    for what, function, given in [("heads first", heads_first, first), ("a scaled query", scaled_query, inputs), ("an added mask", added, inputs)]:
        compare(gradients(function), given, what, BOTH)
        compare(function, given[1:], what + ", forward", FORWARD)
        compare(gradients(function), given, what + ", of any size", BOTH, signature=of_any_size(given))
    # A softmax of 16 bits stays.
    for dtype in (tf.float16, tf.bfloat16):
        def short(query, key, value):
            scores = tf.einsum("BTNH,BSNH->BNTS", query, key) * tf.cast(0.25, dtype) + tf.cast(bias, dtype)
            return tf.einsum("BNTS,BSNH->BTNH", tf.nn.softmax(scores), value),
        compare(gradients(short), [tf.cast(x, dtype) for x in inputs], "%s throughout" % dtype.name, NONE, 3 * LIMITS[dtype])


def layers():
    batch, rows, columns, width = 3, 19, 26, 24
    for policy, limit in (("float32", 2e-5), ("mixed_float16", 4e-3), ("mixed_bfloat16", 3e-2)):
        keras.mixed_precision.set_global_policy(policy)
        dtype = keras.mixed_precision.global_policy().compute_dtype
        query, value = (tf.cast(random.normal(size=(batch, lines, width)), dtype) for lines in (rows, columns))
        mask = tf.constant(random.random((batch, rows, columns)) < 0.7)
        padding = tf.constant(np.arange(rows) < np.array([[rows], [7], [1]]))
        cases = [
            ("", dict(), (query, value), dict()),
            ("causal", dict(), (query, query), dict(use_causal_mask=True)),
            ("masked", dict(value_dim=5), (query, value), dict(attention_mask=mask)),
            ("padded", dict(), (query, query), dict(query_mask=padding, value_mask=padding)),
            ("with dropout", dict(dropout=0.3), (query, value), dict(attention_mask=mask)),
        ]
        for what, options, inputs, given in cases:
            results = {}
            weights = tf.cast(random.normal(size=(batch, rows, width)), dtype)
            numbers = None
            for device, of_layer in ((DEVICE, policy), (CPU, policy), (CPU, "float32")):
                keras.mixed_precision.set_global_policy(of_layer)
                with tf.device(device):
                    layer = keras.layers.MultiHeadAttention(3, 8, **options)
                    layer.build(inputs[0].shape, inputs[1].shape)
                    numbers = numbers or [random.normal(0.0, 0.3, variable.shape) for variable in layer.trainable_variables]
                    for variable, value_of_it in zip(layer.trainable_variables, numbers):
                        variable.assign(value_of_it)

                def whole(weights, *inputs, layer=layer, is_training=what != "with dropout"):
                    with tf.GradientTape() as tape:
                        tape.watch(inputs)
                        y = layer(*inputs, training=is_training, **given)
                    if not is_training:
                        return [y]
                    variables = [variable.value for variable in layer.trainable_variables]
                    return [y, *tape.gradient(y, [*inputs, *variables], output_gradients=weights)]
                given_to_it = [tf.cast(x, layer.compute_dtype) for x in (weights, *inputs)]
                results[device, of_layer] = run(whole, given_to_it, device)
            keras.mixed_precision.set_global_policy(policy)
            found, ran = results[DEVICE, policy]
            # Layers with dropout write their products in another way, which is not replaced.
            expected = {**NONE, "Softmax": 1} if what == "with dropout" else {**BOTH}
            expected.pop("Einsum", None)
            wrong = {op: ran[op] for op, launches in expected.items() if ran[op] != launches}
            check(not wrong, "%s %s: %r of %r" % (policy, what, wrong, dict(ran)))
            # Sums of 16 bits, such as the gradient of the key's bias, are off on the CPU too.
            for index, (a, b, c) in enumerate(zip(found, results[CPU, policy][0], results[CPU, "float32"][0])):
                a, b, c = (x.astype("float64") for x in (a, b, c))
                scale = max(1.0, np.abs(c).max())
                wrong, usual = (np.abs(x - c).max() / scale for x in (a, b))
                check(wrong <= max(limit, 4 * usual), "%s %s, output %d is off by %g and on the CPU by %g" % (policy, what, index, wrong, usual))

        # Dropout between softmax and product is not part of the op.
        with tf.device(DEVICE):
            layer = keras.layers.MultiHeadAttention(3, 8, dropout=0.3)
            layer.build(query.shape, value.shape)

        def train(query, value):
            with tf.device(DEVICE), tf.GradientTape() as tape:
                tape.watch(query)
                y = layer(query, value, training=True)
                return [y, tape.gradient(y, query)]
        before = counted()
        for x in tf.function(train, jit_compile=False)(query, value):
            x.numpy()
        ran = counted() - before
        check(ran[ATTENTION] == 0 and ran["Softmax"] == 1, "%s with dropout: %r" % (policy, dict(ran)))
    keras.mixed_precision.set_global_policy("float32")


def special():
    shape = (2, 18, 35, 2, 8)
    for which in range(4):
        for value in (np.nan, np.inf):
            inputs = tensors(*shape)
            numbers = inputs[which].numpy()
            numbers[1, 3, 0, 2] = value
            inputs[which] = tf.constant(numbers)
            compare(gradients(attention()), inputs, "%r in %d" % (value, which), BOTH)
    inputs = tensors(*shape)
    for what, at in [("a column", np.s_[:, :, :, 3]), ("a row", np.s_[1, :, 4]), ("the first tile", np.s_[:, :, :, :33]), ("all", np.s_[:])]:
        for value in (-np.inf, np.inf):
            bias = np.zeros((2, 2, 18, 35), "float32")
            bias[at] = value
            compare(gradients(attention(bias=tf.constant(bias))), inputs, "%r in %s" % (value, what), BOTH)
    compare(gradients(attention(scale=300.0)), inputs, "large scores", BOTH, 3e-3)
    compare(gradients(attention(scale=0.0)), inputs, "equal scores", {})


def others():
    inputs = tensors(2, 9, 12, 2, 8)
    mask = tf.constant(random.random((2, 1, 9, 12)) < 0.7)

    def scores_too(query, key, value):
        softmax = tf.nn.softmax(tf.einsum("BTNH,BSNH->BNTS", query, key))
        return tf.einsum("BNTS,BSNH->BTNH", softmax, value), softmax

    def logits_too(query, key, value):
        logits = tf.einsum("BTNH,BSNH->BNTS", query, key)
        return tf.einsum("BNTS,BSNH->BTNH", tf.nn.softmax(logits), value), tf.reduce_max(logits)

    def another_axis(query, key, value):
        softmax = tf.nn.softmax(tf.einsum("BTNH,BSNH->BNTS", query, key), axis=2)
        return tf.einsum("BNTS,BSNH->BTNH", softmax, value),

    def other_heads(query, key, value):
        softmax = tf.nn.softmax(tf.einsum("BTNH,BSNH->BNTS", query, key))
        return tf.einsum("BMTS,BSNH->BTNH", softmax, value),

    def another_factor(query, key, value):
        scores = tf.einsum("BTNH,BSNH->BNTS", query, key) * tf.reduce_mean(query)
        return tf.einsum("BNTS,BSNH->BTNH", tf.nn.softmax(scores), value),
    for what, function in [("returned scores", scores_too), ("used logits", logits_too), ("another axis", another_axis),
                           ("other heads", other_heads), ("a factor with a gradient", another_factor)]:
        compare(gradients(function), inputs, what, NONE)

    # A bias that is trained has the gradient of all scores.
    def trained(query, key, value, bias):
        return keras.ops.dot_product_attention(query, key, value, bias=bias, mask=mask),
    compare(gradients(trained), [*inputs, tf.constant(random.normal(size=(1, 2, 9, 12)), tf.float32)], "a trained bias", NONE)

    # Gradients of some inputs, and of gradients.
    def of_value(weights, query, key, value):
        with tf.GradientTape() as tape:
            tape.watch(value)
            y = attention()(query, key, value)[0]
        return [y, tape.gradient(y, value, output_gradients=weights)]
    compare(of_value, inputs, "the value alone", NONE)

    def second(weights, query, key, value):
        with tf.GradientTape() as outer:
            outer.watch(query)
            with tf.GradientTape() as inner:
                inner.watch((query, key, value))
                y = tf.reduce_sum(tf.tanh(attention()(query, key, value)[0]) * weights)
            slopes = inner.gradient(y, (query, key, value))
            loss = sum(tf.reduce_sum(slope * slope) for slope in slopes)
        return [*slopes, outer.gradient(loss, query)]
    compare(second, inputs, "a gradient of a gradient", NONE, 1e-4)

    # Twice, the second of the first's result; and one of the same tensor three times.
    def twice(query, key, value):
        first = attention(mask=mask)(query, key, value)[0]
        return attention(mask=mask, scale=0.5)(first, key, value)
    compare(gradients(twice), inputs, "twice", {op: 2 * count for op, count in BOTH.items()})
    same = lambda x: (keras.ops.dot_product_attention(x, x, x),)
    compare(gradients(same), inputs[:2], "of one tensor", BOTH)

    def loop(query, key, value):
        for _ in tf.range(3):
            query = attention(mask=mask)(query, key, value)[0]
        return query,
    compare(gradients(loop), inputs, "a loop", {})

    # Keys of one batch for all do not fit.
    weights, query, key, value = inputs
    try:
        run(attention(), [query, key[:1], value[:1]], DEVICE, of_any_size([query, key, value]))
    except tf.errors.InvalidArgumentError:
        pass
    else:
        check(False, "batches of 2 and 1 fit")


def memory(setting=None):
    inputs = tensors(1, 2048, 2048, 2, 16)
    name = DEVICE.split("device:")[1]
    with tf.device(DEVICE):
        there = [tf.identity(x) for x in inputs]
        function = tf.function(gradients(attention(is_causal=True)), jit_compile=False)
        function(*there)[0].numpy()
        tf.config.experimental.reset_memory_stats(name)
        before = tf.config.experimental.get_memory_info(name)["current"]
        function(*there)[0].numpy()
        most = tf.config.experimental.get_memory_info(name)["peak"] - before
    scores = 2 * 2048 * 2048 * 4
    print("%d bytes beside the inputs; scores have %d" % (most, scores))
    check(most > scores if setting == "off" else most < scores / 2, "%d bytes, and scores have %d" % (most, scores))


def off():
    inputs = tensors(2, 9, 12, 2, 8)
    compare(gradients(attention(is_causal=True)), inputs, "off", {**NONE, "Softmax": 1})


take(shapes, masks, types, written, layers, special, others, memory, off)
