"""Complex numbers and Fourier transforms."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, PAIRS, SHAPES, call, case, raw

random = np.random.default_rng(24)


def complex_numbers(shape):
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype("complex64")


def in_parts(x, largest=1.0):
    """Both parts, of which tolerances are, relative to the largest of all."""
    with tf.device(CPU):
        x = x.numpy()
        return tf.constant(np.stack([x.real, x.imag]) / largest, tf.float32)


def of_parts(op):
    return lambda *inputs: in_parts(op(*inputs))


def complexes():
    for shapes in PAIRS:
        for op in ("AddV2", "Sub", "Mul", "RealDiv", "DivNoNan"):
            case(op, of_parts(call(op, x=None, y=None)), *[complex_numbers(shape) for shape in shapes])
        case("Complex", of_parts(lambda a, b: raw.Complex(real=a, imag=b)), *[random.normal(size=shape).astype("float32") for shape in shapes])
    for shape in SHAPES:
        for op in ("Neg", "Square", "Reciprocal", "Sign", "Exp"):
            case(op, of_parts(call(op, x=None)), complex_numbers(shape))
        case("Conj", of_parts(call("Conj", input=None)), complex_numbers(shape))
        for op in ("Real", "Imag", "Angle"):
            case(op, call(op, input=None), complex_numbers(shape))
        case("ComplexAbs", call("ComplexAbs", x=None), complex_numbers(shape))
        case("Cast", lambda x: tf.cast(x, "float32"), complex_numbers(shape))
        for dtype in ("float32", "int32", "int64", "bool"):
            case("Cast", of_parts(lambda x: tf.cast(x, "complex64")), random.integers(0, 2, shape).astype(dtype))
        case("AddN", of_parts(lambda x: raw.AddN(inputs=[x, x * x, x])), complex_numbers(shape))
    # Large and small ones, whose squares are not, and zeros.
    edges = np.complex64([3e30 + 4e30j, 3e-30 - 4e-30j, 0, -0.0, 1e38, 2j, -2j, -1, -1 - 0j, complex(-1, -0.0)])
    for op in ("ComplexAbs", "Angle"):
        case(op, lambda x, op=op: getattr(raw, op)(**{"x" if op == "ComplexAbs" else "input": x}) * np.float32(1), edges)
    case("Sign", of_parts(call("Sign", x=None)), edges)
    case("RealDiv", of_parts(call("RealDiv", x=None, y=None)), edges[:2, None], edges[:2])
    case("DivNoNan", of_parts(call("DivNoNan", x=None, y=None)), edges[:2], np.complex64([0, 2j]))
    for shape, axes in [((4,), [0]), ((3, 5, 7), [0, 2]), ((3, 5, 7), [1]), ((2, 40000), [1]), ((0, 3), [0]), ((3,), [])]:
        for keep in (False, True):
            case("Sum", of_parts(lambda x, axes=axes, keep=keep: raw.Sum(input=x, axis=tf.constant(axes, tf.int32), keep_dims=keep)), complex_numbers(shape) / 100)
    moves()


def moves():
    """Elements of 8 bytes, as others of that size: the same bits."""
    x = complex_numbers((3, 4, 5))
    for op, function in dict(
            Transpose=lambda x: raw.Transpose(x=x, perm=[2, 0, 1]), ReverseV2=lambda x: raw.ReverseV2(tensor=x, axis=[1]), ConcatV2=lambda x: raw.ConcatV2(values=[x, x], axis=1),
            Fill=lambda x: raw.Fill(dims=[2, 3], value=x[0, 0, 0]), Pack=lambda x: raw.Pack(values=[x, x], axis=1), Unpack=lambda x: raw.Unpack(value=x, num=4, axis=1),
            Pad=lambda x: raw.Pad(input=x, paddings=[[1, 0], [0, 2], [0, 0]]),
            PadV2=lambda x: raw.PadV2(input=x, paddings=[[1, 0], [0, 2], [0, 0]], constant_values=tf.constant(3 - 2j, tf.complex64)),
            Slice=lambda x: raw.Slice(input=x, begin=[0, 1, 2], size=[2, 2, 3]), StridedSlice=lambda x: x[:, ::-2, 1:],
            Split=lambda x: raw.Split(axis=1, value=x, num_split=2), SplitV=lambda x: raw.SplitV(value=x, size_splits=[1, 3], axis=1, num_split=2),
            Tile=lambda x: raw.Tile(input=x, multiples=[1, 2, 1]), BroadcastTo=lambda x: raw.BroadcastTo(input=x[:, :1], shape=[3, 4, 5]),
            GatherV2=lambda x: raw.GatherV2(params=x, indices=tf.constant([2, 0], tf.int64), axis=1),
            SelectV2=lambda x: raw.SelectV2(condition=tf.constant([[True], [False], [True], [False]]), t=x, e=x[:1]),
            Select=lambda x: raw.Select(condition=tf.constant([True, False, True]), x=x, y=x[::-1]),
            TensorStridedSliceUpdate=lambda x: raw.TensorStridedSliceUpdate(input=x, begin=[0], end=[1], strides=[1], value=x[1:2]),
            StridedSliceGrad=lambda x: raw.StridedSliceGrad(shape=[3, 6, 5], begin=[0, 1], end=[3, 5], strides=[1, 1], dy=x)).items():
        case(op, function, x)


def scaled(op, largest, **attributes):
    """A transform, relative to its largest result."""
    largest = max(float(np.abs(largest).max(initial=0)), 1e-30)
    names = {name: tf.constant(value, tf.int32) for name, value in attributes.items()}
    return lambda x: in_parts(getattr(raw, op)(input=x, **names), largest)


def transforms():
    lens = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 30, 64, 97, 128, 251, 400, 1000, 1024, 2018, 4096)
    one = [(len,) for len in lens] + [(3, 8), (2, 3, 20), (0, 4), (5, 0), (2, 1, 6)]
    two, three = [(4, 6), (2, 5, 7), (16, 33), (1, 9), (2, 0, 3)], [(2, 3, 4), (2, 4, 5, 6), (1, 1, 3)]
    for rank, shapes in ((1, one), (2, two), (3, three)):
        end = "%dD" % rank if rank > 1 else ""
        axes = range(-rank, 0)
        for shape in shapes:
            x = complex_numbers(shape)
            known = np.fft.fftn(x, axes=axes) if x.size else x
            case("FFT" + end, scaled("FFT" + end, known), x, tolerance=1e-5)
            case("IFFT" + end, scaled("IFFT" + end, known / np.prod(shape[-rank:])), x, tolerance=1e-5)
            for less in (0, 1):
                # What is behind the length is left out.
                lengths = [max(size - less, 1) for size in shape[-rank:]] if x.size else [0] * rank
                cut = tuple(slice(0, length) for length in lengths)
                known = np.fft.fftn(x.real[(Ellipsis,) + cut], axes=axes) if x.size else x
                case("RFFT" + end, scaled("RFFT" + end, known, fft_length=lengths), x.real.copy(), tolerance=1e-5)
                half = x[..., :lengths[-1] // 2 + 1 + less]
                case("IRFFT" + end, scaled("IRFFT" + end, known / np.prod(lengths), fft_length=lengths), half, tolerance=1e-5)
    x = complex_numbers((3, 8))
    case("FFT2D", lambda x: raw.FFT2D(input=x), x[0], fails="must have rank of at least 2")
    case("RFFT", lambda x: raw.RFFT(input=x, fft_length=[9]), x.real.copy(), fails="must have length of at least 9")
    case("IRFFT", lambda x: raw.IRFFT(input=x, fft_length=[16]), x, fails="must have length of at least 9")
    case("RFFT", lambda x: raw.RFFT(input=x, fft_length=[-1]), x.real.copy(), fails="fft_length|must >= 0")
