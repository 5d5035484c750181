"""Float64: functions of numbers of all sizes, to the last digits, and what is random."""
import math

import numpy as np
import tensorflow as tf

from sweep.case import CPU, SPECIAL, TYPE, call, case, numbers, raw

random = np.random.default_rng(27)


def against(op, exact, *inputs):
    """Compares the device with numbers that are known, relative to these: Eigen's functions on the CPU are less precise."""
    known = np.array([exact(*values) for values in zip(*[x.tolist() for x in inputs])])
    is_here = np.isfinite(known) & (np.abs(known) > 1e-307)
    inputs, known = [x[is_here] for x in inputs], known[is_here]
    case(op, lambda *all: raw_of(op)(*all[:-1]) / all[-1] if TYPE in all[0].device else tf.ones_like(all[-1]), *inputs, known, tolerance=3e-15)


def raw_of(op):
    names = {"Softplus": ["features"], "Atan2": ["y", "x"], "Pow": ["x", "y"]}.get(op, ["x"])
    return call(op, **dict.fromkeys(names))


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def functions():
    uniform = lambda low, high, count=4000: random.uniform(low, high, count)
    sizes = lambda low, high: random.choice([-1, 1], 4000) * 10.0 ** uniform(low, high)
    small = np.float64([5e-324, 1e-310, 2.2e-308])
    quarters = np.arange(1, 500) * math.pi / 2
    for op, exact, *parts in [
            ("Exp", math.exp, uniform(-700, 709.7), sizes(-300, 0)), ("Expm1", math.expm1, uniform(-2, 2), sizes(-300, 2.8)),
            ("Log", math.log, np.abs(sizes(-300, 308)), uniform(0.3, 3), 1 + sizes(-15, -1), small), ("Log1p", math.log1p, uniform(-0.99, 3), np.abs(sizes(-300, 308))),
            ("Tanh", math.tanh, uniform(-3, 3), sizes(-300, 2)), ("Sigmoid", lambda x: 1 / (1 + math.exp(-x)), uniform(-700, 700), uniform(-30, 30)),
            ("Softplus", softplus, uniform(-700, 700), uniform(-40, 40)), ("Sin", math.sin, uniform(-10, 10), uniform(-1e6, 1e6), sizes(-300, 308), quarters),
            ("Cos", math.cos, uniform(-10, 10), uniform(-1e6, 1e6), sizes(-300, 308), quarters), ("Tan", math.tan, uniform(-10, 10), uniform(-1e6, 1e6)),
            ("Erf", math.erf, uniform(-3, 3), sizes(-300, 1)), ("Erfc", math.erfc, uniform(-6, 26), uniform(-1, 3)),
            ("Sinh", math.sinh, uniform(-700, 700), sizes(-300, 0)), ("Cosh", math.cosh, uniform(-700, 700)), ("Asinh", math.asinh, sizes(-300, 308), uniform(-3, 3)),
            ("Acosh", math.acosh, 1 + np.abs(sizes(-10, 300))), ("Atanh", math.atanh, uniform(-0.999, 0.999), sizes(-300, -1)),
            ("Asin", math.asin, uniform(-1, 1), sizes(-300, -1)), ("Acos", math.acos, uniform(-1, 0.999)), ("Atan", math.atan, sizes(-300, 308), uniform(-3, 3)),
            ("Sqrt", math.sqrt, np.abs(sizes(-300, 308))), ("Rsqrt", lambda x: 1 / math.sqrt(x), np.abs(sizes(-300, 300)))]:
        against(op, exact, np.concatenate(parts))
    against("Pow", power, np.concatenate([uniform(0.01, 100), 1 + sizes(-9, -0.5), np.abs(sizes(-300, 300))]),
            np.concatenate([uniform(-150, 150), sizes(-1, 6), uniform(-1, 1)]))
    against("Atan2", math.atan2, sizes(-10, 10), sizes(-10, 10))
    # The device computes what is left of 1 as it is.
    x = np.concatenate([uniform(-0.999, 0.999), 1 - 2.0 ** -np.arange(1.0, 50.0)])
    case("Erfinv", lambda x: raw.Erf(x=raw.Erfinv(x=x)) if TYPE in x.device else x, x, tolerance=1e-15)
    # Powers of whole numbers that are doubles are those.
    bases, exponents = (values.ravel() for values in np.meshgrid(np.arange(-30.0, 31.0), np.arange(-60.0, 61.0)))
    known = np.array([power(*both) for both in zip(bases.tolist(), exponents.tolist())])
    is_known = np.isfinite(known) & (np.abs(known) < 2.0 ** 53) & (known == np.rint(known)) & (known != 0)
    case("Pow", lambda x, y, known: raw.Pow(x=x, y=y) - known if TYPE in x.device else tf.zeros_like(known), *[
        values[is_known] for values in (bases, exponents, known)], tolerance=0)


