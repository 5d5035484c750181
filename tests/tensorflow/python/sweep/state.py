"""Random numbers, and variables."""
import numpy as np
import tensorflow as tf

from sweep.case import FLOATS, NUMBERS, call, case, numbers, raw
from sweep.moves import updates_of


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
    for seed in ([1, 2], [-3, 1 << 30], [-(1 << 40), (1 << 62) + 5], [0, -1]):
        for dtype in ("int32", "int64"):
            op = "StatelessRandomGetKeyCounter"
            if np.abs(seed).max() < 1 << 31 or dtype == "int64":
                case(op, lambda seed: list(raw.StatelessRandomGetKeyCounter(seed=seed)), np.array(seed, dtype))
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
    case("StatelessRandomGetKeyCounter", call("StatelessRandomGetKeyCounter", seed=None), np.int64([1, 2, 3]), fails="seed must have shape")
    for alg, key, text in [(2, [1], "algorithm"), (1, [1, 2], "key")]:
        case("StatelessRandomUniformV2", call("StatelessRandomUniformV2", shape=[3], key=None, counter=None, alg=alg, dtype=tf.float32),
             np.uint64(key), np.uint64([1, 2]), fails=text)


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
        case("ResourceStridedSliceAssign", updated(1, lambda s, i: raw.ResourceStridedSliceAssign(ref=s[0], begin=[1], end=[3], strides=[1], value=i[0])),
             numbers(shape, dtype, 20, 30), numbers((2, 4), dtype))
        for batches, places in ((0, np.int32([[1, 0], [1, 2]])), (0, np.int64(2)), (1, np.int64([[0, 1], [3, 3], [2, 0]]))):
            case("ResourceGather", lambda x, i, batches=batches, dtype=dtype: raw.ResourceGather(
                resource=tf.Variable(x).handle, indices=i, dtype=dtype, batch_dims=batches), numbers(shape, dtype, 0, 9), places)
        case("ResourceGatherNd", lambda x, i, dtype=dtype: raw.ResourceGatherNd(resource=tf.Variable(x).handle, indices=i, dtype=dtype),
             numbers(shape, dtype, 0, 9), np.int32([[2, 1], [0, 3]]))


def draws():
    random = np.random.default_rng(22)
    odd = np.float32([[0.5, -np.inf, 2.0, np.nan, 1.0, np.inf, -1.0]])
    for dtype in FLOATS:
        kind = tf.as_dtype(dtype).as_numpy_dtype
        # The CPU draws the same only if one thread has all rows.
        for shape, samples in [((1, 5), 1000), ((1, 300), 40), ((3, 7), 5), ((8, 4), 1), ((1, 1), 3), ((0, 4), 2), ((2, 3), 0), ((1, 1000), 9)]:
            logits = random.uniform(-3, 3, shape).astype(kind)
            for out in (tf.int32, tf.int64):
                case("Multinomial", lambda x, samples=samples, out=out: [raw.Multinomial(
                    logits=x, num_samples=samples + more, seed=7, seed2=-9, output_dtype=out) for more in (0, 3)], logits)
                for seed in (np.int32([5, -2]), np.int64([1 << 40, 3])):
                    case("StatelessMultinomial", lambda x, seed, samples=samples, out=out: raw.StatelessMultinomial(
                        logits=x, num_samples=samples, seed=seed, output_dtype=out), logits, seed)
        for logits in (odd, odd - np.inf):
            case("StatelessMultinomial", lambda x: raw.StatelessMultinomial(logits=x, num_samples=50, seed=[1, 2]), logits.astype(kind))
    case("StatelessMultinomial", lambda x: raw.StatelessMultinomial(logits=x, num_samples=3, seed=[1, 2]), random.uniform(-1, 1, (1, 70000)).astype("float32"))
    case("Multinomial", lambda x: raw.Multinomial(logits=x, num_samples=3), np.zeros((2, 0), "float32"), fails="num_classes should be positive")
    case("Multinomial", lambda x: raw.Multinomial(logits=x, num_samples=-3), np.zeros((2, 2), "float32"), fails="num_samples should be nonnegative")
    case("StatelessMultinomial", lambda x: raw.StatelessMultinomial(logits=x, num_samples=3, seed=[1, 2]), np.zeros(2, "float32"), fails="logits should be a matrix")
    # Below 1 they are powers of a uniform number, and at 1 exponentially distributed.
    for dtype in FLOATS[:3]:
        kind = tf.as_dtype(dtype).as_numpy_dtype
        for alpha in (0.3, [1.0], [0.9, 1.0, 1.1, 30.0], [[2.0], [0.05], [300.0]], []):
            alpha = np.array(alpha).astype(kind)
            for outer in ([], [3], [50, 7], [0]):
                case("RandomGamma", lambda alpha, outer=outer: [raw.RandomGamma(shape=np.int32(outer), alpha=alpha, seed=7, seed2=1) for _ in range(2)], alpha)
                for alg, counter in ((1, [7, 1 << 40]), (3, [(1 << 64) - 3, 5])):
                    case("StatelessRandomGammaV3", lambda key, counter, alpha, shape=outer + list(alpha.shape), alg=alg: raw.StatelessRandomGammaV3(
                        shape=np.int32(shape), key=key, counter=counter, alg=alg, alpha=alpha), np.uint64([0x123456789abcdef0]), np.uint64(counter), alpha)
    case("StatelessRandomGammaV3", lambda key, counter, alpha: raw.StatelessRandomGammaV3(shape=[3, 5], key=key, counter=counter, alg=1, alpha=alpha),
         np.uint64([1]), np.uint64([1, 2]), np.float32([1, 2]), fails="must end with broadcasted shape")
