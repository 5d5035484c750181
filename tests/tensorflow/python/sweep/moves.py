"""Elements in other places, and rows by indices."""
import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops as xla_ops

from sweep.case import CPU, FLOATS, INTEGERS, NUMBERS, call, case, flags, numbers, random, raw


# Indices of several numbers: the shape of the tensor, and those whose last axis is the numbers.
PLACES = [((5,), [[1], [0], [1]]), ((3, 4), [[2], [0]]), ((3, 4), [[2, 3], [0, 0], [2, 3]]), ((2, 3, 2), [[[0, 2], [1, 1]], [[0, 2], [0, 0]]]),
          ((2, 2, 2), [[0, 1, 1]]), ((3, 2), np.zeros((0, 1))),
          ((600, 3), np.arange(700)[:, None] * 7 % 600), ((70, 2), np.zeros((300, 1)))]


def negative_orders():
    """Those with axes from the end, which old releases refuse."""
    try:
        with tf.device(CPU):
            raw.Transpose(x=tf.zeros((2, 3)), perm=tf.constant([0, -1]))
    except tf.errors.InvalidArgumentError:
        return []
    return [((2, 3, 4), [0, -1, -2])]


def arrangements():
    negative = negative_orders()
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
                for to in INTEGERS + FLOATS + ["complex64", "complex128"]:
                    size, other = make(()).dtype.itemsize, tf.as_dtype(to).size
                    for shape in [(), (3,), (0, 2), (2, 3)]:
                        case("Bitcast", call("Bitcast", input=None, type=tf.as_dtype(to)), make(shape + (other // size,) if other > size else shape))
            for shape, times in [((), []), ((3,), [2]), ((2, 3), [2, 3]), ((2, 3), [0, 1]), ((0, 3), [2, 2]), ((2, 1, 3), [1, 4, 1])]:
                # The CPU has no kernel for uint16.
                if dtype != "uint16":
                    case("Tile", lambda x, times=times, vector=vector: raw.Tile(input=x, multiples=vector(times)), make(shape))
            for shape, target in [((), [2, 3]), ((3,), [2, 3]), ((2, 1), [2, 3]), ((1,), [0]), ((2, 3), [2, 3]), ((), [])]:
                case("BroadcastTo", lambda x, target=target, vector=vector: raw.BroadcastTo(input=x, shape=vector(target)), make(shape))
            for shape, order in [((), []), ((3,), [0]), ((2, 3), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 0), [1, 0]), ((2, 3, 4, 5), [0, 3, 1, 2])] + negative:
                case("Transpose", lambda x, order=order, vector=vector: raw.Transpose(x=x, perm=vector(order)), make(shape))
            for shape, begin, size in [((5,), [1], [3]), ((5,), [2], [-1]), ((2, 3), [0, 1], [2, 2]), ((2, 3), [2, 0], [0, 3]), ((2, 3, 4), [1, 0, 2], [1, -1, 1])]:
                case("Slice", lambda x, begin=begin, size=size, vector=vector: raw.Slice(input=x, begin=vector(begin), size=vector(size)), make(shape))
            for shape, begin, size in [((), [], []), ((5,), [1], [3]), ((5,), [-2], [2]), ((2, 3), [0, 9], [2, 2]), ((2, 3, 4), [1, -1, 3], [1, 3, 2]), ((2, 3), [1, 1], [0, 3])]:
                case("XlaDynamicSlice", lambda x, begin=begin, size=size, vector=vector: xla_ops.xla_dynamic_slice(x, vector(begin), vector(size)), make(shape))
                case("XlaDynamicUpdateSlice", lambda x, y, begin=begin, vector=vector: xla_ops.xla_dynamic_update_slice(x, y, vector(begin)), make(shape), make(tuple(size)))
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
        for begin, end, strides, masks, shape in [([1, 4], [3, -6], [1, -2], {}, (2, 3)), ([0], [1], [1], dict(shrink_axis_mask=1), (5,)), ([0, 1], [0, 4], [1, 1], dict(begin_mask=1, end_mask=1), (1, 3)),
                                                  ([0, 2], [0, 3], [1, 1], dict(ellipsis_mask=1, shrink_axis_mask=2), ()), ([2, 0], [2, 5], [1, 1], {}, (0, 5))]:
            update = lambda x, u, begin=begin, end=end, strides=strides, masks=masks: raw.TensorStridedSliceUpdate(
                input=x, begin=begin, end=end, strides=strides, value=u, **masks)
            case("TensorStridedSliceUpdate", update, make((3, 5)), make(shape))
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
    # More axes than a launch has.
    for rank in (5, 6):
        case("Tile", lambda x, rank=rank: raw.Tile(input=x, multiples=tf.constant([2] * rank)), np.arange(3 ** rank).reshape([3] * rank).astype("float32"))
    for rank in (10, 12):
        case("Transpose", lambda x, rank=rank: raw.Transpose(x=x, perm=tf.constant(list(range(rank))[::-1])), np.arange(2 ** rank).reshape([2] * rank).astype("int16"))
    case("MatrixBandPart", lambda x: raw.MatrixBandPart(input=x, num_lower=tf.constant(3), num_upper=tf.constant(0)), numbers((2, 3), "float32"), fails="num_lower must be negative")
    for order in ([0, 0], [0, -2], [0, 2], [0, -3], [0]):
        case("Transpose", lambda x, order=order: raw.Transpose(x=x, perm=tf.constant(order)), numbers((2, 3), "float32"),
             fails="permutation|is missing from|no axis|out of range|vector of size|Dimension|must be")


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
    x = numbers((3, 7), "float32")
    case("TopKV2", lambda x: raw.TopKV2(input=x, k=tf.constant(3, "int16"), index_type=tf.int16), x)
    case("Bitcast", call("Bitcast", input=None, type=tf.float64), np.complex128([[1 + 2j, 3]]))
    case("Bitcast", call("Bitcast", input=None, type=tf.complex128), np.complex128([[1 + 2j, 3]]))
    case("TopKV2", lambda x: raw.TopKV2(input=x, k=tf.constant(4)), numbers((2, 3), "float32"), fails="at least k columns")
    case("TopKV2", lambda x: raw.TopKV2(input=x, k=tf.constant(1)), numbers((), "float32"), fails="1-D")
