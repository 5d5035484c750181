"""Sweeps the reference device's operations, or another's: each runs there and on the CPU, with the same inputs.

    refdevice_sweep.py [NAME...]

Without names all operations run that have a kernel on the device. TF_PLUGIN_DEVICE_TYPE is the type of the device,
TF_PLUGIN_LACKS_TYPES says that it does not have all types of the reference device: those cases are left out.
TF_PLUGIN_SWEEP_SAMPLE=5 runs one case of five of each operation.
Shapes are empty, scalar, broadcast and odd ones. Results have the same types and shapes, and the same values except
for rounding: the tolerances are below. An operation that did not
run on the device, by the device's own count, is a failure; so is a kernel that was never swept.

Writes `ok NAME` for each operation, and a line for each failure.
"""
import json
import os
import sys

# The plain kernels are the reference: those of oneDNN return a wrong shape for no images.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

TYPE = os.environ.get("TF_PLUGIN_DEVICE_TYPE", "RUST_REF")
DEVICE = "/device:%s:0" % TYPE
CPU = "/device:CPU:0"
# Without it there is nothing to count; soft placement is off in any case.
COUNTERS = os.environ.get("REFDEVICE_COUNTERS")
LACKS_TYPES = os.environ.get("TF_PLUGIN_LACKS_TYPES") == "1"
# Of the cases of each operation the first, and then one of so many.
SAMPLE = int(os.environ.get("TF_PLUGIN_SWEEP_SAMPLE", "1"))

# Largest difference, relative to the larger of 1 and the magnitude.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}
FLOATS = ["float32", "float64", "float16", "bfloat16"]
NUMBERS = FLOATS + ["int64"]
# Pairs of shapes that broadcast.
PAIRS = [((), ()), ((3,), ()), ((2, 3), (3,)), ((4, 1), (1, 5)), ((0, 3), (3,)), ((7, 1, 3), (5, 1)), ((17,), (17,))]
SHAPES = [(), (1,), (0,), (3, 0, 2), (17,), (2, 3), (3, 5, 7), (2, 3, 4, 5)]

random = np.random.default_rng(20)
raw = tf.raw_ops


def numbers(shape, dtype, low=-3.0, high=3.0):
    values = random.uniform(low, high, shape)
    dtype = tf.as_dtype(dtype)
    return values.astype(dtype.as_numpy_dtype)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def bits(shape, dtype):
    """Integers with any bits."""
    kind = np.iinfo(dtype)
    return random.integers(kind.min, kind.max, shape, dtype, endpoint=True)


def flags(shape):
    return random.integers(0, 2, shape).astype(bool)


def in_float(*inputs):
    """In float32 what is in a smaller type."""
    return [tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x for x in inputs]


def on_the_cpu_in_float(function):
    """The CPU sums in the type of the elements, or has no kernel for a small one."""
    def wide(*inputs):
        if TYPE in inputs[0].device:
            return function(*inputs)
        return tf.cast(function(*in_float(*inputs)), inputs[0].dtype)
    return wide


class Case:
    """One call: a function of inputs that are put on the device first."""

    def __init__(self, op, function, *inputs, tolerance=None, fails=None):
        self.op, self.function, self.inputs = op, function, inputs
        self.tolerance, self.fails = tolerance, fails

    def run(self, device):
        with tf.device(device):
            inputs = [tf.constant(x) for x in self.inputs]
            outputs = self.function(*inputs)
        flat = tf.nest.flatten(outputs)
        return [np.asarray(x.numpy()) for x in flat], flat


CASES = []


def case(op, function, *inputs, **options):
    CASES.append(Case(op, function, *inputs, **options))


def call(op, **attributes):
    """The raw operation, whose arguments are named in `attributes` by `None`."""
    names = [name for name, value in attributes.items() if value is None]
    rest = {name: value for name, value in attributes.items() if value is not None}
    return lambda *inputs: getattr(raw, op)(**dict(zip(names, inputs)), **rest)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -1.5, 6.0, 7.0, 100.0, -100.0, np.inf, -np.inf, np.nan]


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
        case(op, call(op, x=None, y=None), np.array([1, 2]), np.array([1, 0]), fails="Integer division by zero")
        case(op, call(op, x=None, y=None), np.zeros((0, 2), "int64"), np.array([1, 0]))
    for op in ["LogicalAnd", "LogicalOr"]:
        case(op, call(op, x=None, y=None), flags((4, 1)), flags((1, 5)))
    for op in ["Equal", "NotEqual"]:
        case(op, call(op, x=None, y=None), flags((4, 1)), flags((1, 5)))
        for dtype in ["int8", "int16", "uint8", "uint16", "uint32", "uint64"]:
            case(op, call(op, x=None, y=None), numbers((3, 1), dtype, 0, 3), numbers((4,), dtype, 0, 3))
    case("AddV2", call("AddV2", x=None, y=None), numbers((2,), "float32"), numbers((3,), "float32"), fails="Incompatible shapes")
    for dtype in INTEGERS:
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            case(op, call(op, x=None, y=None), bits((4, 1), dtype), bits((5,), dtype))
        for op in ("LeftShift", "RightShift"):
            case(op, call(op, x=None, y=None), bits((4, 1), dtype), np.array([0, 1, 3, 7, 8, 63]).astype(dtype))
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
        for c, a, b in [((), (2, 3), (2, 3)), ((2, 1), (3,), (2, 3)), ((4,), (), ()), ((0,), (0,), (1,)), ((3, 2), (3, 2), (3, 2))]:
            case("SelectV2", call("SelectV2", condition=None, t=None, e=None), flags(c), make(a), make(b))
        for c, a in [((), (2, 3)), ((2,), (2, 3)), ((2, 3), (2, 3)), ((0,), (0, 3))]:
            case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), flags(c), make(a), make(a))
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


