"""Ops that can be fused, and random trees of them, for `fusion.py`."""
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
random = np.random.default_rng(7)

# The arguments of each op, and where its inputs are.
ONE = "Relu Relu6 Elu Selu Softplus Softsign".split()
ONE_X = ("Sigmoid Tanh Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Erf Erfc Floor Ceil Round Rint Reciprocal Inv Neg Abs Square "
         "Sign").split()
TWO = ("Div RealDiv FloorDiv FloorMod DivNoNan MulNoNan Pow Xlogy Xdivy AddV2 Add Sub Mul Maximum Minimum "
       "SquaredDifference").split()
FEATURES = "ReluGrad Relu6Grad SoftplusGrad SoftsignGrad".split()
OUTPUTS = "EluGrad SeluGrad".split()
COMPARISONS = "Less LessEqual Greater GreaterEqual Equal NotEqual".split()
SLOPES = "SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad".split()


def functions():
    """Each op that can be fused: its name, how many inputs it has, and a function."""
    for op in ONE:
        yield op, 1, lambda x, op=op: getattr(raw, op)(features=x)
    for op in ONE_X:
        yield op, 1, lambda x, op=op: getattr(raw, op)(x=x)
    for op in TWO:
        yield op, 2, lambda x, y, op=op: getattr(raw, op)(x=x, y=y)
    yield "Atan2", 2, lambda x, y: raw.Atan2(y=x, x=y)
    for op in FEATURES:
        yield op, 2, lambda x, y, op=op: getattr(raw, op)(gradients=x, features=y)
    for op in OUTPUTS:
        yield op, 2, lambda x, y, op=op: getattr(raw, op)(gradients=x, outputs=y)
    for op in SLOPES:
        yield op, 2, lambda x, y, op=op: getattr(raw, op)(y=x, dy=y)
    for alpha in (0.3, 1.5):
        yield "LeakyRelu", 1, lambda x, alpha=alpha: raw.LeakyRelu(features=x, alpha=alpha)
        yield "LeakyReluGrad", 2, lambda x, y, alpha=alpha: raw.LeakyReluGrad(gradients=x, features=y, alpha=alpha)


def cast(x, dtype):
    return x if x.dtype == dtype else raw.Cast(x=x, DstT=dtype)


# Those in whose results errors do not grow.
CALM = dict(one="Sigmoid Tanh Relu Relu6 Elu Softsign Erf Sin Neg Abs".split(), two="AddV2 Sub Mul Maximum Minimum".split())


def tree(depth, leaves, types, dtype):
    """A random function of a list of tensors, with steps of these types and results of one of them."""
    if depth == 0 or random.random() < 0.15:
        at = int(random.integers(leaves))
        return lambda inputs: cast(inputs[at], dtype)
    kind = random.random()
    if kind < 0.1:
        inner = tree(depth - 1, leaves, types, types[int(random.integers(len(types)))])
        return lambda inputs: cast(inner(inputs), dtype)
    if kind < 0.2:
        # A minimum or a maximum, or one of two that are equal.
        op = str(random.choice(COMPARISONS))
        first, second = (tree(depth - 1, leaves, types, dtype) for _ in range(2))

        def choice(inputs):
            x, y = first(inputs), second(inputs)
            return raw.SelectV2(condition=getattr(raw, op)(x=x, y=y), t=x, e=y)
        return choice
    if kind < 0.4:
        op = str(random.choice(CALM["one"]))
        key = "features" if op in ONE else "x"
        inner = tree(depth - 1, leaves, types, dtype)
        return lambda inputs: getattr(raw, op)(**{key: inner(inputs)})
    op = str(random.choice(CALM["two"]))
    first, second = (tree(depth - 1, leaves, types, dtype) for _ in range(2))
    return lambda inputs: getattr(raw, op)(x=first(inputs), y=second(inputs))
