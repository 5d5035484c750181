"""What approximations may lose: signs of zeros, last digits, small results and large ones."""
import math

import numpy as np
import tensorflow as tf

from sweep.case import CPU, SPECIAL, TYPE, call, case

random = np.random.default_rng(21)


def in_bits(x):
    """Zeros of other signs are other bits."""
    with tf.device(CPU):
        return tf.constant(x.numpy().view("int32"))


def digits():
    """The first case of each operation, which every sample has."""
    for op in ("Tanh", "Expm1"):
        case(op, lambda x, op=op: in_bits(call(op, x=None)(x)), np.float32([0.0, -0.0]))
    case("Log1p", call("Log1p", x=None), np.float32([4e36, 1e38, 3.4e38]))
    mod()
    tail()
    powers()


def mod():
    """Quotients of all sizes, of which no digit may be rounded."""
    x, y = 10.0 ** random.uniform(-30, 38, (2, 20000))
    x[:10000] = y[:10000] * 10.0 ** random.uniform(-1, 5, 10000)
    x, y = np.append(x * random.choice([-1, 1], 20000), [100, 1e10]), np.append(y, [0.1, 3])
    op = call("FloorMod", x=None, y=None)
    case("FloorMod", lambda x, y, s: (op(x, y), op(s[:, None], s)), np.float32(x), np.float32(y), np.float32(SPECIAL), tolerance=0)


def in_double(op):
    """The CPU's results are those of float64, rounded."""
    def function(*inputs):
        if TYPE in inputs[0].device:
            return op(*inputs)
        return tf.cast(op(*[tf.cast(x, tf.float64) for x in inputs]), inputs[0].dtype)
    return function


def tail():
    """Results that are as small as floats are, times what makes them 1."""
    x = np.linspace(-86, 86, 10000, dtype="float32")
    exp = call("Exp", x=None)
    case("Exp", in_double(lambda x, factor: exp(x) * factor), x, np.exp(-x), tolerance=1e-6)
    x = np.linspace(-6, 9.15, 10000, dtype="float32")
    erfc = call("Erfc", x=None)
    case("Erfc", in_double(lambda x, factor: erfc(x) * factor), x, np.float32([1 / math.erfc(x) for x in x]), tolerance=1e-6)


def powers():
    """Of all sizes, to the last digits; what is a float must be that float."""
    x, y = np.float32(random.uniform(0.01, 30, 20000)), np.float32(random.uniform(-20, 20, 20000))
    power = np.float64(x) ** y
    x, y, power = (values[(power > 1e-37) & (power < 1e37)] for values in (x, y, power))
    bases, exponents = (values.ravel() for values in np.float32(np.meshgrid(range(-30, 31), range(-126, 128))))
    with np.errstate(all="ignore"):
        exact = np.float64(bases) ** exponents
        is_float = (np.float32(exact) == exact) & (abs(exact) >= 2.0**-126) & np.isfinite(exact)
    op = call("Pow", x=None, y=None)
    near, same = in_double(lambda x, y, factor: op(x, y) * factor), in_double(op)
    case("Pow", lambda x, y, factor, base, exponent, special, zero, odd: (
        near(x, y, factor), in_bits(same(base, exponent)), op(special[:, None], special), in_bits(op(zero, odd))),
         x, y, np.float32(1 / power), bases[is_float], exponents[is_float], np.float32(SPECIAL),
         np.float32(-0.0), np.float32([1, -1, 3, -3, 2, -2, 0.5, -0.5, 0]), tolerance=1e-6)