def sums():
    for dtype in NUMBERS[:4] + ["float32", "uint8", "int16"]:
        for shape in [(), (0,), (2, 3)]:
            for count in (1, 2, 5):
                parts = [numbers(shape, dtype, 0, 9) for _ in range(count)]
                case("AddN", lambda *parts: raw.AddN(inputs=list(parts)), *parts)
    for dtype in NUMBERS:
        for shape, ids, count in [((5,), [0, 2, 0, 2, 2], 3), ((4, 3), [1, -1, 1, 0], 4), ((2, 3), [[0, 1, 2], [2, 1, 0]], 3), ((0, 3), [], 2),
                                  ((3, 0), [0, 1, 0], 2), ((2, 2, 2), [1, 1], 2), ((3,), [0, -1, -7], 1)]:
            for index in ("int32", "int64"):
                for size in ("int32", "int64"):
                    case("UnsortedSegmentSum", lambda x, ids, count=count, size=size: raw.UnsortedSegmentSum(
                        data=x, segment_ids=ids, num_segments=tf.constant(count, size)), numbers(shape, dtype), np.array(ids, index))
    case("UnsortedSegmentSum", lambda x, ids: raw.UnsortedSegmentSum(data=x, segment_ids=ids, num_segments=tf.constant(2)),
         numbers((2, 3), "float32"), np.array([0, 1, 1]), fails="does not start with")
    for dtype in FLOATS:
        for shape in SHAPES:
            case("L2Loss", call("L2Loss", t=None), numbers(shape, dtype, -1, 1))


def reductions():
    axes = [((), []), ((5,), [0]), ((5,), [-1]), ((0,), [0]), ((2, 3), [0]), ((2, 3), [1]), ((2, 3), []),
            ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 1, 2]), ((3, 0), [0]), ((3, 0), [1]), ((4, 5, 2, 3), [1, 3]),
            ((1000,), [0]), ((300, 4), [0])]
    for op in ["Sum", "Mean", "Prod", "Max", "Min", "All", "Any"]:
        if op in ("All", "Any"):
            types = ["bool"]
        elif op == "Mean":
            types = FLOATS
        else:
            types = NUMBERS
        for dtype in types:
            for shape, axis in axes:
                for keep in (False, True):
                    for index in ("int32", "int64"):
                        x = flags(shape) if dtype == "bool" else numbers(shape, dtype, 0.9, 1.1) if op == "Prod" else numbers(shape, dtype)
                        # The CPU adds and multiplies 16-bit floats with less precision.
                        tolerance = (0.3 if op == "Prod" else 0.15) if dtype in ("float16", "bfloat16") else 1e-4 if dtype == "float32" and op == "Prod" else None
                        case(op, lambda x, op=op, axis=axis, keep=keep, index=index: getattr(raw, op)(
                            input=x, axis=tf.constant(axis, index), keep_dims=keep), x, tolerance=tolerance)
        case(op, lambda x, op=op: getattr(raw, op)(input=x, axis=tf.constant([2])), flags((2, 3)) if types == ["bool"] else numbers((2, 3), "float32"),
             fails="no axis|Invalid reduction|Invalid dimension|dimension")
    nan = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0], [np.inf, -np.inf, 0.0]], "float32")
    for op in ["Max", "Min", "Sum", "Mean"]:
        for axis in (0, 1):
            case(op, lambda x, op=op, axis=axis: getattr(raw, op)(input=x, axis=tf.constant([axis])), nan)
    for op in ["ArgMax", "ArgMin"]:
        for dtype in NUMBERS:
            for shape, axis in [((5,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 4), 1), ((0, 3), 1)]:
                for target in ("int32", "int64"):
                    case(op, lambda x, op=op, axis=axis, target=target: getattr(raw, op)(
                        input=x, dimension=tf.constant(axis), output_type=target), numbers(shape, dtype))
        case(op, lambda x, op=op: getattr(raw, op)(input=x, dimension=tf.constant(0)), np.array([2, 1, 2, 1], "float32"))
    for op in ["Cumsum", "Cumprod"]:
        for dtype in ["float32", "float64", "int64"]:
            for shape, axis in [((5,), 0), ((2, 3), -1), ((2, 3, 4), 1), ((0, 3), 1), ((2, 0), 1)]:
                for exclusive in (False, True):
                    for reverse in (False, True):
                        case(op, lambda x, op=op, axis=axis, exclusive=exclusive, reverse=reverse: getattr(raw, op)(
                            x=x, axis=tf.constant(axis), exclusive=exclusive, reverse=reverse), numbers(shape, dtype))


