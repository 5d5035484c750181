"""Images that are moved or seen from elsewhere."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, FLOATS, TYPE, call, case, flags, numbers, on_the_cpu_in_float, raw


def images():
    everything = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
    for dtype in everything:
        make = lambda shape: flags(shape) if dtype == "bool" else numbers(shape, dtype, 0, 99)
        for shape, block, around in [((1, 4, 6, 1), [2, 3], [[0, 0], [0, 0]]), ((2, 5, 7, 3), [2, 3], [[1, 2], [0, 2]]), ((2, 5), [3], [[4, 0]]), ((2, 4, 3, 2), [1, 3], [[0, 0], [0, 0]]),
                                     ((2, 3, 4, 5), [3, 1], [[0, 3], [0, 0]]), ((2, 3, 4), [1, 1], [[0, 0], [0, 0]]), ((2, 3, 4), [1], [[1, 2]]), ((3, 2), [], []), ((0, 4, 2), [2], [[0, 0]]),
                                     ((2, 0, 2), [2], [[1, 1]]), ((2, 2, 3, 2, 3, 2), [2, 1, 2, 1], [[1, 1], [1, 0], [0, 0], [0, 2]]), ((1, 2, 2, 2, 2), [1, 2, 2, 2], [[0, 0]] + [[0, 2]] * 3)]:
            for index in ("int32", "int64"):
                if dtype == "bool":
                    continue  # The CPU has no kernel.
                block_of = lambda block=block, index=index: tf.constant(block, index, shape=[len(block)])
                around_of = lambda around=around, index=index: tf.constant(around, index, shape=[len(around), 2])
                case("SpaceToBatchND", lambda x, block=block_of, around=around_of: raw.SpaceToBatchND(input=x, block_shape=block(), paddings=around()), make(shape))
                # As many blocks, and without what is around the images.
                blocks_shape = (shape[0] * int(np.prod(block)),) + tuple(
                    (size + sum(pair)) // one for size, pair, one in zip(shape[1:], around, block)) + shape[1 + len(block):]
                case("BatchToSpaceND", lambda x, block=block_of, around=around_of: raw.BatchToSpaceND(input=x, block_shape=block(), crops=around()), make(blocks_shape))
        for shape, size in [((2, 4, 6, 3), 2), ((1, 9, 3, 1), 3), ((0, 2, 2, 1), 2), ((2, 0, 2, 3), 2)]:
            case("SpaceToDepth", call("SpaceToDepth", input=None, block_size=size), make(shape))
            case("DepthToSpace", call("DepthToSpace", input=None, block_size=size), make((shape[0], shape[1] // size, shape[2] // size, shape[3] * size * size)))
        for shape, pads in [((3,), [[2, 1]]), ((3, 4), [[0, 0], [1, 3]]), ((4, 5, 2), [[3, 3], [2, 0], [0, 0]]), ((2, 3, 4, 3, 2), [[1, 1], [0, 0], [2, 3], [0, 1], [0, 0]]), ((2, 3), [[0, 0], [0, 0]]),
                            ((0, 3), [[0, 0], [1, 1]]), ((), []), ((2, 2, 2, 2, 2), [[1, 1]] * 5)]:
            for mode in ("REFLECT", "SYMMETRIC"):
                if mode == "SYMMETRIC" and shape == (3,):
                    pads = [[3, 3]]
                if mode == "REFLECT" and 0 in shape:
                    continue
                for index in ("int32", "int64"):
                    options = dict(mode=mode, paddings=lambda pads=pads, index=index: tf.constant(pads, index, shape=[len(pads), 2]))
                    case("MirrorPad", lambda x, mode=mode, of=options["paddings"]: raw.MirrorPad(input=x, paddings=of(), mode=mode), make(shape))
                    if dtype in FLOATS and 0 not in shape:
                        gradient = [size + sum(pair) for size, pair in zip(shape, pads)]
                        case("MirrorPadGrad", on_the_cpu_in_float(lambda x, mode=mode, of=options["paddings"]: raw.MirrorPadGrad(
                            input=x, paddings=of(), mode=mode)), numbers(gradient, dtype))
        for shape, shift, axis in [((5,), 2, 0), ((5,), [-7], [0]), ((3, 4), [1, -1], [0, 1]), ((3, 4), [1, 2], [-1, 1]), ((3, 4), [3], [0]), ((2, 3, 4, 5), [1, 9], [1, 2]), ((0, 3), [1], [0]),
                                   ((2, 0), [1, 1], [0, 1]), ((3, 4), [], []), ((1,), [1 << 30], [0])]:
            for index in ("int32", "int64"):
                vector = lambda values, index=index: tf.constant(values, index)
                case("Roll", lambda x, shift=shift, axis=axis, vector=vector: raw.Roll(input=x, shift=vector(shift), axis=vector(axis)), make(shape))
        for shape, lengths, sequence, batch in [((3, 4), [0, 4, 3], 1, 0), ((3, 4), [3, 0, 1, 2], 0, 1), ((2, 5, 3), [5, 2], 1, 0), ((4, 3, 2, 2), [1, 4], 0, 2), ((2, 3, 2, 2, 2), [3, 1], 1, 4),
                                                ((0, 3), [], 1, 0), ((2, 0, 3), [0, 0], 1, 0), ((1, 1), [1], 1, 0)]:
            for index in ("int32", "int64"):
                case("ReverseSequence", call("ReverseSequence", input=None, seq_lengths=None, seq_dim=sequence, batch_dim=batch), make(shape), np.array(lengths, index))
        for shape, size, stride, rate in [((2, 5, 7, 3), (3, 2), (2, 1), (1, 1)), ((1, 8, 7, 1), (2, 3), (1, 3), (2, 2)), ((0, 4, 4, 2), (2, 2), (1, 1), (1, 1)), ((2, 3, 3, 2), (1, 1), (1, 1), (1, 1)),
                                          ((1, 4, 5, 0), (2, 2), (1, 1), (1, 1)), ((1, 4, 5, 2), (3, 3), (5, 5), (1, 1))]:
            for padding in ("SAME", "VALID"):
                if dtype == "bool":
                    continue  # The CPU has no kernel.
                four = lambda pair: [1, *pair, 1]
                case("ExtractImagePatches", call("ExtractImagePatches", images=None, ksizes=four(size), strides=four(stride), rates=four(rate), padding=padding), make(shape))
    x = numbers((2, 3, 5, 4), "float32")
    for block, around, text in [([2, 2], [[0, 0], [0, 0]], "divisible"), ([2, 0], [[1, 0], [0, 0]], "positive"), ([2], [[-1, 0]], "negative"), ([2], [[0, 0], [0, 0]], "paddings should have shape|paddings"),
                                ([1] * 4, [[1, 1]] * 4, "rank")]:
        case("SpaceToBatchND", lambda x, block=block, around=around: raw.SpaceToBatchND(input=x, block_shape=block, paddings=around), x, fails=text)
    for block, around, text in [([3, 1], [[0, 0], [0, 0]], "not divisible"), ([2, 1], [[4, 3], [0, 0]], "negative"), ([2], [[-1, 0]], "negative"), ([0, 2], [[0, 0], [0, 0]], "positive")]:
        case("BatchToSpaceND", lambda x, block=block, around=around: raw.BatchToSpaceND(input=x, block_shape=block, crops=around), x, fails=text)
    case("SpaceToBatchND", lambda x: raw.SpaceToBatchND(input=x, block_shape=[2] * 5, paddings=[[1, 0]] * 5), numbers((1,) * 6, "float32"), fails="Maximum number")
    case("SpaceToDepth", call("SpaceToDepth", input=None, block_size=2), x, fails="divisible")
    case("DepthToSpace", call("DepthToSpace", input=None, block_size=3), x, fails="divisible")
    case("DepthToSpace", call("DepthToSpace", input=None, block_size=2), x[0], fails="rank|Shape")
    for op in ("MirrorPad", "MirrorPadGrad"):
        for mode, pads, text in [("REFLECT", [[0, 0], [3, 3]], "less than"), ("SYMMETRIC", [[0, 0], [0, 6]], "no greater"), ("REFLECT", [[0, 0], [-1, 0]], "negative"), ("REFLECT", [[0, 0]], "paddings")]:
            case(op, lambda x, op=op, mode=mode, pads=pads: getattr(raw, op)(input=x, paddings=pads, mode=mode), x[0, :, :3, 0], fails=text)
    case("Roll", lambda x: raw.Roll(input=x, shift=[1], axis=[4]), x, fails="out of range|no axis")
    case("Roll", lambda x: raw.Roll(input=x, shift=[1, 2], axis=[1]), x, fails="same size")
    case("ReverseSequence", call("ReverseSequence", input=None, seq_lengths=None, seq_dim=1, batch_dim=1), x, np.int32([1, 2]), fails="batch_dim == seq_dim")
    case("ReverseSequence", call("ReverseSequence", input=None, seq_lengths=None, seq_dim=4, batch_dim=0), x, np.int32([1, 2]), fails="rank")
    case("ReverseSequence", call("ReverseSequence", input=None, seq_lengths=None, seq_dim=1, batch_dim=0), x, np.int32([1, 2, 3]), fails="Length of seq_lengths")

    def kept(x, lengths):
        """A length that is too large reverses all, a negative one nothing: the CPU refuses both."""
        if TYPE not in x.device:
            lengths = tf.clip_by_value(lengths, 0, x.shape[1])
        return raw.ReverseSequence(input=x, seq_lengths=lengths, seq_dim=1, batch_dim=0)
    case("ReverseSequence", kept, x, np.int32([7, -1]))
    case("ReverseSequence", kept, x, np.int64([1 << 40, -(1 << 40)]))
    case("ExtractImagePatches", call("ExtractImagePatches", images=None, ksizes=[1, 7, 9, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"), x, fails="negative")


def resizes():
    sizes = [((2, 5, 7, 3), (9, 4)), ((1, 4, 4, 1), (8, 8)), ((2, 9, 6, 2), (3, 2)), ((1, 1, 1, 3), (4, 5)), ((1, 6, 5, 4), (1, 1)), ((2, 3, 4, 2), (3, 4)), ((1, 2, 31, 1), (3, 100)),
             ((1, 100, 3, 1), (31, 7)), ((0, 3, 4, 2), (2, 2)), ((1, 7, 3, 9), (7, 5))]
    for shape, size in sizes:
        for align, half in [(False, False), (True, False), (False, True)]:
            options = dict(align_corners=align, half_pixel_centers=half)
            for dtype in ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16"]:
                x = numbers(shape, dtype, 0, 99)
                case("ResizeNearestNeighbor", call("ResizeNearestNeighbor", images=None, size=size, **options), x)
                case("ResizeBilinear", call("ResizeBilinear", images=None, size=size, **options), x, tolerance=1e-6)
            for dtype in FLOATS:
                case("ResizeNearestNeighborGrad", on_the_cpu_in_float(call("ResizeNearestNeighborGrad", grads=None, size=shape[1:3], **options)), numbers((shape[0], *size, shape[3]), dtype))
                case("ResizeBilinearGrad", call("ResizeBilinearGrad", grads=None, original_image=None, **options), numbers((shape[0], *size, shape[3]), "float32"), numbers(shape, dtype))
        case("ResizeNearestNeighborGrad", call("ResizeNearestNeighborGrad", grads=None, size=shape[1:3], align_corners=True, half_pixel_centers=True), numbers((shape[0], *size, shape[3]), "float32"))
    # Many scales: the elements that are taken are the CPU's, to the last.
    for size in list(range(1, 70)) + [333, 1000, 4095]:
        for own in (3, 10, 64, 77):
            for align, half in [(False, False), (True, False), (False, True)]:
                options = dict(align_corners=align, half_pixel_centers=half)
                ascending = np.arange(own, dtype="float32").reshape(1, 1, own, 1)
                case("ResizeNearestNeighbor", call("ResizeNearestNeighbor", images=None, size=(1, size), **options), ascending)
                if size % 7 == 0 or size > 70:
                    case("ResizeBilinear", call("ResizeBilinear", images=None, size=(1, size), **options), ascending, tolerance=1e-7)
                    case("ResizeNearestNeighborGrad", call("ResizeNearestNeighborGrad", grads=None, size=(1, own), **options), numbers((1, 1, size, 1), "float32"))
                    case("ResizeBilinearGrad", call("ResizeBilinearGrad", grads=None, original_image=None, **options), numbers((1, 1, size, 1), "float32"), ascending, tolerance=1e-4)
    special = np.array([np.inf, -np.inf, np.nan, 1.0], "float32").reshape(1, 2, 2, 1)
    for size in ((2, 2), (3, 3)):
        case("ResizeBilinear", call("ResizeBilinear", images=None, size=size), special)
    x = numbers((1, 3, 4, 2), "float32")
    for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
        case(op, call(op, images=None, size=(2, 2), align_corners=True, half_pixel_centers=True), x, fails="align_corners must be False")
        case(op, call(op, images=None, size=(0, 2)), x, fails="must be positive")
        case(op, call(op, images=None, size=(-1, 2)), x, fails="must be positive|must be non-negative")
        case(op, call(op, images=None, size=(1, 2, 3)), x, fails="two elements|dimension")
        case(op, call(op, images=None, size=(2, 2)), x[0], fails="4-dimensional|rank")
        case(op, call(op, images=None, size=(2, 2)), x[:, :0], fails="non-zero size")
        case(op, call(op, images=None, size=(2, 2)), x[..., :0], fails="at least one channel")
    case("ResizeNearestNeighborGrad", call("ResizeNearestNeighborGrad", grads=None, size=(0, 2)), x, fails="must be positive")
    case("ResizeBilinearGrad", call("ResizeBilinearGrad", grads=None, original_image=None), x, x[:, :0], fails="original dimensions must be positive")
    case("ResizeBilinearGrad", call("ResizeBilinearGrad", grads=None, original_image=None), x[:, :0], x, fails="resized dimensions must be positive")
    case("ResizeBilinearGrad", call("ResizeBilinearGrad", grads=None, original_image=None, align_corners=True, half_pixel_centers=True), x, x, fails="align_corners must be False")


def views():
    """Colors, and images seen from elsewhere."""
    for dtype in FLOATS:
        for shape in [(3,), (2, 3), (0, 3), (2, 5, 7, 3)]:
            for op in ("RGBToHSV", "HSVToRGB"):
                case(op, on_the_cpu_in_float(call(op, images=None)), numbers(shape, dtype, 0, 1))
        gray = np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.25], [0.25, 0.5, 0.5], [0.5, 0.25, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1]]).astype(tf.as_dtype(dtype).as_numpy_dtype)
        for op in ("RGBToHSV", "HSVToRGB"):
            case(op, on_the_cpu_in_float(call(op, images=None)), gray)
    for op in ("RGBToHSV", "HSVToRGB"):
        case(op, call(op, images=None), numbers((2, 4), "float32"), fails="3 channels|must be 3")
        case(op, call(op, images=None), numbers((), "float32"), fails="at least 1D|at least rank 1")

    turn = [0.8, -0.6, 2.0, 0.6, 0.8, -1.0, 0.0, 0.0]
    transforms = [[[1, 0, 0, 0, 1, 0, 0, 0]], [turn], [[1, 0, 0.5, 0, 1, -2.5, 0, 0]], [[1, 0, 100.25, 0, 1, -77.5, 0, 0]], [[0.3, 0.1, 1, 0.2, 0.4, 2, 0.01, 0.02]],
                  [[1, 0, 0, 0, 1, 0, -0.5, 0]], [[-7, 0, 3, 0, 9, -3, 0, 0]], [turn, [1, 0, 1, 0, 1, 1, 0, 0]]]
    for dtype in ["float32", "float64", "float16", "bfloat16", "uint8"]:
        for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
            for interpolation in ("NEAREST", "BILINEAR"):
                for shape, size in [((2, 5, 7, 3), (5, 7)), ((2, 6, 4, 1), (3, 9)), ((2, 1, 1, 2), (2, 3)), ((2, 2, 1, 1), (4, 4)), ((2, 0, 3, 1), (2, 2)), ((2, 3, 3, 0), (2, 2))]:
                    for transform in transforms:
                        if 0 in shape and fill != "CONSTANT":
                            continue
                        # The value beyond the images has a part that bytes have not.
                        case("ImageProjectiveTransformV3", lambda x, t, size=size, fill=fill, interpolation=interpolation: raw.ImageProjectiveTransformV3(
                            images=x, transforms=t, output_shape=size, fill_value=3.7, interpolation=interpolation, fill_mode=fill), numbers(shape, dtype, 0, 99), np.float32(transform))
    x = numbers((2, 3, 4, 1), "float32")
    for images, transform, size, text in [(x[0], transforms[0], (2, 2), "rank"), (x, [turn] * 3, (2, 2), "num_images x 8|1 x 8"), (x, [turn[:7]], (2, 2), "num_images x 8|dimension"),
                                          (x, [turn], (0, 2), "must be positive"), (x, [turn], (2,), "two elements|must be 2|dimension")]:
        case("ImageProjectiveTransformV3", lambda x, t, size=size: raw.ImageProjectiveTransformV3(
            images=x, transforms=t, output_shape=size, fill_value=0.0, interpolation="NEAREST"), images, np.float32(transform), fails=text)