def power(x, y):
    try:
        return math.pow(x, y)
    except (OverflowError, ZeroDivisionError, ValueError):
        return math.nan


def arithmetic():
    special = np.float64(SPECIAL)
    for op in ("Pow", "FloorMod", "Atan2"):
        case(op, raw_of(op) if op == "Atan2" else call(op, x=None, y=None), special[:, None], special)
    x, y = 10.0 ** random.uniform(-290, 290, (2, 6000))
    x[:3000] = y[:3000] * 10.0 ** random.uniform(-1, 12, 3000)
    case("FloorMod", call("FloorMod", x=None, y=None), np.append(x * random.choice([-1, 1], 6000), [100, 1e10]), np.append(y, [0.1, 3]), tolerance=0)
    # The CPU takes subnormal numbers for 0.
    wide = np.append(10.0 ** random.uniform(-37, 60, 500) * random.choice([-1, 1], 500), SPECIAL)
    for target in ("float32", "float16", "bfloat16", "bool"):
        case("Cast", lambda x, target=target: raw.Cast(x=x, DstT=target), wide[np.abs(wide) > 1e-4] if target == "float16" else wide, tolerance=0)
    case("Cast", lambda x: raw.Cast(x=x, DstT="int64"), random.uniform(-2.0 ** 62, 2.0 ** 62, 500))
    case("Cast", lambda x: raw.Cast(x=x, DstT="float64"), random.integers(-(2 ** 63), 2 ** 63 - 1, 500), tolerance=0)
    # Few results of many elements, of which some are in pieces.
    for shape, axis in [((40000,), [0]), ((33, 1000, 3), [1, 0]), ((6000, 20), [0]), ((64, 3, 1001), [0, 2]), ((2, 100003), [1])]:
        for op in ("Sum", "Mean", "Max", "Min", "Prod"):
            x = numbers(shape, "float64", *((0.999, 1.001) if op == "Prod" else (0, 3)))
            case(op, lambda x, op=op, axis=axis: getattr(raw, op)(input=x, axis=tf.constant(axis)), x, tolerance=1e-10 if op == "Prod" else None)
    case("L2Loss", call("L2Loss", t=None), numbers((50, 2000), "float64", 0, 1))
    for m, k, n in [(70, 45, 101), (33, 300, 65), (1, 70000, 1), (2_100_000, 1, 1)]:
        for ta in (False, True):
            for tb in (False, True):
                a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
                case("MatMul", call("MatMul", a=None, b=None, transpose_a=ta, transpose_b=tb), numbers(a, "float64", -1, 1), numbers(b, "float64", -1, 1))
    case("BatchMatMulV2", call("BatchMatMulV2", x=None, y=None), numbers((70_000, 1, 2), "float64"), numbers((70_000, 2, 1), "float64"))
    case("TopKV2", lambda x: list(raw.TopKV2(input=x, k=7)), numbers((5, 40), "float64"))


def poissons():
    draws = np.random.default_rng(28)
    for rate in ("float32", "float16", "float64", "int32", "int64"):
        for dtype in (tf.float32, tf.float16, tf.float64, tf.int32, tf.int64):
            for rates, outer in [(5, [7]), ([0, 1, 9, 10, 11, 40], [50]), ([[30], [700]], [3, 4]), (3, []), ([2, 3], [0])]:
                rates = np.array(rates, rate) + (0 if rate.startswith("int") else np.array(draws.uniform(0, 0.9), rate))
                case("RandomPoissonV2", lambda rates, dtype=dtype, outer=outer: [raw.RandomPoissonV2(
                    shape=np.int32(outer), rate=rates, dtype=dtype, seed=7, seed2=1) for _ in range(2)], rates)
                case("StatelessRandomPoisson", lambda rates, seed, dtype=dtype, outer=outer: raw.StatelessRandomPoisson(
                    shape=np.int32(outer + list(rates.shape)), seed=seed, lam=rates, dtype=dtype), rates, np.int64([1 << 40, 3]))
    case("RandomPoissonV2", lambda rates: raw.RandomPoissonV2(shape=[20], rate=rates, dtype=tf.float32, seed=3), np.float32([1e6, 0.0, -3.0]))
    case("RandomPoissonV2", lambda rates: raw.RandomPoissonV2(shape=[2], rate=rates), np.zeros(0, "float32"))
    case("StatelessRandomPoisson", lambda rates: raw.StatelessRandomPoisson(shape=[3, 5], seed=[1, 2], lam=rates, dtype=tf.float32), np.float32([1, 2]), fails="must end with")
    # The CPU never ends for most of these.
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        nothing = 0 if dtype.is_integer else math.nan
        for rate, known in [(1e10, dtype.max), (math.nan, nothing), (math.inf, nothing)]:
            if rate == 1e10 and dtype != tf.int32:
                continue
            for op, draw in [("RandomPoissonV2", lambda rates, dtype=dtype: raw.RandomPoissonV2(shape=[300], rate=rates, dtype=dtype, seed=3)),
                             ("StatelessRandomPoisson", lambda rates, dtype=dtype: raw.StatelessRandomPoisson(shape=[300, 1], seed=[1, 2], lam=rates, dtype=dtype))]:
                case(op, lambda rates, draw=draw, dtype=dtype, known=known: draw(rates) if TYPE in rates.device else tf.fill([300, 1], tf.constant(known, dtype)),
                     np.float64([rate]))