def matrices():
    for dtype in FLOATS:
        # The CPU multiplies 16-bit floats with less precision.
        tolerance = {"float16": 2e-2, "bfloat16": 0.1}.get(dtype)
        for m, k, n in [(1, 1, 1), (3, 5, 7), (33, 17, 9), (0, 3, 2), (2, 0, 3), (2, 3, 0), (64, 100, 10)]:
            for ta in (False, True):
                for tb in (False, True):
                    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
                    case("MatMul", call("MatMul", a=None, b=None, transpose_a=ta, transpose_b=tb),
                         numbers(a, dtype, -1, 1), numbers(b, dtype, -1, 1), tolerance=tolerance)
        for a, b in [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (6, 4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 5)), ((0, 3, 4), (0, 4, 2))]:
            for adjoint in (False, True):
                x, y = numbers(a, dtype, -1, 1), numbers(b, dtype, -1, 1)
                if adjoint:
                    x, y = x.swapaxes(-1, -2).copy(), y.swapaxes(-1, -2).copy()
                case("BatchMatMulV2", call("BatchMatMulV2", x=None, y=None, adj_x=adjoint, adj_y=adjoint), x, y, tolerance=tolerance)
                if len(a) == len(b) and a[:-2] == b[:-2]:
                    case("BatchMatMul", call("BatchMatMul", x=None, y=None, adj_x=adjoint, adj_y=adjoint), x, y, tolerance=tolerance)
        for shape in [(2, 3), (0, 3), (2, 3, 4), (2, 3, 4, 5), (100, 7)]:
            case("BiasAdd", call("BiasAdd", value=None, bias=None), numbers(shape, dtype), numbers(shape[-1:], dtype))
            case("BiasAddGrad", call("BiasAddGrad", out_backprop=None), numbers(shape, dtype, -1, 1),
                 tolerance={"float16": 0.05, "bfloat16": 0.3}.get(dtype))
        if LACKS_TYPES and dtype == "float32":
            # The largest tiles, with some that are not full.
            for ta in (False, True):
                for tb in (False, True):
                    case("MatMul", call("MatMul", a=None, b=None, transpose_a=ta, transpose_b=tb),
                         numbers((19, 2112) if ta else (2112, 19), dtype, -1, 1), numbers((2100, 19) if tb else (19, 2100), dtype, -1, 1))
            # More tiles, and more matrices, than a card has workgroups for.
            case("MatMul", call("MatMul", a=None, b=None), numbers((2_100_000, 1), dtype), numbers((1, 1), dtype))
            case("BatchMatMulV2", call("BatchMatMulV2", x=None, y=None), numbers((70_000, 1, 2), dtype), numbers((70_000, 2, 1), dtype))
        if LACKS_TYPES and dtype == "float16":
            # What matrix units multiply: sizes that are multiples of eight and not, in tiles of both sizes, full and not.
            for m, k, n in [(64, 64, 64), (136, 72, 200), (70, 45, 101), (256, 33, 40), (2112, 24, 2100)]:
                for ta in (False, True):
                    for tb in (False, True):
                        a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
                        case("MatMul", on_the_cpu_in_float(call("MatMul", a=None, b=None, transpose_a=ta, transpose_b=tb)),
                             numbers(a, dtype, -1, 1), numbers(b, dtype, -1, 1))
            for a, b in [((3, 64, 40), (3, 40, 48)), ((2, 1, 65, 33), (5, 33, 64)), ((3, 64, 40), (40, 48))]:
                case("BatchMatMulV2", on_the_cpu_in_float(call("BatchMatMulV2", x=None, y=None)), numbers(a, dtype, -1, 1), numbers(b, dtype, -1, 1))
            for equation, *shapes in [("bqhd,bkhd->bhqk", (2, 40, 4, 16), (2, 48, 4, 16)), ("ij,jk->ik", (33, 100), (100, 35))]:
                case("Einsum", on_the_cpu_in_float(lambda *parts, equation=equation: raw.Einsum(inputs=list(parts), equation=equation)),
                     *[numbers(shape, dtype, -1, 1) for shape in shapes])
        equations = [("ij,jk->ik", (3, 5), (5, 7)), ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)), ("abc,cde->abde", (2, 3, 4), (4, 5, 6)),
                     ("...ij,...jk->...ik", (7, 1, 2, 3), (5, 3, 4)), ("ij,kj->ik", (2, 0), (4, 0)), ("i,j->ij", (3,), (4,)), ("ij,ij->", (3, 4), (3, 4)),
                     ("ij,k->i", (2, 3), (4,)), ("ij->ji", (2, 3)), ("ij->i", (2, 3)), ("ii->", (3, 3)), ("ii->i", (3, 3)), ("i->ii", (3,)), ("a...->...a", (2, 3, 4)),
                     ("acbe,aecd->abcd", (2, 4, 3, 5), (2, 5, 4, 6)), ("ab,ab->ab", (3, 4), (3, 4)), ("a...,...->a...", (3, 2), (1,)), ("ij,j->i", (3, 0), (0,)), ("ij,j->i", (0, 3), (3,)),
                     ("iij,jk->ik", (3, 3, 2), (2, 4)), ("abca,b->c", (3, 2, 4, 3), (2,)), ("ij,kj->ki", (3, 4), (5, 4)), ("iji->i", (3, 2, 3)), ("ij->j", (0, 3))]
        for equation, *shapes in equations:
            case("Einsum", on_the_cpu_in_float(lambda *parts, equation=equation: raw.Einsum(inputs=list(parts), equation=equation)),
                 *[numbers(shape, dtype, -1, 1) for shape in shapes], tolerance=tolerance)
    case("MatMul", call("MatMul", a=None, b=None), numbers((2, 3), "float32"), numbers((2, 3), "float32"), fails="incompatible")
    case("Einsum", lambda a, b: raw.Einsum(inputs=[a, b], equation="ij,jk->ik"), numbers((2, 3), "float32"), numbers((4, 5), "float32"), fails="two sizes|Expected dimension")
    case("BiasAdd", call("BiasAdd", value=None, bias=None), numbers((2, 3), "float32"), numbers((2,), "float32"), fails="biases|bias")


