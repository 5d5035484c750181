"""Rows that a sparse tensor chooses and adds, and diagonals of matrices."""
import numpy as np
import tensorflow as tf

from sweep.case import FLOATS, call, case, flags, numbers, random, raw


def products():
    for index in ("int32", "int64"):
        for shape, columns, count in [((3, 4), 5, 6), ((1, 1), 1, 1), ((4, 3), 2, 0), ((0, 3), 2, 0), ((3, 0), 2, 0), ((300, 7), 3, 900), ((5, 5), 0, 3)]:
            # A place may be there twice, and in any order.
            places = np.stack([random.integers(0, max(size, 1), count) for size in shape], 1).astype(index)
            for of_a in (False, True):
                for of_b in (False, True):
                    dense = (shape[0] if of_a else shape[1], columns)
                    case("SparseTensorDenseMatMul", lambda i, x, b, shape=shape, of_a=of_a, of_b=of_b: raw.SparseTensorDenseMatMul(
                        a_indices=i, a_values=x, a_shape=tf.constant(shape, "int64"), b=b, adjoint_a=of_a, adjoint_b=of_b),
                         places, numbers((count,), "float32"), numbers(dense[::-1] if of_b else dense, "float32"))
    one = np.zeros((1, 2), "int64"), np.ones(1, "float32")
    multiply = lambda i, x, b: raw.SparseTensorDenseMatMul(a_indices=i, a_values=x, a_shape=tf.constant([2, 3], "int64"), b=b)
    case("SparseTensorDenseMatMul", multiply, *one, numbers((2, 2), "float32"), fails="inner dimension does not match")
    case("SparseTensorDenseMatMul", multiply, *one, numbers((3,), "float32"), fails="is not a matrix")


def segments():
    for index in ("int32", "int64"):
        for ids in ("int32", "int64"):
            for shape, rows, places in [((4, 3), [0, 2, 1, 0], [0, 0, 1, 3]), ((2,), [1, 1, 1], [0, 0, 0]), ((3, 2, 2), [2], [2]), ((3, 2), [], []),
                                        ((50, 4), random.integers(0, 50, 700), np.sort(random.integers(0, 40, 700)))]:
                rows, places = np.array(rows, index), np.array(places, ids)
                data = numbers(shape, "float32")
                for way in ("Sum", "Mean", "SqrtN"):
                    case("SparseSegment" + way, call("SparseSegment" + way, data=None, indices=None, segment_ids=None), data, rows, places)
                    count = int(places.max(initial=-1)) + 1
                    # More segments than there are, which are empty.
                    for more in (0, 2):
                        case("SparseSegment%sWithNumSegments" % way, lambda x, i, s, way=way, count=count + more: getattr(
                            raw, "SparseSegment%sWithNumSegments" % way)(data=x, indices=i, segment_ids=s, num_segments=tf.constant(count)), data, rows, places)
                    if count:
                        case("SparseSegment%sGrad" % way, lambda g, i, s, way=way, size=shape[0]: getattr(raw, "SparseSegment%sGrad" % way)(
                            grad=g, indices=i, segment_ids=s, output_dim0=tf.constant(size)), numbers((count,) + shape[1:], "float32"), rows, places)
    several = numbers((3, 2), "float32"), np.int32([0, 1]), np.int32([1, 0])
    case("SparseSegmentSum", call("SparseSegmentSum", data=None, indices=None, segment_ids=None), *several, fails="not increasing")
    case("SparseSegmentMean", call("SparseSegmentMean", data=None, indices=None, segment_ids=None), *several[:2], np.int32([0]), fails="same size")


def diagonals():
    for dtype in FLOATS + ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]:
        make = lambda shape: flags(shape) if dtype == "bool" else numbers(shape, dtype, 0, 99)
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
            for shape, k in [((3, 3), [0]), ((2, 3, 4), [0]), ((2, 4, 3), [1]), ((4, 3), [-2]), ((3, 5), [-1, 1]), ((2, 5, 3), [-3, 2]), ((2, 2, 3, 3), [1, 2]),
                             ((0, 3, 3), [0]), ((1, 1), [0])]:
                rows, columns = shape[-2:]
                longest = min(rows + min(k[-1], 0), columns - max(k[0], 0))
                diagonal = shape[:-2] + ((k[-1] - k[0] + 1,) if len(k) == 2 else ()) + (longest,)
                k = tf.constant(k)
                case("MatrixDiagPartV3", lambda x, padding, k=k, align=align: raw.MatrixDiagPartV3(input=x, k=k, padding_value=padding, align=align),
                     make(shape), make(()))
                case("MatrixSetDiagV3", lambda x, diagonal, k=k, align=align: raw.MatrixSetDiagV3(input=x, diagonal=diagonal, k=k, align=align),
                     make(shape), make(diagonal))
                for size in ((-1, -1), shape[-2:]) if len(diagonal) and diagonal[-1] else ():
                    case("MatrixDiagV3", lambda x, padding, k=k, size=size, align=align: raw.MatrixDiagV3(
                        diagonal=x, k=k, num_rows=size[0], num_cols=size[1], padding_value=padding, align=align), make(diagonal), make(()))
    x, one = numbers((3, 3), "float32"), np.float32(0)
    case("MatrixDiagPartV3", lambda x, one: raw.MatrixDiagPartV3(input=x, k=[3], padding_value=one), x, one, fails="out of bound|must be between|must be in")
    case("MatrixDiagPartV3", lambda x, one: raw.MatrixDiagPartV3(input=x, k=[1, 0], padding_value=one), x, one, fails="must not be larger")
    case("MatrixSetDiagV3", lambda x, d: raw.MatrixSetDiagV3(input=x, diagonal=d, k=[0]), x, numbers((2,), "float32"), fails="ust ")
    case("MatrixDiagV3", lambda d, one: raw.MatrixDiagV3(diagonal=d, k=[0], num_rows=2, num_cols=9, padding_value=one), x[0], one, fails="not consistent|must be|ust ")
