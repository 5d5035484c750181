"""What approximations may lose: signs of zeros, last digits, small results and large ones."""
import numpy as np
import tensorflow as tf

from sweep.case import CPU, call, case


def in_bits(x):
    """Zeros of other signs are other bits."""
    with tf.device(CPU):
        return tf.constant(x.numpy().view("int32"))


def digits():
    """The first case of each operation, which every sample has."""
    for op in ("Tanh", "Expm1"):
        case(op, lambda x, op=op: in_bits(call(op, x=None)(x)), np.float32([0.0, -0.0]))
    case("Log1p", call("Log1p", x=None), np.float32([4e36, 1e38, 3.4e38]))