def probabilities():
    for dtype in FLOATS:
        for shape in [(1, 1), (4, 7), (0, 3), (3,), (2, 3, 4), (32, 10)]:
            for op in ["Softmax", "LogSoftmax"]:
                case(op, call(op, logits=None), numbers(shape, dtype, -9, 9), tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
        for rows, classes in [(1, 1), (4, 7), (0, 3), (32, 10)]:
            for index in ("int32", "int64"):
                case("SparseSoftmaxCrossEntropyWithLogits",
                     call("SparseSoftmaxCrossEntropyWithLogits", features=None, labels=None),
                     numbers((rows, classes), dtype, -5, 5), random.integers(0, classes, rows).astype(index),
                     tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
            case("SoftmaxCrossEntropyWithLogits", call("SoftmaxCrossEntropyWithLogits", features=None, labels=None),
                 numbers((rows, classes), dtype, -5, 5), numbers((rows, classes), dtype, 0, 1),
                 tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
        case("SoftmaxCrossEntropyWithLogits", call("SoftmaxCrossEntropyWithLogits", features=None, labels=None),
             numbers((4, 3), dtype, -5, 5), numbers((1, 3), dtype, 0, 1), tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))


def arrangements():
    case("Bitcast", call("Bitcast", input=None, type=tf.int64), numbers((2, 3), "float32"), fails="annot bitcast from")
    everything = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
    for dtype in everything:
        make = lambda shape: flags(shape) if dtype == "bool" else numbers(shape, dtype, 0, 99)
        for index in ("int32", "int64"):
            vector = lambda values, index=index: tf.constant(values, index)
            for dims in [[], [0], [3], [2, 3]]:
                case("Empty", lambda dims=dims, dtype=dtype: raw.Empty(shape=tf.constant(dims, "int32"), dtype=dtype, init=True))
                case("Fill", lambda x, dims=dims, vector=vector: raw.Fill(dims=vector(dims), value=x), make(()))
            if dtype != "bool" and index == "int32":
                for to in INTEGERS + FLOATS:
                    size, other = make(()).dtype.itemsize, tf.as_dtype(to).size
                    for shape in [(), (3,), (0, 2), (2, 3)]:
                        case("Bitcast", call("Bitcast", input=None, type=tf.as_dtype(to)), make(shape + (other // size,) if other > size else shape))
            for shape, times in [((), []), ((3,), [2]), ((2, 3), [2, 3]), ((2, 3), [0, 1]), ((0, 3), [2, 2]), ((2, 1, 3), [1, 4, 1])]:
                # The CPU has no kernel for uint16.
                if dtype != "uint16":
                    case("Tile", lambda x, times=times, vector=vector: raw.Tile(input=x, multiples=vector(times)), make(shape))
            for shape, target in [((), [2, 3]), ((3,), [2, 3]), ((2, 1), [2, 3]), ((1,), [0]), ((2, 3), [2, 3]), ((), [])]:
                case("BroadcastTo", lambda x, target=target, vector=vector: raw.BroadcastTo(input=x, shape=vector(target)), make(shape))
            for shape, order in [((), []), ((3,), [0]), ((2, 3), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 0), [1, 0]), ((2, 3, 4, 5), [0, 3, 1, 2])]:
                case("Transpose", lambda x, order=order, vector=vector: raw.Transpose(x=x, perm=vector(order)), make(shape))
            for shape, begin, size in [((5,), [1], [3]), ((5,), [2], [-1]), ((2, 3), [0, 1], [2, 2]), ((2, 3), [2, 0], [0, 3]), ((2, 3, 4), [1, 0, 2], [1, -1, 1])]:
                case("Slice", lambda x, begin=begin, size=size, vector=vector: raw.Slice(input=x, begin=vector(begin), size=vector(size)), make(shape))
            for shape, axis in [((5,), [0]), ((2, 3), [-1]), ((2, 3, 4), [0, 2]), ((2, 3), [])]:
                case("ReverseV2", lambda x, axis=axis, vector=vector: raw.ReverseV2(tensor=x, axis=vector(axis)), make(shape))
            for shape in [(3, 4), (5, 2), (2, 3, 3), (0, 3), (3, 0)]:
                for lower, upper in [(-1, 0), (0, -1), (min(1, shape[-2]), min(1, shape[-1])), (0, 0), (-1, -1)]:
                    case("MatrixBandPart", lambda x, lower=lower, upper=upper, index=index: raw.MatrixBandPart(
                        input=x, num_lower=tf.constant(lower, index), num_upper=tf.constant(upper, index)), make(shape))
            for shape, around in [((2,), [[1, 2]]), ((2, 3), [[0, 0], [2, 1]]), ((0, 3), [[1, 0], [0, 0]])]:
                case("Pad", lambda x, around=around, vector=vector: raw.Pad(input=x, paddings=vector(around)), make(shape))
                case("PadV2", lambda x, value, around=around, vector=vector: raw.PadV2(input=x, paddings=vector(around), constant_values=value), make(shape), make(()))
            for shapes, axis in [([(2,), (3,)], 0), ([(2, 3), (2, 1), (2, 0)], 1), ([(2, 3), (4, 3)], -2), ([(0, 3), (1, 3)], 0)]:
                case("ConcatV2", lambda *parts, axis=axis, vector=vector: raw.ConcatV2(values=list(parts), axis=vector(axis)), *[make(shape) for shape in shapes])
            for shape, indices, axis, batches in [((5,), [4, 0, 0], 0, 0), ((4, 3), [[1], [2]], 0, 0), ((4, 3), [2, 0], 1, 0),
                                                  ((2, 4, 3), [[0, 3], [2, 2]], 1, 1), ((4, 0), [1], 0, 0), ((4, 3), [], 0, 0), ((2, 3, 4), [[1], [0]], 2, 1)]:
                case("GatherV2", lambda x, indices=indices, axis=axis, batches=batches, index=index: raw.GatherV2(
                    params=x, indices=tf.constant(indices, index), axis=tf.constant(axis), batch_dims=batches), make(shape))
            case("SplitV", lambda x, vector=vector: raw.SplitV(value=x, size_splits=vector([2, -1, 0]), axis=tf.constant(1), num_split=3), make((2, 5)))
        for axis in (0, 1, -1):
            case("Pack", lambda *parts, axis=axis: raw.Pack(values=list(parts), axis=axis), make((2, 3)), make((2, 3)))
            if dtype != "int64":
                case("Unpack", lambda x, axis=axis: raw.Unpack(value=x, num=3, axis=axis), make((3, 3, 3)))
        case("Pack", lambda *parts: raw.Pack(values=list(parts)), make(()), make(()))
        case("Split", lambda x: raw.Split(axis=tf.constant(1), value=x, num_split=3), make((2, 6)))
        for function in [lambda x: x[1:, ::-2], lambda x: x[0], lambda x: x[..., 1], lambda x: x[:, tf.newaxis, 2:4], lambda x: x[-1:, 3:1],
                         lambda x: x[1, 2], lambda x: x[::-1, ::-1], lambda x: x[5:, -2:], lambda x: x[...]]:
            case("StridedSlice", function, make((3, 5)))
    for dtype in FLOATS + ["int64"]:
        for function in [lambda x: x[1:, ::-2], lambda x: x[0], lambda x: x[..., 1], lambda x: x[:, tf.newaxis, 2:4]]:
            def slope(x, function=function):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = function(x)
                return tape.gradient(y, x)
            if dtype != "int64":
                case("StridedSliceGrad", slope, numbers((3, 5), dtype))
        for index in ("uint8", "int32", "int64"):
            for shape, axis in [((3,), -1), ((2, 3), 0), ((2, 3), 1), ((), -1), ((0,), 0)]:
                case("OneHot", lambda x, on, off, axis=axis: raw.OneHot(indices=x, depth=tf.constant(4), on_value=on, off_value=off, axis=axis),
                     random.integers(0, 6, shape).astype(index), numbers((), dtype), numbers((), dtype))
    for dtype, values in [("float32", (0, 1, 0.3)), ("float32", (3, -2, -0.5)), ("float64", (0, 2, 0.25)), ("int64", (2, 9, 3)), ("int64", (9, 2, -3)), ("int64", (1, 1, 1))]:
        case(None, lambda dtype=dtype, values=values: raw.Range(start=tf.constant(values[0], dtype), limit=tf.constant(values[1], dtype), delta=tf.constant(values[2], dtype)))
    case("MatrixBandPart", lambda x: raw.MatrixBandPart(input=x, num_lower=tf.constant(3), num_upper=tf.constant(0)), numbers((2, 3), "float32"), fails="num_lower must be negative")
    case("Transpose", lambda x: raw.Transpose(x=x, perm=tf.constant([0, 0])), numbers((2, 3), "float32"), fails="permutation|transpos|duplicate|missing")


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
    for dtype in FLOATS if LACKS_TYPES else ["float32", "float64"]:
        for images, filters, stride, dilation, padding in cases + more.get(dtype, []):
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
            tolerance = dict(tolerance=3e-4 if images in [of[0] for of in large] else None)
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
        for images, filters in [((2, 6, 5, 3), (3, 2, 3, 2)), ((1, 7, 7, 35), (3, 3, 35, 1)), ((2, 5, 4, 1), (2, 3, 1, 2)), ((0, 5, 4, 2), (2, 3, 2, 1))]:
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
                        input=x, filter_sizes=tf.constant(filters), out_backprop=dy, **options)), x, dy)
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


def spread(x, axis, step):
    """With step - 1 zeros between elements of an axis."""
    apart = tf.stack([x] + [tf.zeros_like(x)] * (step - 1), axis + 1)
    shape = x.shape[:axis] + [x.shape[axis] * step] + x.shape[axis + 1:]
    return tf.gather(tf.reshape(apart, shape), tf.range((x.shape[axis] - 1) * step + 1), axis=axis)


def volumes():
    one, two = [1, 1, 1], [2, 2, 2]
    cases = [((2, 4, 5, 6, 3), (2, 3, 2, 3, 4), one, one, "VALID"), ((2, 4, 5, 6, 3), (2, 3, 2, 3, 4), one, one, "SAME"),
             ((1, 7, 6, 5, 2), (3, 2, 3, 2, 5), [2, 1, 3], one, "SAME"), ((1, 7, 6, 5, 2), (3, 2, 3, 2, 5), [3, 2, 1], one, "VALID"),
             ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), one, one, "VALID"), ((3, 3, 4, 2, 2), (1, 1, 1, 2, 3), one, one, "VALID"),
             ((2, 5, 4, 4, 2), (1, 1, 1, 2, 3), two, one, "SAME"), ((0, 4, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "SAME"),
             ((2, 0, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "SAME"), ((2, 2, 4, 5, 2), (3, 3, 3, 2, 1), one, one, "VALID"),
             ((1, 3, 2, 2, 2), (5, 4, 7, 2, 3), [1, 2, 1], one, "SAME"),
             # What the CPU has not: dilations and groups of channels.
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
                           (dict(strides=[1] * 5, dilations=[2, 1, 1, 1, 1]), "dilations"), (dict(strides=[1] * 5, dilations=[1, 1, -1, 1, 1]), "dilations"),
                           (dict(strides=[1] * 5, data_format="NCDHW"), "NCDHW")]:
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
        # What differs by less than 1e-5 from the result, which is none of the elements.
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
                       dict(data_format="NCDHW"), dict(ksize=[1, 8, 2, 2, 1], padding="VALID")]:
            case(op, call(op, input=None, **{**options, **change}), x, fails="ksize|strides|NCDHW|negative")


