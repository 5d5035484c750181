"""Operations on each element."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, FLOATS, INTEGERS, LACKS_TYPES, NUMBERS, PAIRS, SHAPES, SPECIAL, TYPE, bits, call, case, flags, numbers, on_the_cpu_in_float, raw


def unary():
    anything = ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign"]
    for op in anything:
        for dtype in FLOATS:
            for shape in SHAPES:
                case(op, call(op, features=None), numbers(shape, dtype, -8, 8))
            case(op, call(op, features=None), np.array(SPECIAL).astype(tf.as_dtype(dtype).as_numpy_dtype))
    for op in ["Sigmoid", "Tanh", "Exp", "Expm1", "Sin", "Cos", "Erf", "Erfc", "Floor", "Ceil", "Round", "Rint", "Neg", "Abs",
               "Square", "Sign", "Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal", "Inv", "IsNan", "IsInf", "IsFinite", "ZerosLike",
               "OnesLike"]:
        low = 0.1 if op in ("Sqrt", "Rsqrt", "Log", "Reciprocal", "Inv") else -0.9 if op == "Log1p" else -3
        for dtype in FLOATS:
            # The CPU has no kernel.
            if op == "Rint" and dtype in ("float16", "bfloat16"):
                continue
            for shape in SHAPES:
                case(op, call(op, x=None), numbers(shape, dtype, low, 3))
            # The CPU's approximations of these are off at the ends.
            if op not in ("Sin", "Cos", "Erf", "Erfc"):
                case(op, call(op, x=None), np.array(SPECIAL).astype(tf.as_dtype(dtype).as_numpy_dtype))
    for op in ["Neg", "Abs", "Square", "Sign", "ZerosLike", "OnesLike"]:
        case(op, call(op, x=None), np.array([0, 1, -7, 1 << 40, -(1 << 63)]))
    for dtype in ["int8", "int16", "uint8", "uint16", "uint32", "uint64"]:
        for op in ["ZerosLike", "OnesLike"]:
            case(op, call(op, x=None), numbers((2, 3), dtype, 0, 9))
    case("ZerosLike", call("ZerosLike", x=None), flags((2, 3)))
    for dtype in FLOATS:
        for value in (0.2, 0.0, 1.5):
            x = numbers((3, 5), dtype)
            case("LeakyRelu", call("LeakyRelu", features=None, alpha=value), x)
            case("LeakyReluGrad", call("LeakyReluGrad", gradients=None, features=None, alpha=value), x, numbers((3, 5), dtype))
    case("LogicalNot", call("LogicalNot", x=None), flags((3, 4)))
    for op, low, high in [("Tan", -3, 3), ("Asin", -1, 1), ("Acos", -1, 1), ("Atan", -9, 9), ("Sinh", -9, 9), ("Cosh", -9, 9), ("Asinh", -99, 99),
                          ("Acosh", 1, 99), ("Atanh", -0.99, 0.99), ("Erfinv", -0.999, 0.999)]:
        for dtype in FLOATS:
            # The CPU has no kernel.
            if op == "Erfinv" and dtype in ("float16", "bfloat16"):
                continue
            for shape in SHAPES:
                case(op, on_the_cpu_in_float(call(op, x=None)), numbers(shape, dtype, low, high))
            if op not in ("Tan", "Sinh", "Cosh", "Asinh", "Acosh"):
                ends = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.nan] + [7.0, -7.0] * (op != "Erfinv") + [np.inf, -np.inf] * (op == "Atan")
                case(op, on_the_cpu_in_float(call(op, x=None)), np.array(ends).astype(tf.as_dtype(dtype).as_numpy_dtype))
    for op in ("Sin", "Cos", "Tan"):
        large = numbers((3000,), "float32", -1, 1) * 10.0 ** numbers((3000,), "float32", 3, 38)
        # The CPU's own numbers are those of float64, rounded.
        case(op, lambda x, op=op: call(op, x=None)(x) if TYPE in x.device else tf.cast(call(op, x=None)(tf.cast(x, tf.float64)), x.dtype), large)
    # Zeros have signs.
    for op in ("Tan", "Asin", "Sinh", "Asinh", "Atanh", "Atan"):
        case(op, lambda x, op=op: raw.Reciprocal(x=call(op, x=None)(x)), np.float32([0.0, -0.0]))
    for op, values in [("Sinh", [0.3, 1e-4, 50.0, 88.5, -89.0, 95.0]), ("Cosh", [0.0, 50.0, 88.5, -89.0, 95.0]), ("Asinh", [0.0, 1e-4, -1e12, 3e38, np.inf]),
                       ("Acosh", [1.0, 1.0001, 1e12, 3e38, 0.5, np.inf])]:
        case(op, call(op, x=None), np.float32(values))
    for dtype in INTEGERS:
        case("Invert", call("Invert", x=None), bits((3, 5), dtype))


def gradients():
    for op, first, second in [("ReluGrad", "gradients", "features"), ("Relu6Grad", "gradients", "features"),
                              ("EluGrad", "gradients", "outputs"), ("SeluGrad", "gradients", "outputs"),
                              ("SoftplusGrad", "gradients", "features"), ("SoftsignGrad", "gradients", "features"),
                              ("SigmoidGrad", "y", "dy"), ("TanhGrad", "y", "dy"), ("SqrtGrad", "y", "dy"),
                              ("RsqrtGrad", "y", "dy"), ("ReciprocalGrad", "y", "dy"), ("InvGrad", "y", "dy")]:
        for dtype in FLOATS:
            for shape in SHAPES:
                a = numbers(shape, dtype, 0.2, 1) if first == "y" else numbers(shape, dtype, -8, 8)
                case(op, call(op, **{first: None, second: None}), a, numbers(shape, dtype, -1, 8))


def binary():
    for op in ["AddV2", "Add", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Less", "LessEqual",
               "Greater", "GreaterEqual", "Equal", "NotEqual"]:
        for dtype in NUMBERS:
            for a, b in PAIRS:
                case(op, call(op, x=None, y=None), numbers(a, dtype), numbers(b, dtype))
                case(op, call(op, x=None, y=None), numbers(b, dtype), numbers(a, dtype))
        for dtype in FLOATS:
            special = np.array(SPECIAL).astype(tf.as_dtype(dtype).as_numpy_dtype)
            case(op, call(op, x=None, y=None), special[:, None], special)
        case(op, call(op, x=None, y=None), np.array([1 << 62, -(1 << 63)]), np.array([1 << 62, 5]))
    for op in ["RealDiv", "Div", "FloorDiv", "FloorMod", "DivNoNan", "MulNoNan", "Pow", "Xlogy", "Xdivy", "Atan2"]:
        for dtype in FLOATS:
            if op == "Atan2" and dtype == "float16":
                continue
            low = 0.2 if op in ("Pow", "Xlogy") else -3
            for a, b in PAIRS:
                x, y = numbers(a, dtype, low), numbers(b, dtype, low)
                # Away from where a rounded quotient jumps.
                if op in ("FloorDiv", "FloorMod"):
                    x, y = np.round(x) + x.dtype.type(0.25), np.where(y < 0, -0.5, 0.5).astype(y.dtype)
                case(op, call(op, x=None, y=None) if op != "Atan2" else call(op, y=None, x=None), x, y)
            if op in ("RealDiv", "DivNoNan", "MulNoNan"):
                special = np.array(SPECIAL).astype(tf.as_dtype(dtype).as_numpy_dtype)
                case(op, call(op, x=None, y=None), special[:, None], special)
    for op in ["Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"]:
        x, y = np.arange(-7, 8)[:, None], np.array([-3, -2, -1, 1, 2, 5])
        if op == "Mod":
            x = abs(x)
        case(op, call(op, x=None, y=None), x, y)
        # A GPU cannot raise it.
        if not (LACKS_TYPES and op.startswith("Floor")):
            case(op, call(op, x=None, y=None), np.array([1, 2]), np.array([1, 0]), fails="Integer division by zero")
        case(op, call(op, x=None, y=None), np.zeros((0, 2), "int64"), np.array([1, 0]))
    for dtype in ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"] * LACKS_TYPES:
        for op in ["FloorDiv", "FloorMod"]:
            x, y = bits((90, 1), dtype), bits((90,), dtype)
            # The CPU divides the smallest number by -1 without a result.
            small = np.array([1, 2, 3, 7, 100], dtype)
            case(op, call(op, x=None, y=None), x, np.concatenate([y[(y != 0) & (y + 1 != 0)], small]))
    for op in ["LogicalAnd", "LogicalOr"]:
        case(op, call(op, x=None, y=None), flags((4, 1)), flags((1, 5)))
    for op in ["Equal", "NotEqual"]:
        case(op, call(op, x=None, y=None), flags((4, 1)), flags((1, 5)))
        for dtype in ["int8", "int16", "uint8", "uint16", "uint32", "uint64"]:
            case(op, call(op, x=None, y=None), numbers((3, 1), dtype, 0, 3), numbers((4,), dtype, 0, 3))
        # As `==` and `!=` compare.
        for a, b in [((2,), (3,)), ((2, 2), (2, 3)), ((0,), (2,)), ((2, 1), (3,))]:
            for make in (flags, lambda shape: np.ones(shape, "float32")):
                case(op, call(op, x=None, y=None, incompatible_shape_error=False), make(a), make(b))
        case(op, call(op, x=None, y=None), numbers((2,), "float32"), numbers((3,), "float32"), fails="Incompatible shapes")
    case("AddV2", call("AddV2", x=None, y=None), numbers((2,), "float32"), numbers((3,), "float32"), fails="Incompatible shapes")
    for dtype in INTEGERS:
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            case(op, call(op, x=None, y=None), bits((4, 1), dtype), bits((5,), dtype))
        for op in ("LeftShift", "RightShift"):
            counts = [0, 1, 3, 7, 8, 63] + [1 << 63] * (dtype == "uint64")
            case(op, call(op, x=None, y=None), bits((4, 1), dtype), np.array(counts).astype(dtype))
        # Those of all devices are elsewhere.
        if LACKS_TYPES and dtype not in ("int32", "int64"):
            for op in ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "Less", "LessEqual", "Greater", "GreaterEqual"):
                case(op, call(op, x=None, y=None), bits((4, 1), dtype), bits((5,), dtype))


def roundings():
    """Results that jump, of random pairs: not a bit may differ."""
    for dtype in ("bfloat16", "float16"):
        small, large = numbers((20000,), dtype, -3, 3), numbers((20000,), dtype, -300, 300)
        for op in ["FloorDiv", "FloorMod", "Div", "RealDiv", "DivNoNan", "MulNoNan", "SquaredDifference", "Sub", "Mul"]:
            case(op, call(op, x=None, y=None), large, small, tolerance=0)
            case(op, call(op, x=None, y=None), small, large, tolerance=0)
        for op in ["Floor", "Ceil", "Round", "Rint"]:
            # The CPU has no kernel.
            if op != "Rint":
                case(op, call(op, x=None), np.concatenate([small, large]), tolerance=0)


def choices():
    for dtype in NUMBERS + ["bool", "int32"]:
        make = lambda shape: flags(shape) if dtype == "bool" else numbers(shape, dtype)
        for c, a, b in [((), (2, 3), (2, 3)), ((2, 1), (3,), (2, 3)), ((4,), (), ()), ((0,), (0,), (1,)), ((3, 2), (3, 2), (3, 2)), ((2, 1, 3, 1, 2, 1), (1, 2, 1, 3, 1, 2), (2, 1)), ((2, 1) * 4, (2,) * 8, (1, 2) * 4)]:
            case("SelectV2", call("SelectV2", condition=None, t=None, e=None), flags(c), make(a), make(b))
        for c, a in [((), (2, 3)), ((2,), (2, 3)), ((2, 3), (2, 3)), ((0,), (0, 3))]:
            case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), flags(c), make(a), make(a))
    for c, a in [((1,), (3, 2)), ((1,), (3,)), ((1, 2), (3, 2)), ((1,), ()), ((2,), (3, 2))]:
        case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), flags(c), numbers(a, "float32"), numbers(a, "float32"), fails="'then'|Inputs to operation|Incompatible shapes|must")
    types = FLOATS + ["int8", "int32", "int64", "uint8", "bool"]
    for source in types:
        for target in types:
            if source == target:
                continue
            for shape in [(), (0,), (3, 5)]:
                x = flags(shape) if source == "bool" else numbers(shape, source, 0, 100)
                case("Cast", lambda x, target=target: raw.Cast(x=x, DstT=target), x)
            if source != "bool" and not source.startswith("u") and not target.startswith("u"):
                case("Cast", lambda x, target=target: raw.Cast(x=x, DstT=target), numbers((50,), source, -100, 100))


def quantized_to_scales(make):
    """The ops `QuantizeAndDequantize…`: bits, signs, ranges that are given or found, of all numbers or along an axis."""
    zero = np.float32(0)
    for bits, narrow, signed, mode in ((8, False, True, "HALF_TO_EVEN"), (4, True, True, "HALF_UP"), (3, False, False, "HALF_TO_EVEN"), (12, False, False, "HALF_UP")):
        options = dict(signed_input=signed, narrow_range=narrow, num_bits=bits)
        for shape in ((), (0,), (17,), (3, 5, 7), (400, 6)):
            x = make(shape)
            for axis in [-1] + list(range(len(shape)))[-2:]:
                depth = () if axis < 0 else (shape[axis],)
                low, high = -np.abs(make(depth)).astype("float32"), np.abs(make(depth, 5.0)).astype("float32")
                for given in (True, False):
                    if not given and axis >= 0 and not x.size:
                        continue
                    limits = (low, high) if given else (zero, zero)
                    rest = dict(input=None, input_min=None, input_max=None, range_given=given, axis=axis)
                    # Of these the CPU refuses given ranges along an axis, in all shapes.
                    for op in () if given and axis >= 0 else ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
                        case(op, call(op, round_mode=mode, **rest, **options), x, *limits)
                    if shape:
                        case("QuantizeAndDequantizeV3", call("QuantizeAndDequantizeV3", **rest, num_bits=None, signed_input=signed, narrow_range=narrow), x, *limits, np.int32(bits))
                case("QuantizeAndDequantizeV4Grad", call("QuantizeAndDequantizeV4Grad", gradients=None, input=None, input_min=None, input_max=None, axis=axis), make(shape, 1.0), x, low, high)
    x = make((2, 3))
    for sign in (zero, np.float32(-1)):
        # Nothing but zeros, and nothing that has a whole number.
        case("QuantizeAndDequantizeV2", call("QuantizeAndDequantizeV2", input=None, input_min=None, input_max=None, signed_input=False), sign * np.abs(x), zero, zero)
    rest = dict(input=None, input_min=None, input_max=None)
    case("QuantizeAndDequantizeV2", call("QuantizeAndDequantizeV2", num_bits=64, **rest), x, zero, zero, fails="num_bits is out of range")
    case("QuantizeAndDequantizeV2", call("QuantizeAndDequantizeV2", range_given=True, **rest), x, np.zeros(1, "float32"), np.ones(1, "float32"), fails="incorrect size|must be a scalar")
    case("QuantizeAndDequantizeV2", call("QuantizeAndDequantizeV2", axis=1, range_given=True, **rest), x, np.zeros(2, "float32"), np.ones(2, "float32"), fails="incorrect size|must be|Dimension")


def quantized():
    random = np.random.default_rng(25)
    make = lambda shape, size=9.0: random.uniform(-size, size, shape).astype("float32")
    for bits, narrow in ((8, False), (8, True), (2, False), (16, True), (5, False)):
        options = dict(num_bits=bits, narrow_range=narrow)
        for shape in ((), (0,), (17,), (3, 5, 7), (400, 6), (2, 0, 3)):
            for low, high in ((-6.0, 6.0), (-0.1, 12.7), (0.5, 3.0), (-4.0, -1.0)):
                case("FakeQuantWithMinMaxArgs", call("FakeQuantWithMinMaxArgs", inputs=None, min=low, max=high, **options), make(shape))
                case("FakeQuantWithMinMaxArgsGradient", call("FakeQuantWithMinMaxArgsGradient", gradients=None, inputs=None, min=low, max=high, **options), make(shape), make(shape))
            for low, high in ((-6.0, 6.0), (-0.1, 7.7), (0.0, 0.0)):
                low, high = np.float32(low), np.float32(high)
                case("FakeQuantWithMinMaxVars", call("FakeQuantWithMinMaxVars", inputs=None, min=None, max=None, **options), make(shape), low, high)
                case("FakeQuantWithMinMaxVarsGradient", call("FakeQuantWithMinMaxVarsGradient", gradients=None, inputs=None, min=None, max=None, **options),
                     make(shape, 1), make(shape), low, high)
            if shape:
                low, high = -np.abs(make(shape[-1:])), np.abs(make(shape[-1:]))
                low[-1:], high[-1:] = 0, 0
                case("FakeQuantWithMinMaxVarsPerChannel", call("FakeQuantWithMinMaxVarsPerChannel", inputs=None, min=None, max=None, **options), make(shape), low, high)
                case("FakeQuantWithMinMaxVarsPerChannelGradient", call("FakeQuantWithMinMaxVarsPerChannelGradient", gradients=None, inputs=None, min=None, max=None, **options),
                     make(shape, 1), make(shape), low, high)
    quantized_to_scales(make)
    x, one = make((2, 3)), np.float32(1)
    case("FakeQuantWithMinMaxArgs", call("FakeQuantWithMinMaxArgs", inputs=None, min=2.0, max=1.0), x, fails="min has to be smaller than max")
    case("FakeQuantWithMinMaxArgs", call("FakeQuantWithMinMaxArgs", inputs=None, num_bits=17), x, fails="num_bits must be between 2 and 16")
    case("FakeQuantWithMinMaxVarsPerChannel", call("FakeQuantWithMinMaxVarsPerChannel", inputs=None, min=None, max=None), x, np.zeros(2, "float32"), np.zeros(2, "float32"),
         fails="incorrect size|must be equal|Dimensions must")
    case("FakeQuantWithMinMaxVars", call("FakeQuantWithMinMaxVars", inputs=None, min=None, max=None), x, np.zeros(2, "float32"), one, fails="incorrect size|rank 0|must be")
