"""Sums, products of matrices, and what is made of them."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, FLOATS, LACKS_TYPES, NUMBERS, SHAPES, call, case, flags, numbers, on_the_cpu_in_float, random, raw


def sums():
    for dtype in NUMBERS[:4] + ["float32", "uint8", "int16"]:
        for shape in [(), (0,), (2, 3), (5, 8)]:
            # More than a launch has.
            for count in (1, 2, 5, 12, 13, 30):
                parts = [numbers(shape, dtype, 0, 9) for _ in range(count)]
                case("AddN", on_the_cpu_in_float(lambda *parts: raw.AddN(inputs=list(parts))), *parts)
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
    # Four neighbours at a time and not, in one tile and several, short and long ones.
    axes += [((7, 12, 512), [2]), ((50, 64), [1]), ((3, 64, 49), [0, 2]), ((2, 25, 8), [1]), ((301, 68), [0]), ((4, 10), [0]), ((2, 70, 3, 5), [1]), ((5, 6, 7, 8), [0, 2]),
             ((2, 7, 7, 40), [1, 2])] * LACKS_TYPES
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
    # Few results of many elements, of which some are in pieces: with a divisor, and with none.
    for shape, axis in [((40000,), [0]), ((33, 1000, 3), [1, 0]), ((6000, 20), [0]), ((64, 3, 1001), [0, 2]), ((31, 5, 33, 7), [0, 2]), ((33, 3, 1000), [0, 2]), ((2, 100003), [1]), ((2, 96, 2, 256), [1, 3])]:
        for op, dtype in [("Sum", "float32"), ("Mean", "float16"), ("Sum", "bfloat16"), ("Max", "bfloat16"), ("Min", "int64"), ("Sum", "int64"), ("Prod", "float32"),
                          ("All", "bool"), ("Any", "bool")]:
            x = np.zeros(shape, bool) if op == "Any" else np.ones(shape, bool) if op == "All" else numbers(shape, dtype, *((0.999, 1.001) if op == "Prod" else (0, 3)))
            for last in (False, True):
                x.ravel()[-1] = not x.ravel()[-1] if dtype == "bool" else 5 if last else 1
                reduce = lambda x, op=op, axis=axis: getattr(raw, op)(input=x, axis=tf.constant(axis))
                case(op, on_the_cpu_in_float(reduce), x.copy(), tolerance=1e-2 if dtype in ("float16", "bfloat16") else 1e-3 if op == "Prod" else None)
    case("L2Loss", call("L2Loss", t=None), numbers((50, 2000), "float32", 0, 1))
    # More axes than a launch has.
    for rank, first in [(9, 0), (10, 0), (12, 1), (13, 0), (13, 1), (15, 0)]:
        for op, dtype in [("Sum", "float32"), ("Max", "float16"), ("Min", "int64"), ("All", "bool")]:
            x = np.arange(2 ** rank).reshape([2] * rank)
            x = x != 5 if dtype == "bool" else x[::-1].astype(dtype)
            case(op, lambda x, op=op, first=first, rank=rank: getattr(raw, op)(input=x, axis=tf.constant(range(first, rank, 2))), x)
    nan = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0], [np.inf, -np.inf, 0.0]], "float32")
    for op in ["Max", "Min", "Sum", "Mean"]:
        for axis in (0, 1):
            for x in (nan, np.repeat(nan, 100, 0), np.repeat(nan, 100, 1)):
                case(op, lambda x, op=op, axis=axis: getattr(raw, op)(input=x, axis=tf.constant([axis])), x)
    for op in ["ArgMax", "ArgMin"]:
        for dtype in NUMBERS:
            for shape, axis in [((5,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 4), 1), ((0, 3), 1)]:
                for target in ("int32", "int64"):
                    case(op, lambda x, op=op, axis=axis, target=target: getattr(raw, op)(
                        input=x, dimension=tf.constant(axis), output_type=target), numbers(shape, dtype))
        case(op, lambda x, op=op: getattr(raw, op)(input=x, dimension=tf.constant(0)), np.array([2, 1, 2, 1], "float32"))
        # As many as several threads have, of which many are equal, and one is the best or none.
        for dtype in NUMBERS:
            for shape, axis in [((3, 1500), 1), ((1500, 3), 0), ((5000,), 0)]:
                x = random.integers(0, 6, shape).astype(tf.as_dtype(dtype).as_numpy_dtype)
                y = x.copy()
                y.ravel()[1234] = 9 if op == "ArgMax" else -9
                for one in (x, y):
                    case(op, lambda x, op=op, axis=axis: getattr(raw, op)(input=x, dimension=tf.constant(axis)), one)
        # NaNs are skipped; 0 if nothing is greater than the least finite number, or less than the greatest.
        for dtype in FLOATS:
            least = float(tf.as_dtype(dtype).min)
            x = np.array([[np.nan, 1, 2], [np.nan] * 3, [1, np.nan, 2], [np.nan, 2, 1], [np.nan, -np.inf, np.inf], [-np.inf, least, np.nan], [np.inf, -least, np.inf]])
            for x, axis in [(x, 0), (x, 1), (np.repeat(x, 500, 1), 1)]:
                case(op, lambda x, op=op, axis=axis: getattr(raw, op)(input=x, dimension=tf.constant(axis)), x.astype(tf.as_dtype(dtype).as_numpy_dtype))
    for op in ["Cumsum", "Cumprod"]:
        for dtype in ["float32", "float64", "int64"]:
            for shape, axis in [((5,), 0), ((2, 3), -1), ((2, 3, 4), 1), ((0, 3), 1), ((2, 0), 1), ((2, 1500, 3), 1)]:
                # Long sums of both signs depend on the order.
                bounds = [0, 3] if 1500 in shape and op == "Cumsum" and dtype != "int64" else []
                for exclusive in (False, True):
                    for reverse in (False, True):
                        case(op, lambda x, op=op, axis=axis, exclusive=exclusive, reverse=reverse: getattr(raw, op)(
                            x=x, axis=tf.constant(axis), exclusive=exclusive, reverse=reverse), numbers(shape, dtype, *bounds), tolerance=1e-4 if 1500 in shape and dtype == "float32" else None)


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
            # More tiles, and more matrices, than a GPU has workgroups for.
            case("MatMul", call("MatMul", a=None, b=None), numbers((2_100_000, 1), dtype), numbers((1, 1), dtype))
            case("BatchMatMulV2", call("BatchMatMulV2", x=None, y=None), numbers((70_000, 1, 2), dtype), numbers((70_000, 2, 1), dtype))
        if LACKS_TYPES and dtype == "float16":
            # What matrix units multiply: sizes that are multiples of eight and not, in tiles of both sizes, full and not.
            for m, k, n in [(64, 64, 64), (136, 72, 200), (70, 45, 101), (256, 33, 40), (2112, 24, 2100), (64, 0, 64), (70, 0, 101)]:
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
    for a, b in [((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2))]:
        case("MatMul", call("MatMul", a=None, b=None), numbers(a, "float32"), numbers(b, "float32"), fails="ndims|takes matrices")
    for a, b in [((1, 2, 3), (2, 3, 2)), ((2, 3), (2, 3, 2))]:
        case("BatchMatMul", call("BatchMatMul", x=None, y=None), numbers(a, "float32"), numbers(b, "float32"), fails="ndims|must be the same")
    case("Einsum", lambda a, b: raw.Einsum(inputs=[a, b], equation="ij,jk->ik"), numbers((2, 3), "float32"), numbers((4, 5), "float32"), fails="two sizes|Expected dimension")
    case("BiasAdd", call("BiasAdd", value=None, bias=None), numbers((2, 3), "float32"), numbers((2,), "float32"), fails="biases|bias")


def probabilities():
    for dtype in FLOATS:
        for shape in [(1, 1), (4, 7), (0, 3), (3,), (2, 3, 4), (32, 10), (3, 700)]:
            for op in ["Softmax", "LogSoftmax"]:
                case(op, call(op, logits=None), numbers(shape, dtype, -9, 9), tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
        for rows, classes in [(1, 1), (4, 7), (0, 3), (32, 10), (3, 700)]:
            for index in ("int32", "int64"):
                case("SparseSoftmaxCrossEntropyWithLogits",
                     call("SparseSoftmaxCrossEntropyWithLogits", features=None, labels=None),
                     numbers((rows, classes), dtype, -5, 5), random.integers(0, classes, rows).astype(index),
                     tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
            case("SoftmaxCrossEntropyWithLogits", call("SoftmaxCrossEntropyWithLogits", features=None, labels=None),
                 numbers((rows, classes), dtype, -5, 5), numbers((rows, classes), dtype, 0, 1),
                 tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))
        for logits, labels in [((4, 3), (1, 3)), ((4, 3), (4, 1)), ((4, 1), (4, 3)), ((3,), (4, 1)), ((1, 3), (4, 3)), ((4, 3), ()), ((1,), (4, 3)), ((3, 1), (3, 700))]:
            case("SoftmaxCrossEntropyWithLogits", call("SoftmaxCrossEntropyWithLogits", features=None, labels=None),
                 numbers(logits, dtype, -5, 5), numbers(labels, dtype, 0, 1), tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype))


def counts():
    random = np.random.default_rng(23)
    number = lambda *values, dtype: raw.Range(**{name: tf.constant(value, dtype) for name, value in zip(("start", "limit", "delta"), values)})
    for dtype in FLOATS + ["int64"]:
        for values in [(0, 1, 0.1), (3, -2, -0.5), (2, 9, 3), (1, 1, 1), (-7, 200, 1), (5, 0, -1), (-(1 << 62), (1 << 62) + 5, 1 << 60)]:
            if dtype == "int64" and values[2] == int(values[2]) or dtype != "int64" and values[2] < 1 << 60:
                case("Range", lambda values=values, dtype=dtype: number(*values, dtype=dtype))
    for values in ((0, 1, 0), (2, 1, 1), (1, 2, -1)):
        for dtype in ("float32", "int64"):
            case("Range", lambda values=values, dtype=dtype: number(*values, dtype=dtype), fails="equires")
    for dtype in ("float32", "float64", "int32", "int64"):
        for index in ("int32", "int64"):
            for shape, bins in [((20,), 5), ((3, 9), 300), ((0,), 4), ((4, 0), 3), ((), 2), ((30000,), 20), ((2, 5), 0), ((3, 20000), 2)]:
                values = random.integers(0, bins + 3, shape).astype(index)
                for weights in (np.zeros(0, dtype), random.integers(-5, 5, shape).astype(dtype)):
                    size = tf.constant(bins, index)
                    for is_binary in (False, True):
                        case("DenseBincount", lambda x, w, size=size, is_binary=is_binary: raw.DenseBincount(
                            input=x, size=size, weights=w, binary_output=is_binary), values, weights)
                    if index == "int32":
                        case("Bincount", lambda x, w, size=size: raw.Bincount(arr=x, size=size, weights=w), values, weights)
    ints, floats = np.int32([[1, 2]]), np.float32([])
    case("DenseBincount", lambda x, w: raw.DenseBincount(input=x, size=-1, weights=w), ints, floats, fails="must be non-negative")
    case("DenseBincount", lambda x, w: raw.DenseBincount(input=x, size=3, weights=w), ints, np.float32([1, 2]), fails="same shape as|must be the same")
    case("DenseBincount", lambda x, w: raw.DenseBincount(input=x, size=3, weights=w), ints[None], floats, fails="at most rank 2")