def normalizations():
    def normalize(x, *rest, **options):
        y = raw.FusedBatchNormV3(x=x if TYPE in x.device else in_float(x)[0], **dict(zip(("scale", "offset", "mean", "variance"), rest)), epsilon=1e-3, **options)
        return y._replace(y=tf.cast(y.y, x.dtype))

    for dtype in ("float32", "float16", "bfloat16") if LACKS_TYPES else ("float32",):
        for shape in [(2, 3, 4, 5), (1, 1, 1, 3), (8, 4, 4, 2)]:
            row = lambda low=-1, high=1: numbers(shape[-1:], "float32", low, high)
            for training, factor in [(True, 1.0), (True, 0.3), (False, 1.0)]:
                old = [row(), row(0.5, 2)] if not training or factor != 1.0 else [np.zeros(0, "float32")] * 2
                # The last of the outputs are for the gradient alone.
                case("FusedBatchNormV3", lambda *inputs, training=training, factor=factor: tuple(normalize(
                    *inputs, exponential_avg_factor=factor, is_training=training))[:3], numbers(shape, dtype), row(), row(), *old)

                def slopes(dy, x, scale, offset, mean, variance, training=training):
                    # Outside of training the gradient gets the mean and the variance that were given.
                    saved = (None, None, None, mean, variance, tf.zeros([0]))
                    if training:
                        saved = normalize(x, scale, offset, mean, variance)
                    own = TYPE in x.device
                    found = raw.FusedBatchNormGradV3(
                        y_backprop=dy if own else in_float(dy)[0], x=x if own else in_float(x)[0], scale=scale, reserve_space_1=saved[3], reserve_space_2=saved[4],
                        reserve_space_3=saved[5], epsilon=1e-3, is_training=training)
                    return (tf.cast(found[0], x.dtype), *found[1:3])
                if factor == 1.0:
                    case("FusedBatchNormGradV3", slopes, numbers(shape, dtype), numbers(shape, dtype), row(), row(), *old, tolerance=1e-4 if dtype == "float32" else None)


