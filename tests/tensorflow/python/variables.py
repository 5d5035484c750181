"""Ops on variables, on the device TF_PLUGIN_DEVICE_TYPE as on the CPU; one step an argument, in their order.

    methods         all methods of a variable, of several types, in one function
    optimizers      dense and sparse optimizers that change variables in place
    random          generators of random numbers
    order           several reads and changes of a variable in order, in loops and branches
    eager           they work, or the error says what to write

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import inspect
import os

import numpy as np
import tensorflow as tf

from steps import check, take

DEVICE = "/device:%s:0" % os.environ.get("TF_PLUGIN_DEVICE_TYPE", "RUST_REF")
CPU = "/device:CPU:0"
RELEASE = tuple(map(int, tf.__version__.split(".")[:2]))
raw = tf.raw_ops


def compare(name, build, tolerance=1e-5):
    """Compares what `build` returns on both devices: arrays by their names."""
    with tf.device(CPU):
        expected = build()
    with tf.device(DEVICE):
        found = build()
    check(expected.keys() == found.keys() and expected, "%s: %s" % (name, found.keys()))
    for key, value in expected.items():
        one, other = np.asarray(value), np.asarray(found[key])
        check(one.dtype == other.dtype and one.shape == other.shape, "%s %s: %r, not %r" % (name, key, other, one))
        if one.dtype.kind in "fc" or one.dtype.name == "bfloat16":
            wide = [array.astype("complex128") for array in (one, other)]
            same = np.allclose(*wide, rtol=tolerance, atol=tolerance)
        else:
            same = np.array_equal(one, other)
        check(same, "%s %s: %r on the device, %r on the CPU" % (name, key, other, one))


def slices(values, indices):
    return tf.IndexedSlices(tf.convert_to_tensor(values), tf.convert_to_tensor(indices))


def method_cases(dtype, index):
    """What is done with a variable of four rows, by name."""
    rows = tf.cast([[2, 3, 4], [5, 6, 7], [1, 2, 2]], dtype)
    at, places = tf.constant([1, 3, 1], index), tf.constant([[0, 1], [3, 2], [2, 0]], index)
    cases = {
        "gather": lambda v: tf.gather(v, at),
        "gather of columns": lambda v: tf.gather(v, at % 3, axis=1),
        "gather of batches": lambda v: tf.gather(v, tf.constant([[0, 1], [1, 1], [2, 0], [0, 0]], index), batch_dims=1),
        "gather_nd": lambda v: tf.gather_nd(v, places),
        "embedding_lookup": lambda v: tf.nn.embedding_lookup(v, at),
        "scatter_update": lambda v: v.scatter_update(slices(rows[:2], at[:2])),
        "scatter_update by a matrix": lambda v: raw.ResourceScatterUpdate(
            resource=v.handle, indices=tf.constant([[1], [2]], index), updates=rows[:2, None]
        ),
        "scatter_nd_update": lambda v: v.scatter_nd_update(places, rows[0]),
        "a slice": lambda v: v[1:3, 0].assign(rows[0, :2]),
        "every second column": lambda v: v[..., ::2].assign(tf.ones([4, 2], dtype)),
    }
    if dtype == "bool":
        return cases
    named = ["add", "sub", "mul", "div"] + ["min", "max"] * (dtype != "complex64")
    for name in named:
        cases["scatter_" + name] = lambda v, name=name: getattr(v, "scatter_" + name)(slices(rows, at))
    for name in ["add", "sub"] + named[4:]:
        cases["scatter_nd_" + name] = lambda v, name=name: getattr(v, "scatter_nd_" + name)(places, rows[0])
    cases["scatter_add of a scalar"] = lambda v: raw.ResourceScatterAdd(
        resource=v.handle, indices=at, updates=tf.cast(2, dtype)
    )
    cases["scatter_mul of nothing"] = lambda v: v.scatter_mul(slices(rows[:0], at[:0]))
    cases["assign_add"] = lambda v: v.assign_add(tf.ones([4, 3], dtype))
    cases["assign_sub"] = lambda v: v.assign_sub(tf.ones([4, 3], dtype))
    return cases


def methods():
    types = ["float32", "int64"], ["float16", "int32"], ["bool", "int32"], ["complex64", "int64"], ["uint8", "int32"]
    for dtype, index in types:
        def build(dtype=dtype, index=index):
            cases = method_cases(dtype, index)
            variables = {name: tf.Variable(tf.cast(np.arange(12).reshape(4, 3), dtype)) for name in cases}
            before = {name: variable.read_value() for name, variable in variables.items()}

            @tf.function(autograph=False)
            def function():
                returned = {}
                for name, case in cases.items():
                    result = case(variables[name])
                    returned[name] = result if isinstance(result, tf.Tensor) else variables[name].read_value()
                return returned

            returned = {name + " returned": value for name, value in function().items()}
            held = {name + " held": value for name, value in before.items()}
            holds = {name + " holds": variable.numpy() for name, variable in variables.items()}
            return {**returned, **held, **holds}

        compare("%s by %s" % (dtype, index), build, 1e-5 if dtype != "float16" else 5e-3)


SCALARS = dict(
    alpha=0.1, lr=0.1, momentum=0.9, beta1_power=0.9, beta2_power=0.99, beta1=0.9, beta2=0.99, epsilon=1e-3, rho=0.9,
    l1=0.01, l2=0.01, lr_power=-0.5, l2_shrinkage=0.01, sign_decay=0.9, beta=0.9, logbase=1.0,
)
OPTIMIZERS = [
    "GradientDescent", "Momentum", "Momentum use_nesterov", "KerasMomentum", "KerasMomentum use_nesterov", "Adam",
    "Adam use_nesterov", "AdamWithAmsgrad", "AdaMax", "Adagrad", "AdagradV2", "Adadelta", "RMSProp", "CenteredRMSProp",
    "AddSign", "PowerSign", "Ftrl", "FtrlV2", "ProximalAdagrad", "ProximalGradientDescent", "AdagradDA",
]


def optimizers():
    def build():
        steps, variables = [], {}
        for optimizer in OPTIMIZERS:
            name, *flags = optimizer.split()
            for sparse in ("", "Sparse"):
                op = getattr(raw, "Resource%sApply%s" % (sparse, name), None)
                if op is None:
                    continue
                arguments = dict.fromkeys(flags, True)
                handles = ("var", "accum", "m", "v", "vhat", "ms", "mg", "mom", "linear", "accum_update")
                accumulators = ("gradient_accumulator", "gradient_squared_accumulator")
                for argument in inspect.signature(op).parameters:
                    if argument in handles + accumulators:
                        start = 0.05 + 0.01 * np.arange(12).reshape(4, 3) + 0.01 * len(arguments)
                        variables[optimizer, sparse, argument] = variable = tf.Variable(tf.cast(start, tf.float32))
                        arguments[argument] = variable.handle
                    elif argument in ("grad", "delta"):
                        gradient = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
                        arguments[argument] = gradient[:3] if sparse else gradient
                    elif argument == "indices":
                        # One row changes twice.
                        arguments[argument] = tf.constant([2, 0, 2])
                    elif argument == "global_step":
                        arguments[argument] = tf.constant(3, tf.int64)
                    elif argument in SCALARS:
                        arguments[argument] = tf.constant(SCALARS[argument])
                if name == "AddSign":
                    arguments["alpha"] = tf.constant(1.0)
                steps.append((op, arguments))

        @tf.function(autograph=False)
        def step():
            for op, arguments in steps:
                op(**arguments)

        step()
        step()
        return {" ".join(key): variable.numpy() for key, variable in variables.items()}

    compare("optimizers", build)


def random():
    def build():
        generator = tf.random.Generator.from_seed(7)
        state = tf.Variable(tf.constant([1, 2, 3], tf.int64))
        philox = tf.constant(1, tf.int64)

        @tf.function(autograph=False)
        def draw():
            drawn = dict(normal=generator.normal([5]), uniform=generator.uniform([4], 0, 100, tf.int32))
            drawn["seeds"] = generator.make_seeds(2)
            generator.skip(2**40)
            drawn["full"] = generator.uniform_full_int([3], tf.uint64)
            drawn["old"] = raw.StatefulUniform(resource=state.handle, algorithm=philox, shape=[3])
            raw.RngSkip(resource=state.handle, algorithm=philox, delta=tf.constant(5, tf.int64))
            return drawn

        first, second = draw(), draw()
        drawn = {**{"first " + name: value for name, value in first.items()}, **second}
        return dict(drawn, state=generator.state.numpy(), other=state.numpy())

    compare("random numbers", build)


def order():
    def build():
        v = tf.Variable(np.arange(12.0).reshape(4, 3).astype("float32"))
        other = tf.Variable(tf.fill([3], 0.5))
        one = tf.ones([1, 3])

        @tf.function
        def straight(x):
            before = v.read_value()
            first = tf.gather(v, [0, 1])
            v.scatter_add(slices(first, [1, 0]))
            middle = v.read_value()
            v.scatter_mul(slices([[2.0] * 3, [3.0] * 3], [1, 1]))
            v.assign_add(v)
            v[0, 1:].assign([5.0, 6.0])
            last = tf.gather_nd(v, [[0, 1], [1, 2]])
            v.assign(x)
            v.assign_add(v * 2.0)
            for _ in range(8):
                v.assign_sub(0.1 * tf.square(v))
            return before, first, middle, last, v.read_value()

        @tf.function
        def loops(count):
            total = tf.zeros([3])
            for i in tf.range(count):
                v.scatter_sub(slices(one, [i % 4]))
                total += tf.gather(v, (i + 1) % 4)
                if i % 2 == 0:
                    v.scatter_div(slices(one * 2.0, [i % 4]))
                    other.assign_add(total * 0.01)
                else:
                    v[i % 4, 0].assign(total[0])
                    other.assign_sub(other * total * 0.1)
                v.assign_add(tf.ones([4, 1]) * other)
            return total, other.read_value()

        # Traced for XLA, which the SDK takes back: TensorFlow does not lower what is inside.
        loops_for_xla = loops.python_function
        if "CPU" not in v.device:
            loops_for_xla = tf.function(loops_for_xla, jit_compile=True)

        @tf.function
        def outer(count):
            total, read = loops_for_xla(count)
            return total + 0.0, read

        results = {}
        for turn in range(5):
            x = tf.fill([4, 3], 0.1 * turn)
            values = [*straight(x), *loops(tf.constant(turn + 2)), *outer(tf.constant(turn)), v.numpy(), other.numpy()]
            results.update(("turn %d, value %d" % (turn, index), value) for index, value in enumerate(values))
        return results

    compare("in order", build)


def eager():
    has_variables = not (2, 19) <= RELEASE <= (2, 21)
    with tf.device(DEVICE):
        v = tf.Variable(tf.ones([4, 3]))
        generator = tf.random.Generator.from_seed(7)
    for call, text in [
        (lambda: tf.gather(v, [1]), "`tf.gather(v.read_value(), …)`"),
        (lambda: tf.gather_nd(v, [[1]]), "`tf.gather_nd(v.read_value(), …)`"),
        (lambda: v.scatter_add(slices([[1.0] * 3], [1])), "`v.assign(tf.tensor_scatter_nd_add("),
        (lambda: v.scatter_div(slices([[1.0] * 3], [1])), "with tf.device"),
        (lambda: v[0].assign([1.0] * 3), "`v.assign(tf.tensor_scatter_nd_update("),
        (lambda: generator.normal([2]), "create the generator within `with tf.device"),
    ]:
        try:
            call()
        except tf.errors.UnimplementedError as error:
            why = "the plugin has no kernel" if has_variables else "this TensorFlow does not let plugins"
            for part in (text, "in a `tf.function`", why):
                check(part in str(error), "%r is not in the error: %s" % (part, error))
        else:
            check(has_variables, "TensorFlow lets kernels do this now: %s" % text)
    with tf.device(CPU):
        generator = tf.random.Generator.from_seed(7)
    with tf.device(DEVICE):
        check(np.isfinite(generator.normal([2]).numpy()).all(), "a generator on the CPU works")
        check(tf.gather(v.read_value(), [1]).shape == [1, 3], "the value can be read")


tf.config.set_soft_device_placement(True)
take(methods, optimizers, random, order, eager)
