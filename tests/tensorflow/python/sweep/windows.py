"""Windows over images and volumes: convolutions and pooling, and batch normalization."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, FLOATS, LACKS_TYPES, TYPE, call, case, in_float, numbers, on_the_cpu_in_float, raw


def spread(x, axis, step):
    """With step - 1 zeros between elements of an axis."""
    apart = tf.stack([x] + [tf.zeros_like(x)] * (step - 1), axis + 1)
    shape = x.shape[:axis] + [x.shape[axis] * step] + x.shape[axis + 1:]
    return tf.gather(tf.reshape(apart, shape), tf.range((x.shape[axis] - 1) * step + 1), axis=axis)


def convolutions():
    cases = [((2, 5, 6, 3), (3, 2, 3, 4), 1, 1, "VALID"), ((2, 5, 6, 3), (3, 2, 3, 4), 1, 1, "SAME"), ((1, 7, 7, 2), (3, 3, 2, 5), 2, 1, "SAME"),
             ((1, 8, 7, 2), (3, 3, 2, 5), 2, 1, "VALID"), ((1, 9, 9, 1), (3, 3, 1, 2), 1, 2, "SAME"), ((3, 4, 4, 2), (1, 1, 2, 3), 1, 1, "VALID"),
             ((1, 4, 4, 2), (1, 1, 2, 3), 2, 1, "SAME"), ((1, 4, 5, 2), (3, 3, 2, 1), 1, 1, [2, 1, 0, 3]), ((0, 4, 5, 2), (3, 3, 2, 1), 1, 1, "SAME"),
             ((4, 28, 28, 1), (5, 5, 1, 8), 1, 1, "SAME"), ((2, 4, 5, 2), (1, 1, 2, 3), 1, 1, [0, 1, 1, 0])]
    # Enough for the largest tiles, and for a gradient of a filter that is summed in parts; and groups of channels, which the CPU has
    # in no gradient.
    large = [((2, 32, 33, 5), (1, 1, 5, 2100), 1, 1, "SAME"), ((4, 16, 16, 70), (3, 3, 70, 70), 1, 1, "SAME"), ((9, 64, 64, 3), (3, 3, 3, 5), 2, 1, "SAME")]
    groups = [((2, 5, 6, 6), (3, 2, 2, 9), 1, 1, "SAME"), ((2, 5, 6, 4), (3, 2, 1, 8), 2, 1, "SAME"), ((1, 5, 5, 4), (3, 3, 2, 2), 1, 2, "VALID")]
    # What matrix units multiply.
    half = [((2, 16, 16, 16), (3, 3, 16, 32), 1, 1, "SAME"), ((2, 15, 13, 35), (3, 3, 35, 40), 2, 1, "SAME"), ((2, 9, 9, 64), (3, 3, 32, 64), 1, 1, "SAME"),
            ((2, 16, 16, 48), (1, 1, 48, 64), 1, 1, "SAME"), ((2, 31, 31, 32), (5, 3, 32, 64), 2, 1, "VALID"), ((4, 40, 40, 8), (3, 3, 8, 40), 1, 1, "SAME")]
    more = {"float32": large + groups, "float16": half} if LACKS_TYPES else {}
    # Gradients of 1 x 1 filters that are products in parts. A case in the middle would move the sample behind it.
    products = [((4, 32, 32, 12), (1, 1, 12, 20), 1, 1, "SAME"), ((1, 37, 53, 6), (1, 1, 6, 9), 1, 1, "VALID")]
    dtypes = FLOATS if LACKS_TYPES else ["float32", "float64"]
    for dtype, of_type in [(dtype, cases + more.get(dtype, [])) for dtype in dtypes] + [("float32", products)] * LACKS_TYPES:
        for images, filters, stride, dilation, padding in of_type:
            options = dict(strides=[1, stride, stride, 1], dilations=[1, dilation, dilation, 1], padding=padding)
            if isinstance(padding, list):
                options.update(padding="EXPLICIT", explicit_paddings=[0, 0] + padding + [0, 0])
            count = images[3] // filters[2]

            def convolve(x, w, options=options, count=count):
                if count == 1 or TYPE in x.device:
                    return raw.Conv2D(input=x, filter=w, **options)
                parts = zip(tf.split(x, count, 3), tf.split(w, count, 3))
                return tf.concat([raw.Conv2D(input=x, filter=w, **options) for x, w in parts], 3)

            def slopes(x, w, dy, convolve=convolve, count=count):
                with tf.GradientTape() as tape:
                    tape.watch((x, w))
                    y = convolve(x, w)
                return tape.gradient(y, (x, w), dy)

            x, w = numbers(images, dtype, -1, 1), numbers(filters, dtype, -1, 1)
            with tf.device(CPU):
                dy = numbers(convolve(*in_float(tf.constant(x), tf.constant(w))).shape, dtype, -1, 1)
            # Errors of rounding grow with the elements of a sum.
            tolerance = dict(tolerance=3e-4 if images in [of[0] for of in large + products] else None)
            case("Conv2D", on_the_cpu_in_float(convolve), x, w, **tolerance)
            if dilation > 1:
                continue  # The CPU has no gradients.
            if count > 1:
                # The CPU sums them in the type of the elements.
                case("Conv2DBackpropInput", slopes, x, w, dy, tolerance=5e-2 if dtype == "float16" else None)
                continue
            case("Conv2DBackpropInput", on_the_cpu_in_float(lambda w, dy, images=images, options=options: raw.Conv2DBackpropInput(
                input_sizes=tf.constant(images), filter=w, out_backprop=dy, **options)), w, dy, **tolerance)
            tolerance = dict(tolerance=1e-4 if dtype in ("float32", "float64") else None)
            case("Conv2DBackpropFilter", on_the_cpu_in_float(lambda x, dy, filters=filters, options=options: raw.Conv2DBackpropFilter(
                input=x, filter_sizes=tf.constant(filters), out_backprop=dy, **options)), x, dy, **tolerance)
    for dtype in dtypes:
        for images, filters in [((2, 6, 5, 3), (3, 2, 3, 2)), ((1, 7, 7, 35), (3, 3, 35, 1)), ((2, 5, 4, 1), (2, 3, 1, 2)), ((0, 5, 4, 2), (2, 3, 2, 1))] + (
                # Four channels at once, a gradient of a filter that is summed in parts, and filters that are wider than the sums of a thread.
                [((3, 7, 6, 8), (3, 3, 8, 1)), ((2, 9, 9, 36), (5, 5, 36, 1)), ((4, 33, 30, 12), (3, 3, 12, 1)), ((3, 31, 30, 5), (2, 7, 5, 2))] * LACKS_TYPES):
            for stride in (1, 2):
                for padding in ("SAME", "VALID"):
                    options = dict(strides=[1, stride, stride, 1], padding=padding)
                    x, w = numbers(images, dtype, -1, 1), numbers(filters, dtype, -1, 1)
                    with tf.device(CPU):
                        dy = raw.DepthwiseConv2dNative(input=in_float(tf.constant(x))[0], filter=in_float(tf.constant(w))[0], **options)
                    dy = numbers(dy.shape, dtype, -1, 1)
                    case("DepthwiseConv2dNative", on_the_cpu_in_float(call("DepthwiseConv2dNative", input=None, filter=None, **options)), x, w)
                    case("DepthwiseConv2dNativeBackpropInput", on_the_cpu_in_float(lambda w, dy, images=images, options=options: raw.DepthwiseConv2dNativeBackpropInput(
                        input_sizes=tf.constant(images), filter=w, out_backprop=dy, **options)), w, dy)
                    if images[0] == 0:
                        continue  # The CPU writes nothing into the result.
                    case("DepthwiseConv2dNativeBackpropFilter", on_the_cpu_in_float(lambda x, dy, filters=filters, options=options: raw.DepthwiseConv2dNativeBackpropFilter(
                        input=x, filter_sizes=tf.constant(filters), out_backprop=dy, **options)), x, dy,
                        tolerance=1e-4 if dtype in ("float32", "float64") else None)
    for dtype in ["float32", "float64", "float16", "bfloat16"]:
        for size, stride in [(2, 2), (3, 2), (2, 1), (1, 1)]:
            for padding in ("SAME", "VALID"):
                options = dict(ksize=[1, size, size, 1], strides=[1, stride, stride, 1], padding=padding)
                x = numbers((2, 5, 7, 3), dtype)
                with tf.device(CPU):
                    y = raw.MaxPool(input=tf.constant(x), **options).numpy()
                dy = numbers(y.shape, dtype)
                case("MaxPool", call("MaxPool", input=None, **options), x)
                case("MaxPoolGrad", call("MaxPoolGrad", orig_input=None, orig_output=None, grad=None, **options), x, y, dy)
                if dtype == "bfloat16" and tf.__version__.startswith("2.12."):
                    continue  # The CPU has no kernel.
                case("AvgPool", call("AvgPool", value=None, **options), x)
                case("AvgPoolGrad", lambda dy, options=options: raw.AvgPoolGrad(orig_input_shape=tf.constant([2, 5, 7, 3]), grad=dy, **options), dy)
    # A filter that is larger than the images has no results, and the gradient of the images is 0.
    for dtype in FLOATS if LACKS_TYPES else ["float32"]:
        case("Conv2DBackpropInput", call("Conv2DBackpropInput", input_sizes=[1, 2, 2, 4], filter=None, out_backprop=None, strides=[1] * 4, padding="VALID"),
             numbers((3, 3, 4, 2), dtype), numbers((1, 0, 0, 2), dtype))


def volumes():
    one, two = [1, 1, 1], [2, 2, 2]
    cases = [((2, 4, 5, 6, 3), (2, 3, 2, 3, 4), one, one, "VALID"), ((2, 4, 5, 6, 3), (2, 3, 2, 3, 4), one, one, "SAME"),
             ((1, 7, 6, 5, 2), (3, 2, 3, 2, 5), [2, 1, 3], one, "SAME"), ((1, 7, 6, 5, 2), (3, 2, 3, 2, 5), [3, 2, 1], one, "VALID"),
             ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), one, one, "VALID"), ((3, 3, 4, 2, 2), (1, 1, 1, 2, 3), one, one, "VALID"),
             ((2, 5, 4, 4, 2), (1, 1, 1, 2, 3), two, one, "SAME"), ((0, 4, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "SAME"),
             ((2, 0, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "SAME"), ((2, 2, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "VALID"),
             ((1, 3, 2, 2, 2), (5, 4, 7, 2, 3), [1, 2, 1], one, "SAME"),
             # The CPU does not support dilations and groups of channels.
             ((2, 6, 5, 7, 2), (2, 2, 3, 2, 3), one, [2, 1, 3], "SAME"), ((1, 9, 8, 7, 2), (3, 2, 2, 2, 3), [2, 1, 1], two, "VALID"),
             ((2, 4, 5, 3, 6), (3, 2, 2, 2, 9), one, one, "SAME"), ((2, 4, 5, 3, 4), (3, 2, 2, 1, 8), [1, 2, 2], one, "SAME"),
             ((2, 5, 5, 5, 4), (2, 3, 2, 1, 4), one, two, "VALID")]
    large = [((2, 7, 16, 15, 35), (3, 3, 3, 35, 40), one, one, "SAME"), ((2, 12, 33, 32, 3), (3, 5, 3, 3, 6), two, one, "SAME")]
    for dtype in FLOATS:
        for images, filters, strides, dilations, padding in cases + (large if dtype in ("float32", "float16") else []):
            groups = images[4] // filters[3]
            options = dict(strides=[1] + strides + [1], padding=padding)

            def convolve(x, w, options=options, dilations=dilations, groups=groups):
                if TYPE in x.device:
                    return raw.Conv3D(input=x, filter=w, dilations=[1] + dilations + [1], **options)
                for axis, step in enumerate(dilations):
                    w = spread(w, axis, step)
                return tf.concat([raw.Conv3D(input=x, filter=w, **options) for x, w in zip(tf.split(x, groups, 4), tf.split(w, groups, 4))], 4)

            def slopes(x, w, dy, convolve=convolve):
                # The gradients are the device's, whatever is in float on the CPU.
                inputs = [x, w, dy] if TYPE in x.device else in_float(x, w, dy)
                with tf.GradientTape() as tape:
                    tape.watch(inputs[:2])
                    y = convolve(*inputs[:2])
                return [tf.cast(one, x.dtype) for one in tape.gradient(y, inputs[:2], inputs[2])]

            x, w = numbers(images, dtype, -1, 1), numbers(filters, dtype, -1, 1)
            with tf.device(CPU):
                dy = numbers(convolve(*in_float(tf.constant(x), tf.constant(w))).shape, dtype, -1, 1)
            tolerance = dict(tolerance=3e-4 if dtype == "float32" and max(images) > 9 else None)
            case("Conv3D", on_the_cpu_in_float(convolve), x, w, **tolerance)
            if x.size and not dy.size:
                continue  # The CPU writes nothing into the gradient of the filter.
            case("Conv3DBackpropInputV2", slopes, x, w, dy, **tolerance)
            if groups > 1 or max(dilations) > 1:
                case("Conv3DBackpropFilterV2", slopes, x, w, dy)
                continue
            for sizes in (np.int32, np.int64):
                case("Conv3DBackpropInputV2", on_the_cpu_in_float(lambda w, dy, images=sizes(images), options=options: raw.Conv3DBackpropInputV2(
                    input_sizes=tf.constant(images), filter=w, out_backprop=dy, **options)), w, dy, **tolerance)
            case("Conv3DBackpropFilterV2", on_the_cpu_in_float(lambda x, dy, filters=filters, options=options: raw.Conv3DBackpropFilterV2(
                input=x, filter_sizes=tf.constant(filters), out_backprop=dy, **options)), x, dy, **tolerance)
    zeros = lambda *shape: np.zeros(shape, "float32")
    x, w = zeros(2, 4, 5, 6, 3), zeros(2, 2, 2, 3, 4)
    for a, b, fails in [(x[0], w, "5-dimensional"), (x, w[0], "5-dimensional"), (zeros(2, 4, 5, 6, 4), w, "must be evenly divisible|must match"),
                        (x, zeros(2, 2, 2, 0, 4), "zero elements"), (x, zeros(2, 2, 2, 3, 0), "zero elements"),
                        (x, zeros(0, 2, 2, 3, 4), "zero elements"), (x, zeros(9, 2, 2, 3, 4), "negative"),
                        (zeros(2, 4, 5, 6, 6), zeros(2, 2, 2, 3, 5), "must be evenly divisible|must match")]:
        case("Conv3D", call("Conv3D", input=None, filter=None, strides=[1] * 5, padding="VALID"), a, b, fails=fails)
    for options, fails in [(dict(strides=[2, 1, 1, 1, 1]), "strides"), (dict(strides=[1, 1, 1, 1, 2]), "strides"), (dict(strides=[1, 0, 1, 1, 1]), "strides"),
                           (dict(strides=[1] * 5, dilations=[2, 1, 1, 1, 1]), "dilations"), (dict(strides=[1] * 5, dilations=[1, 1, -1, 1, 1]), "dilations")]:
        case("Conv3D", call("Conv3D", input=None, filter=None, padding="VALID", **options), x, w, fails=fails)
    dy = zeros(2, 4, 5, 6, 4)
    for images, filters, gradient, fails in [
            (x.shape, w.shape, dy[:1], "shape"), (x.shape, w.shape, dy[:, 1:], "shape"), (x.shape, w.shape, dy[..., :3], "shape"), (x.shape, w.shape, dy[0], "shape"),
            (x.shape[1:], w.shape, dy, "5-dimensional"), (x.shape, w.shape[1:], dy, "5-dimensional"), ((2, 4, 5, 6, 4), w.shape, dy, "evenly divisible"),
            ((2, 4, 5, 6, 0), (2, 2, 2, 0, 4), dy, "filter depth must be")]:
        options = dict(out_backprop=tf.constant(gradient), strides=[1] * 5, padding="SAME")
        case("Conv3DBackpropInputV2", lambda w, images=images, options=options: raw.Conv3DBackpropInputV2(
            input_sizes=tf.constant(images), filter=w, **options), zeros(*filters), fails=fails)
        case("Conv3DBackpropFilterV2", lambda x, filters=filters, options=options: raw.Conv3DBackpropFilterV2(
            input=x, filter_sizes=tf.constant(filters), **options), zeros(*images), fails=fails)
    case("Conv3DBackpropInputV2", lambda w: raw.Conv3DBackpropInputV2(
        input_sizes=tf.constant([2, -4, 5, 6, 3]), filter=w, out_backprop=tf.constant(dy), strides=[1] * 5, padding="SAME"), w, fails="egative|>= 0|at least 0|-4")

    pools = [((2, 5, 7, 4, 3), two, two, "SAME"), ((2, 5, 7, 4, 3), two, two, "VALID"), ((1, 6, 5, 7, 2), [3, 2, 1], [2, 1, 3], "SAME"),
             ((1, 6, 5, 7, 2), [3, 1, 2], [1, 3, 2], "VALID"), ((2, 4, 4, 5, 1), [3, 3, 3], one, "SAME"), ((2, 3, 3, 4, 2), one, one, "VALID"),
             ((1, 1, 1, 1, 1), two, two, "SAME"), ((0, 4, 4, 4, 2), two, two, "SAME"), ((2, 0, 4, 4, 2), two, two, "SAME"),
             ((2, 3, 4, 4, 0), two, two, "VALID"), ((1, 4, 4, 4, 2), [5, 2, 2], one, "VALID"), ((1, 2, 3, 3, 2), [9, 8, 7], [2, 1, 1], "SAME")]
    for dtype in FLOATS:
        for images, size, strides, padding in pools:
            options = dict(ksize=[1] + size + [1], strides=[1] + strides + [1], padding=padding)
            # Few values, so that several are the greatest.
            x = np.round(numbers(images, dtype)) if images[0] == 2 else numbers(images, dtype)
            with tf.device(CPU):
                y = raw.MaxPool3D(input=tf.cast(x, tf.float32), **options).numpy().astype(x.dtype)
            dy = numbers(y.shape, dtype)
            case("MaxPool3D", on_the_cpu_in_float(call("MaxPool3D", input=None, **options)), x)
            case("MaxPool3DGrad", on_the_cpu_in_float(call("MaxPool3DGrad", orig_input=None, orig_output=None, grad=None, **options)), x, y, dy)
            case("AvgPool3D", on_the_cpu_in_float(call("AvgPool3D", input=None, **options)), x)
            case("AvgPool3DGrad", on_the_cpu_in_float(lambda dy, images=images, options=options: raw.AvgPool3DGrad(
                orig_input_shape=tf.constant(images), grad=dy, **options)), dy)
    options = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    gradient = call("MaxPool3DGrad", orig_input=None, orig_output=None, grad=None, **options)
    shape, half = (1, 4, 4, 4, 5), (1, 2, 2, 2, 5)
    for dtype in ("float32", "bfloat16"):
        # Candidates that differ by less than 1e-5 from the result, which is not an element.
        case("MaxPool3DGrad", gradient, numbers(shape, dtype, 0, 3e-5), numbers(half, dtype, 0, 3e-5), numbers(half, dtype))
        case("MaxPool3DGrad", gradient, np.full(shape, -np.inf, numbers((), dtype).dtype), np.full(half, -np.inf, numbers((), dtype).dtype), numbers(half, dtype))
        case("MaxPool3D", call("MaxPool3D", input=None, **options), np.full(shape, -np.inf, numbers((), dtype).dtype))
    infinite = np.full(half, np.inf, "float32")
    x = numbers(shape, "float32")
    case("MaxPool3DGrad", gradient, x, x[:, 1::2, 1::2, 1::2], infinite)
    case("MaxPoolGrad", call("MaxPoolGrad", orig_input=None, orig_output=None, grad=None, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
         x[0], np.max(x[0].reshape(4, 2, 2, 2, 2, 5), (2, 4)), infinite.reshape(2, 2, 2, 5).repeat(2, 0))
    x, y = zeros(1, 4, 4, 4, 2), zeros(1, 2, 2, 2, 2)
    for a, b, c in [(x[0], y, y), (x, y[0], y), (x, y, y[0]), (x, y[:, 1:], y), (x, y, y[:, 1:]), (x, y[..., 1:], y[..., 1:])]:
        case("MaxPool3DGrad", gradient, a, b, c, fails="5-dimensional|shape to be")
    for sizes, dy in [((4, 4, 4, 2), y), ((1, 4, 4, 4, 3), y), ((2, 4, 4, 4, 2), y), ((1, 4, 4, 4, 2), y[0]), ((1, -4, 4, 4, 2), y)]:
        case("AvgPool3DGrad", lambda dy, sizes=sizes: raw.AvgPool3DGrad(orig_input_shape=tf.constant(sizes), grad=dy, **options), dy, fails="5-dimensional|shape to be|-4")
    for op in ("MaxPool3D", "AvgPool3D"):
        case(op, call(op, input=None, **options), x[0], fails="5-dimensional")
        for change in [dict(ksize=[1, 0, 2, 2, 1]), dict(strides=[1, 0, 2, 2, 1]), dict(ksize=[2, 2, 2, 2, 1]), dict(ksize=[1, 2, 2, 2, 2]), dict(strides=[1, 2, 2, 2, 2]),
                       dict(ksize=[1, 8, 2, 2, 1], padding="VALID")]:
            case(op, call(op, input=None, **{**options, **change}), x, fails="ksize|strides|negative")


def normalizations():
    def normalize(x, *rest, op="FusedBatchNormV3", **options):
        options["data_format"] = "NHWC" if x.shape.rank == 4 else "NDHWC"
        y = getattr(raw, op)(x=x if TYPE in x.device else in_float(x)[0], **dict(zip(("scale", "offset", "mean", "variance"), rest)), epsilon=1e-3, **options)
        return y._replace(y=tf.cast(y.y, x.dtype))

    def spoilt(x, *values):
        """With such values in different channels."""
        for at, value in enumerate(values):
            x.reshape(-1, x.shape[-1])[[0, 77 + at], at] = value
        return x

    small = [(2, 3, 4, 5), (1, 1, 1, 3), (8, 4, 4, 2)] + [(2, 3, 2, 4, 3)] * LACKS_TYPES
    # Channels four at a time and not, in one tile and several, and rows in parts; no rows, and no channels.
    large = [(2, 9, 7, 8), (3, 40, 33, 12), (2, 31, 30, 3), (5, 3, 3, 100), (1, 3, 5, 37), (3, 2, 4, 5, 68)] * LACKS_TYPES
    # The versions differ in their outputs.
    versions = ["V3", "V2", ""] if LACKS_TYPES else ["V3"]
    for dtype in ("float32", "float16", "bfloat16") if LACKS_TYPES else ("float32",):
        for shape, version in [(shape, "V3") for shape in small + large] + [((2, 9, 7, 8), version) for version in versions[1:]]:
            if version == "" and dtype != "float32":
                continue
            op, slope_op = "FusedBatchNorm" + version, "FusedBatchNormGrad" + version
            row = lambda low=-1, high=1: numbers(shape[-1:], "float32", low, high)
            for training, factor in [(True, 1.0), (True, 0.3), (False, 1.0)]:
                old = [row(), row(0.5, 2)] if not training or factor != 1.0 else [np.zeros(0, "float32")] * 2
                # The last of the outputs are for the gradient alone.
                case(op, lambda *inputs, training=training, factor=factor, op=op: tuple(normalize(
                    *inputs, op=op, exponential_avg_factor=factor, is_training=training))[:3], numbers(shape, dtype), row(), row(), *old)

                def slopes(dy, x, scale, offset, mean, variance, training=training, op=op, slope_op=slope_op):
                    # Outside of training the gradient gets the mean and the variance that were given.
                    saved = (None, None, None, mean, variance, tf.zeros([0]))
                    if training:
                        saved = normalize(x, scale, offset, mean, variance, op=op)
                    own = TYPE in x.device
                    third = {"reserve_space_3": saved[5]} if op.endswith("V3") else {}
                    found = getattr(raw, slope_op)(
                        y_backprop=dy if own else in_float(dy)[0], x=x if own else in_float(x)[0], scale=scale, reserve_space_1=saved[3], reserve_space_2=saved[4],
                        **third, epsilon=1e-3, is_training=training, data_format="NHWC" if x.shape.rank == 4 else "NDHWC")
                    return (tf.cast(found[0], x.dtype), *found[1:3])
                if factor == 1.0:
                    tolerance = 1e-4 if dtype == "float32" else 2e-2 if shape in large and dtype == "bfloat16" else None
                    case(slope_op, slopes, numbers(shape, dtype), numbers(shape, dtype), row(), row(), *old, tolerance=tolerance)
    if not LACKS_TYPES:
        return
    # NaN and infinities stay in their channels. A large mean takes no digits of the variance.
    for shape in [(2, 9, 7, 8), (2, 20, 31, 5)]:
        for training in (True, False):
            old = [np.zeros(0, "float32")] * 2 if training else [numbers(shape[-1:], "float32"), numbers(shape[-1:], "float32", 0.5, 2)]
            run = lambda *inputs, training=training: tuple(normalize(*inputs, is_training=training))[:3]
            case("FusedBatchNormV3", run, spoilt(numbers(shape, "float32"), np.nan, np.inf, -np.inf), *[numbers(shape[-1:], "float32")] * 2, *old)
            case("FusedBatchNormV3", run, numbers(shape, "float32", 99, 101), *[numbers(shape[-1:], "float32")] * 2, *old, tolerance=1e-3)


def first(x):
    """With the channels behind the first axis."""
    rank = len(x.shape)
    return tf.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_first():
    """What has channels first on the device is what the CPU has with channels last."""
    def compare(op, images, *others, data=1, results=1, **options):
        """`data` of the inputs are images, and `results` of the outputs."""
        def run(*inputs):
            if TYPE not in inputs[0].device:
                out = tf.nest.flatten(getattr(raw, op)(**dict(zip(names, inputs)), **options))
                return [first(x) if index < results else x for index, x in enumerate(out)][:results + 2]
            turned = {}
            for name, value in options.items():
                lists = name in ("strides", "ksize", "dilations")
                turned[name] = [value[0], value[-1], *value[1:-1]] if lists else value
                if name == "explicit_paddings":
                    turned[name] = [*value[:2], *value[-2:], *value[2:-2]]
            turned["data_format"] = "NCHW" if inputs[0].shape.rank == 4 else "NCDHW"
            out = tf.nest.flatten(getattr(raw, op)(**dict(zip(names, [first(x) if index < data else x for index, x in enumerate(inputs)])), **turned))
            return out[:results + 2]
        names = list(images) + [name for name, _ in others]
        case(op, run, *images.values(), *[value for _, value in others])

    x, v = numbers((2, 7, 6, 4), "float32"), numbers((2, 5, 7, 6, 4), "float32")
    for padding in (dict(padding="SAME"), dict(padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])):
        compare("Conv2D", {"input": x}, ("filter", numbers((3, 2, 4, 5), "float32")), strides=[1, 2, 1, 1], **padding)
    pools = dict(ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="VALID")
    y = numbers((2, 3, 5, 4), "float32")
    compare("AvgPool", {"value": x}, **pools)
    compare("MaxPool", {"input": x}, **pools)
    compare("MaxPoolGrad", {"orig_input": x, "orig_output": raw.MaxPool(input=x, **pools).numpy(), "grad": y}, data=3, **pools)
    deep = dict(ksize=[1, 2, 3, 2, 1], strides=[1, 1, 2, 1, 1], padding="SAME")
    compare("MaxPool3D", {"input": v}, **deep)
    compare("AvgPool3D", {"input": v}, **deep)
    compare("MaxPool3DGrad", {"orig_input": v, "orig_output": raw.MaxPool3D(input=v, **deep).numpy(), "grad": numbers((2, 5, 4, 6, 4), "float32")}, data=3, **deep)
    compare("Conv3D", {"input": v}, ("filter", numbers((2, 3, 2, 4, 3), "float32")), strides=[1, 1, 2, 1, 1], padding="SAME")
    compare("DepthwiseConv2dNative", {"input": x}, ("filter", numbers((3, 2, 4, 2), "float32")), strides=[1, 2, 2, 1], padding="SAME")
    compare("BiasAdd", {"value": x}, ("bias", numbers((4,), "float32")))
    compare("BiasAddGrad", {"out_backprop": x}, results=0)
    row = lambda low=-1, high=1: numbers((4,), "float32", low, high)
    compare("FusedBatchNormV3", {"x": x}, ("scale", row()), ("offset", row()), ("mean", row(0, 0)[:0]), ("variance", row(0, 0)[:0]))
    compare("FusedBatchNormGradV3", {"y_backprop": x, "x": numbers(x.shape, "float32")}, ("scale", row()), ("reserve_space_1", row()), ("reserve_space_2", row(0.5, 2)),
            ("reserve_space_3", row()[:0]), data=2, is_training=False)
    compare("SpaceToDepth", {"input": numbers((2, 6, 4, 3), "float32")}, block_size=2)
    compare("DepthToSpace", {"input": numbers((2, 3, 2, 8), "float32")}, block_size=2)

    def sizes(op, name, shape, *inputs, turn):
        """The gradients, which get the shape of what they are of."""
        options = dict(strides=[1, 2, 1, 1], padding="SAME")

        def run(*inputs):
            if TYPE not in inputs[0].device:
                out = getattr(raw, op)(**{name: tf.constant(shape)}, **dict(zip(names, inputs)), **options)
                return first(out) if turn else out
            turned = [shape[0], shape[3], *shape[1:3]] if turn else shape
            values = [first(value) if of != "filter" else value for of, value in zip(names, inputs)]
            return getattr(raw, op)(**{name: tf.constant(turned)}, **dict(zip(names, values)), strides=[1, 1, 2, 1], padding="SAME", data_format="NCHW")
        names = [of for of, _ in inputs]
        case(op, run, *[value for _, value in inputs])

    dy = numbers((2, 4, 6, 5), "float32")
    sizes("Conv2DBackpropInput", "input_sizes", [2, 7, 6, 4], ("filter", numbers((3, 2, 4, 5), "float32")), ("out_backprop", dy), turn=True)
    sizes("Conv2DBackpropFilter", "filter_sizes", [3, 2, 4, 5], ("input", x), ("out_backprop", dy), turn=False)
    pools = dict(ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="SAME")
    case("AvgPoolGrad", lambda g: first(raw.AvgPoolGrad(orig_input_shape=[2, 7, 6, 4], grad=g, **pools)) if TYPE not in g.device else raw.AvgPoolGrad(
        orig_input_shape=[2, 4, 7, 6], grad=first(g), ksize=[1, 1, 3, 2], strides=[1, 1, 2, 1], padding="SAME", data_format="NCHW"), numbers((2, 4, 6, 4), "float32"))