def randoms():
    # The last one carries.
    counters = [[0, 0], [7, 1 << 40], [(1 << 64) - 3, 5]]
    for dtype in (tf.float32, tf.float16, tf.bfloat16):
        for shape in ([], [0], [1], [3], [4], [5, 7], [1000], [3, 70001]):
            for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
                # Uniform ones are the same to the last bit.
                tolerance = 0 if "Uniform" in op else None
                for counter in counters if shape == [1000] else counters[1:2]:
                    case(op, call(op, shape=shape, key=None, counter=None, alg=1 + 2 * (len(shape) % 2), dtype=dtype),
                         np.uint64([0x123456789abcdef0]), np.uint64(counter), tolerance=tolerance)
    # Kernels with a state go on where their last run has ended, whatever its shape.
    for dtype in (tf.float32, tf.float16, tf.bfloat16):
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            for seed2 in (7, -3):
                case(op, lambda op=op, seed2=seed2, dtype=dtype: [getattr(raw, op)(shape=np.int32(shape), dtype=dtype, seed=-(1 << 40), seed2=seed2) for shape in (
                    [3, 5], [], [0], [70001], [4])], tolerance=0 if op == "RandomUniform" else None)
    # Without seeds no two kernels have the same, such as those for the two types of shapes.
    case("RandomUniform", lambda: tf.constant([np.all(raw.RandomUniform(shape=np.int32([8]), dtype=tf.float32) == raw.RandomUniform(
        shape=np.int64([8]), dtype=tf.float32))]))
    key = np.uint64([0x123456789abcdef0])
    for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
        for shape in ([], [0], [1], [3], [5, 7], [70001]):
            for counter in counters:
                case("StatelessRandomUniformFullIntV2", call("StatelessRandomUniformFullIntV2", shape=shape, key=None, counter=None, alg=1, dtype=dtype), key, np.uint64(counter))
                for least, end in [(0, 10), (-5, 5), (dtype.min, dtype.max)] if dtype.name.startswith("int") else ():
                    case("StatelessRandomUniformIntV2", lambda key, counter, shape=shape, dtype=dtype, least=least, end=end: raw.StatelessRandomUniformIntV2(
                        shape=shape, key=key, counter=counter, alg=1, minval=tf.constant(least, dtype), maxval=tf.constant(end, dtype)), key, np.uint64(counter))
        if dtype.name.startswith("int"):
            case("RandomUniformInt", lambda dtype=dtype: [raw.RandomUniformInt(shape=np.int32(shape), minval=tf.constant(-3, dtype), maxval=tf.constant(90, dtype), seed=3)
                                                          for shape in ([3], [], [0], [5, 70])])
    case("StatelessRandomUniformIntV2", lambda key, counter: raw.StatelessRandomUniformIntV2(shape=[3], key=key, counter=counter, alg=1, minval=5, maxval=5),
         key, np.uint64([0, 0]), fails="Need minval < maxval")
    for alg, key, text in [(2, [1], "algorithm"), (1, [1, 2], "key")]:
        case("StatelessRandomUniformV2", call("StatelessRandomUniformV2", shape=[3], key=None, counter=None, alg=alg, dtype=tf.float32),
             np.uint64(key), np.uint64([1, 2]), fails=text)


# Indices of several numbers: the shape of the tensor, and those whose last axis is the numbers.
PLACES = [((5,), [[1], [0], [1]]), ((3, 4), [[2], [0]]), ((3, 4), [[2, 3], [0, 0], [2, 3]]), ((2, 3, 2), [[[0, 2], [1, 1]], [[0, 2], [0, 0]]]),
          ((2, 2, 2), [[0, 1, 1]]), ((3, 2), np.zeros((0, 1))),
          ((600, 3), np.arange(700)[:, None] * 7 % 600), ((70, 2), np.zeros((300, 1)))]


def updates_of(shape, places, dtype, low=0, high=3):
    places = np.asarray(places)
    return numbers(places.shape[:-1] + shape[places.shape[-1]:], dtype, low, high)