def lgamma(x):
    """The CPU's, because Python's loses digits near 1 and 2."""
    with tf.device(CPU):
        return float(raw.Lgamma(x=tf.constant(x, tf.float64)))


def gammas():
    draws = np.random.default_rng(29)
    for dtype, tolerance in (("float32", 1e-4), ("float64", 1e-10)):
        for op, first, second in [("Igamma", "a", "x"), ("Igammac", "a", "x"), ("IgammaGradA", "a", "x"), ("RandomGammaGrad", "alpha", "sample")]:
            for a, b in [((), ()), ((4, 1), (5,)), ((0,), (1,)), ((3000,), (3000,))]:
                alpha = 10.0 ** draws.uniform(-1.5, 1.7, a)
                x = alpha * draws.uniform(0.1, 3, b) if a == b else 10.0 ** draws.uniform(-1.5, 1, b)
                case(op, call(op, **{first: None, second: None}), np.array(alpha, dtype), np.array(x, dtype), tolerance=tolerance)
            ends = np.array([0, 1, 2.5, -1, np.nan], dtype)
            if "Grad" not in op:
                case(op, call(op, a=None, x=None), ends[:, None], ends, tolerance=tolerance)
    for dtype in ("float32", "float64", "float16"):
        for op in ("Lgamma", "Digamma"):
            x = np.concatenate([draws.uniform(0.05, 9, 500), draws.uniform(9, 200, 100), draws.uniform(0.1, 0.9, 40) - np.arange(1, 41), [1, 2, 3, np.nan]])
            case(op, call(op, x=None), x.astype(tf.as_dtype(dtype).as_numpy_dtype), tolerance={"float32": 1e-4, "float64": 1e-11, "float16": 2e-2}[dtype])
            case(op, call(op, x=None), np.zeros((2, 0), tf.as_dtype(dtype).as_numpy_dtype))
    whole = np.arange(-40.0, 3.0)
    for dtype in ("float32", "float64", "float16"):
        known = whole.astype(dtype)
        beside = np.concatenate([np.nextafter(known, known.dtype.type(end)) for end in (-np.inf, np.inf)])
        beside = np.concatenate([known, beside[np.abs(beside) > 1e-37], SPECIAL, [1e-7, -1e-7, 1e-20, -1e-20, -1e15]]).astype(dtype)
        for op in ("Lgamma", "Digamma"):
            case(op, call(op, x=None), beside, tolerance={"float32": 2e-6, "float64": 1e-13, "float16": 2e-3}[dtype])
    # Relative errors near the zeros at 1 and 2, and near the pole at 0.
    sizes = 10.0 ** -np.arange(0.5, 17, 0.5)
    near = np.concatenate([1 + sizes, 1 - sizes, 2 + sizes, 2 - sizes, sizes, -sizes, [1e-300, -1e-300, 1.5, 2.5, 0.5, -0.5, 9.99, 10]])
    against("Lgamma", lgamma, np.concatenate([near[np.isin(near, [1, 2], invert=True)], draws.uniform(0, 30, 2000)]))
    case("Lgamma", call("Lgamma", x=None), np.float64([1, 2]), tolerance=0)
    # Near 0 it is -1 / x to the last digit.
    tiny = np.concatenate([10.0 ** np.arange(-300, -17), -10.0 ** np.arange(-300, -17)])
    case("Digamma", lambda x: raw.Digamma(x=x) * x if TYPE in x.device else -tf.ones_like(x), tiny, tolerance=3e-15)


def draws():
    for shape in ([], [0], [1], [3], [5, 7], [1000], [3, 70001]):
        for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
            for counter in ([7, 1 << 40], [(1 << 64) - 3, 5]):
                case(op, call(op, shape=shape, key=None, counter=None, alg=1 + 2 * (len(shape) % 2), dtype=tf.float64),
                     np.uint64([0x123456789abcdef0]), np.uint64(counter), tolerance=0 if "Uniform" in op else None)
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        case(op, lambda op=op: [getattr(raw, op)(shape=np.int32(shape), dtype=tf.float64, seed=-(1 << 40), seed2=7) for shape in (
            [3, 5], [], [0], [70001], [4])], tolerance=0 if op == "RandomUniform" else None)