def rows():
    elements = FLOATS + ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"]
    for index in ("int32", "int64"):
        for shape, places in PLACES:
            places = np.array(places, index)
            for dtype in elements + ["bool"]:
                make = flags if dtype == "bool" else lambda shape, dtype=dtype: numbers(shape, dtype, 0, 9)
                case("GatherNd", call("GatherNd", params=None, indices=None), make(shape), places)
                update = make(places.shape[:-1] + shape[places.shape[-1]:])
                case("TensorScatterUpdate", call("TensorScatterUpdate", tensor=None, indices=None, updates=None), make(shape), places, update)
                if dtype != "bool":
                    case("ScatterNd", lambda i, x, shape=shape, index=index: raw.ScatterNd(indices=i, updates=x, shape=tf.constant(shape, index)),
                         places, updates_of(shape, places, dtype))
            for op in ("Add", "Sub", "Max", "Min"):
                for dtype in NUMBERS:
                    case("TensorScatter" + op, call("TensorScatter" + op, tensor=None, indices=None, updates=None), numbers(shape, dtype),
                         places, updates_of(shape, places, dtype, -3, 3), tolerance=0.1 if dtype == "bfloat16" else None)
    case("GatherNd", call("GatherNd", params=None, indices=None), numbers((3, 2), "float32"), np.int32([1]))
    # The given tensor stays as it is.
    case("TensorScatterAdd", lambda x, i, u: [raw.TensorScatterAdd(tensor=x, indices=i, updates=u), x], numbers((3,), "float32"), np.int32([[1]]), np.float32([2]))
    case("GatherNd", call("GatherNd", params=None, indices=None), numbers((3,), "float32"), np.int32([[1, 2]]), fails="index innermost dimension")
    case("ScatterNd", lambda i, x: raw.ScatterNd(indices=i, updates=x, shape=[3, 2]), np.int32([[1], [2]]), numbers((3, 2), "float32"), fails="ust ")
    case("TensorScatterAdd", call("TensorScatterAdd", tensor=None, indices=None, updates=None), numbers((3,), "float32"), np.int32([[1]]), np.float32([1, 2]), fails="ust ")
    for dtype in NUMBERS:
        for shape, ids, count in [((5,), [0, 2, 0, 2, 2], 4), ((4, 3), [1, -1, 1, 0], 3), ((2, 3), [[0, 1, 2], [2, 1, 0]], 3), ((0, 3), [], 2),
                                  ((400, 2), np.arange(400) % 3, 3)]:
            for op in ("Prod", "Max", "Min"):
                low = 0.9 if len(shape) == 2 and shape[0] == 400 and op == "Prod" else -3
                case("UnsortedSegment" + op, lambda x, ids, op=op, count=count: getattr(raw, "UnsortedSegment" + op)(
                    data=x, segment_ids=ids, num_segments=tf.constant(count)), numbers(shape, dtype, low, 1.1), np.array(ids, "int32"),
                     tolerance=0.3 if low == 0.9 else None)
    for dtype in ["float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]:
        for shape in ((5,), (3, 7), (2, 3, 9), (0, 4), (2, 300), (1, 1), (2, 0)):
            # Equal ones among them.
            x = numbers(shape, dtype, 0 if dtype.startswith("u") else -20, 20).round()
            for k in {0, 1, shape[-1] // 2, shape[-1]}:
                if k <= shape[-1]:
                    for index in ("int32", "int64"):
                        case("TopKV2", lambda x, k=k, index=index: raw.TopKV2(input=x, k=tf.constant(k), sorted=True, index_type=tf.as_dtype(index)), x)
    case("TopKV2", lambda x: raw.TopKV2(input=x, k=tf.constant(4)), numbers((2, 3), "float32"), fails="at least k columns")
    case("TopKV2", lambda x: raw.TopKV2(input=x, k=tf.constant(1)), numbers((), "float32"), fails="1-D")


def variables():
    if not hasattr(raw, "ResourceApplyAdam"):
        return
    shape = (3, 4)

    def updated(count, step):
        def function(*inputs):
            state = [tf.Variable(value) for value in inputs[:count]]
            step([one.handle for one in state], inputs[count:])
            return [one.read_value() for one in state]
        return function

    for dtype in FLOATS:
        g, v, a = numbers(shape, dtype), numbers(shape, dtype), numbers(shape, dtype, 0, 1)
        number = lambda value: np.array(value).astype(g.dtype)
        case("ResourceApplyGradientDescent", updated(1, lambda s, i: raw.ResourceApplyGradientDescent(var=s[0], alpha=i[0], delta=i[1])), v, number(0.1), g)
        for nesterov in (False, True):
            case("ResourceApplyMomentum", updated(2, lambda s, i, n=nesterov: raw.ResourceApplyMomentum(
                var=s[0], accum=s[1], lr=i[0], grad=i[1], momentum=i[2], use_nesterov=n)), v, a, number(0.1), g, number(0.9))
            case("ResourceApplyKerasMomentum", updated(2, lambda s, i, n=nesterov: raw.ResourceApplyKerasMomentum(
                var=s[0], accum=s[1], lr=i[0], grad=i[1], momentum=i[2], use_nesterov=n)), v, a, number(0.1), g, number(0.9))
            case("ResourceApplyAdam", updated(3, lambda s, i, n=nesterov: raw.ResourceApplyAdam(
                var=s[0], m=s[1], v=s[2], beta1_power=i[0], beta2_power=i[1], lr=i[2], beta1=i[3], beta2=i[4], epsilon=i[5], grad=i[6], use_nesterov=n)),
                 v, g, a, number(0.81), number(0.5), number(0.1), number(0.9), number(0.7), number(0.01), g)
    for dtype in FLOATS + ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64"]:
        for op in ("AssignAddVariableOp", "AssignSubVariableOp"):
            case(op, updated(1, lambda s, i, op=op: getattr(raw, op)(resource=s[0], value=i[0])), numbers(shape, dtype, 3, 6), numbers(shape, dtype, 0, 3))
        for op in ("Add", "Sub", "Update"):
            scatter = updated(1, lambda s, i, op=op: getattr(raw, "ResourceScatter" + op)(resource=s[0], indices=i[0], updates=i[1]))
            for places in (np.int32([[1, 0], [1, 2]]), np.int64([]), np.int64([2])):
                case("ResourceScatter" + op, scatter, numbers(shape, dtype, 20, 30), places, numbers(places.shape + shape[1:], dtype, 0, 3))
            case("ResourceScatter" + op, scatter, numbers(shape, dtype, 20, 30), np.int32([0, 2]), numbers((), dtype, 0, 3))
        for op in ("Mul", "Max", "Min") if dtype in NUMBERS else ():
            scatter = updated(1, lambda s, i, op=op: getattr(raw, "ResourceScatter" + op)(resource=s[0], indices=i[0], updates=i[1]))
            case("ResourceScatter" + op, scatter, numbers(shape, dtype), np.int32([2, 0, 2]), numbers((3, 4), dtype))
        for op in ("Add", "Sub", "Update", "Max", "Min") if dtype in NUMBERS else ("Update",):
            scatter = updated(1, lambda s, i, op=op: getattr(raw, "ResourceScatterNd" + op)(ref=s[0], indices=i[0], updates=i[1]))
            for places in (np.int32([[2], [0], [2]]), np.int64([[2, 3], [0, 1]])):
                case("ResourceScatterNd" + op, scatter, numbers(shape, dtype, 20, 30), places, updates_of(shape, places, dtype))
        for batches, places in ((0, np.int32([[1, 0], [1, 2]])), (0, np.int64(2)), (1, np.int64([[0, 1], [3, 3], [2, 0]]))):
            case("ResourceGather", lambda x, i, batches=batches, dtype=dtype: raw.ResourceGather(
                resource=tf.Variable(x).handle, indices=i, dtype=dtype, batch_dims=batches), numbers(shape, dtype, 0, 9), places)
        case("ResourceGatherNd", lambda x, i, dtype=dtype: raw.ResourceGatherNd(resource=tf.Variable(x).handle, indices=i, dtype=dtype),
             numbers(shape, dtype, 0, 9), np.int32([[2, 1], [0, 3]]))


def counted():
    if COUNTERS is None:
        return None
    # Fetching something synchronizes, after which the counters are written.
    with tf.device(DEVICE):
        (tf.constant(1.0) + 1.0).numpy()
    with open(COUNTERS) as file:
        return json.load(file)


def differ(found, expected, tolerance):
    """What is different, or None."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return "%s %s and not %s %s" % (found.dtype, found.shape, expected.dtype, expected.shape)
    name = expected.dtype.name
    if name not in TOLERANCE:
        same = np.array_equal(found, expected)
    else:
        a, b = found.astype("float64"), expected.astype("float64")
        limit = tolerance if tolerance is not None else TOLERANCE[name]
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= limit * np.maximum(1.0, np.abs(b))
        same = np.all(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if same:
        return None
    return "%s and not %s" % (str(found.ravel()[:20]), str(expected.ravel()[:20]))


def registered():
    """The operations that have kernels on the device."""
    return {kernel.op for kernel in kernels.get_all_registered_kernels().kernel if kernel.device_type == TYPE}


def main(names):
    tf.config.set_soft_device_placement(False)
    np.seterr(all="ignore")
    groups = [unary, gradients, binary, roundings, choices, sums, reductions, matrices, probabilities, arrangements, convolutions, normalizations, randoms, rows, images, resizes, views, volumes]
    if os.environ.get("REFDEVICE_SWEEP_VARIABLES") == "1":
        groups.append(variables)
    for group in groups:
        group()
    failures, done, before = [], {}, counted()
    # Not an operation of its own.
    known = registered() | {"Range"}
    met = {}
    for one in CASES:
        op = one.op or "Range"
        if op not in (names or known):
            continue
        met[op] = met.get(op, -1) + 1
        if met[op] % SAMPLE:
            continue
        what = "%s(%s)" % (op, ", ".join("%s%s" % (x.dtype, list(x.shape)) for x in map(np.asarray, one.inputs)))
        try:
            expected, _ = one.run(CPU)
        except Exception as error:  # The CPU has no kernel, or refuses.
            expected = error
        try:
            found, tensors = one.run(DEVICE)
        except Exception as error:
            found = error
        if LACKS_TYPES and isinstance(found, tf.errors.InvalidArgumentError) and "Could not satisfy device" in str(found):
            continue
        if LACKS_TYPES and isinstance(found, tf.errors.NotFoundError) and "kernel" in str(found):
            continue
        if LACKS_TYPES and isinstance(found, Exception) and any(np.asarray(x).dtype == "float64" for x in one.inputs):
            continue
        if one.fails:
            texts = one.fails.split("|")
            if not isinstance(found, Exception) or not any(text in str(found) for text in texts):
                failures.append("%s: %r and not an error with %r" % (what, found, one.fails))
            elif not isinstance(expected, Exception):
                failures.append("%s: %r on the CPU and %r on the device" % (what, expected, found))
        elif isinstance(expected, Exception):
            failures.append("%s on the CPU: %s" % (what, expected))
        elif isinstance(found, Exception):
            failures.append("%s on the device: %s" % (what, found))
        else:
            for index, (a, b) in enumerate(zip(found, expected)):
                text = differ(a, b, one.tolerance)
                if text:
                    failures.append("%s, output %d: %s" % (what, index, text))
        if one.op:
            done[op] = done.get(op, 0) + 1
    after = counted()
    for op, times in sorted(done.items()):
        print("ok %s %d" % (op, times))
        if after is None:
            continue
        runs = after.get(op, 0) - before.get(op, 0)
        if runs < times * 0.9:
            failures.append("%s ran %d times on the device and should have %d times" % (op, runs, times))
    if not names:
        swept = {one.op or "Range" for one in CASES}
        swept &= set(done) | (set() if LACKS_TYPES else swept)
        if variables not in groups:
            # What stands in their place raises an error, which other tests look at.
            swept |= {"AssignAddVariableOp", "AssignSubVariableOp"}
        # The CPU has no kernels for them; `train=recurrent` of refdevice.py compares the layers that Keras makes of them.
        swept |= {op for op in registered() if op.startswith("CudnnRNN")}
        # What a graph pass makes of others; fusion.py compares it with them.
        swept |= {op for op in registered() if op.startswith("RustGpu")}
        failures += ["%s has a kernel and was not swept" % op for op in sorted(registered() - swept)]
    for failure in failures:
        print("FAILED", failure)
    sys.exit("%d of %d failed" % (len(failures), len(CASES)) if failures else 0)


main(sys.argv[1:])
