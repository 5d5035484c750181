"""Graphs on the device of the type TF_PLUGIN_DEVICE_TYPE whose elementwise ops are fused; steps, one an argument, in their order.

    ops              each op that can be fused, in a chain, computes what it computes alone, in all types
    ops=sample       the same for every fourth op, each in one type
    trees=COUNT      so do random trees of ops of random shapes, and they have the CPU's results
    shapes[=sample]  scalars, tensors without elements, unknown shapes and many axes; those that do not fit raise an error
    users            what is used elsewhere is computed once, whatever uses it
    controls         what waits, or is waited for, keeps its order
    functions[=sample]  gradients, branches and loops have the CPU's results
    session          what a session fetches or feeds in the middle of a tree has its value, and references are read in time
    common           what depends on equal reads of a variable is computed once, unless a write is between them
    changes          variables that change by others share launches, and have the CPU's values
    updates          so do those that optimizers of Keras train
    conversions      so do those of a model in mixed precision, and their gradients
    chains           many trees in a row that wait for each other
    exports          a graph that is converted has no op of the plugin
    off              nothing is fused

RUST_GPU_COUNTERS is the file of the counters. Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf

from fusion_compare import CPU, DEVICE, FUSED, MULTI_TENSOR, TOLERANCE, as_written, check, compare, counted, launches, near, numbers, of, on, raw, same, traced
from fusion_ops import COMPARISONS, cast, functions, random, tree


def ops(sample):
    as_written()
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -1.5, 7.0, 100.0, np.inf, -np.inf, np.nan]
    for number, dtype in enumerate(TOLERANCE):
        x, y = np.meshgrid(special, special)
        inputs = [tf.constant(np.concatenate([part.ravel(), random.uniform(-4, 4, 300)]), dtype) for part in (x, y)]
        for at, (op, count, function) in enumerate(functions()):
            if sample and at % (4 * len(TOLERANCE)) != 4 * number:
                continue
            # Twice, in the middle of a tree and at its end.
            def chain(x, y, count=count, function=function):
                z = raw.Sub(x=raw.Mul(x=x, y=y), y=x)
                z = function(z) if count == 1 else function(z, x)
                return function(z) if count == 1 else function(y, z)
            # What an op computes is compared with the CPU by `refdevice_sweep.py`.
            compare(chain, inputs, "%s of %s" % (op, dtype.name), {FUSED: 1}, cpu=False)
    casts()
    choices()


def choices():
    """Comparisons, logical ops and `SelectV2`; sums and biases."""
    special = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]
    for dtype in TOLERANCE:
        x, y = (tf.constant(part.reshape(-1, 4), dtype) for part in np.meshgrid(special, special))
        for op in COMPARISONS:
            compare_ = lambda x, y, op=op: getattr(raw, op)(x=x, y=y)
            for what, function in [
                ("middle", lambda x, y: raw.SelectV2(condition=compare_(raw.Neg(x=x), y), t=x, e=raw.Mul(x=x, y=y))),
                ("end", lambda x, y: compare_(raw.Neg(x=x), y)),
                ("number", lambda x, y: raw.Mul(x=cast(compare_(x, y), x.dtype), y=x)),
                ("row", lambda x, y: raw.SelectV2(condition=compare_(raw.Neg(x=x), y[:1]), t=y[:1], e=raw.Neg(x=x[:, :1])))]:
                expected = None if what == "row" else {FUSED: 1}
                compare(function, [x, y], "%s of %s, %s" % (op, dtype.name, what), expected, cpu=False)
        flags = lambda x, y: raw.LogicalNot(x=raw.LogicalOr(
            x=raw.LogicalAnd(x=raw.IsFinite(x=x), y=raw.Greater(x=y, y=x)),
            y=raw.Equal(x=raw.IsNan(x=x), y=raw.IsInf(x=y))))
        compare(flags, [x, y], "flags of %s" % dtype.name, {FUSED: 1}, cpu=False)
        given = lambda x, y, flag: raw.SelectV2(condition=raw.LogicalNot(x=flag), t=cast(cast(x, tf.bool), x.dtype), e=y)
        compare(given, [x, y, tf.constant([True, False, False, True])], "given flags of %s" % dtype.name, {FUSED: 1}, cpu=False)
        x, y, z = (numbers((2, 3, 5), dtype) for _ in range(3))
        two = lambda x, y: raw.AddN(inputs=[raw.Neg(x=x), y])
        compare(two, [x, y], "a sum of two of %s" % dtype.name, {FUSED: 1})
        three = lambda x, y, z: raw.Neg(x=raw.AddN(inputs=[x, y, z]))
        compare(three, [x, y, z], "a sum of three of %s" % dtype.name, {FUSED: 1} if dtype == tf.float32 else {"AddN": 1, "Neg": 1})
        biased = lambda x, bias: raw.Relu(features=raw.BiasAdd(value=x, bias=bias))
        compare(biased, [x, numbers((5,), dtype)], "a bias of %s" % dtype.name, {FUSED: 1})
    # They would broadcast.
    for what, function, shapes_ in [("as many biases", biased, [(3, 5), (1,)]), ("as many biases", biased, [(3, 1), (5,)]),
                                    ("at least 2D", biased, [(5,), (5,)]), ("same size and shape", two, [(3, 5), (5,)])]:
        try:
            traced(function, [tf.TensorSpec(None, dtype)] * 2)(*on(DEVICE, [numbers(shape, dtype) for shape in shapes_]))
        except tf.errors.InvalidArgumentError as error:
            check(what in str(error), "the error is %s" % error)
        else:
            sys.exit("%r fit" % (shapes_,))


def casts():
    """Each input and each step has its own type."""
    values = [0.0, -0.0, 1.0, -1.5, 2.5, 100.0, 7e4, 1e-6, 1.0009765625, np.inf, -np.inf, np.nan]
    whole = [0, 1, -1, 2, 100, -128, 2049, 257, 2 ** 24 + 1, -2 ** 31 + 5]
    for source in list(TOLERANCE) + [tf.bool, tf.int8, tf.uint8, tf.int32, tf.int64]:
        given = values + list(random.uniform(-4, 4, 300)) if source.is_floating else np.int64(whole * 30)
        x = of(tf.constant(given), source)
        for target in TOLERANCE:
            y = numbers([len(given)], target)
            first = lambda x, y: raw.Mul(x=cast(raw.Neg(x=x), y.dtype) if x.dtype.is_floating else cast(x, y.dtype), y=y)
            compare(first, [x, y], "from %s to %s" % (source.name, target.name), {FUSED: 1}, cpu=False)
            if source.is_floating and source != target:
                middle = lambda x, y: cast(raw.Tanh(x=cast(raw.Mul(x=x, y=x), y.dtype)), x.dtype)
                compare(middle, [x, y], "from %s to %s and back" % (source.name, target.name), {FUSED: 1}, cpu=False)


def trees(count):
    fused = 0
    for turn in range(int(count)):
        # Eight neighbours are two times four, which are computed at once.
        width = 5 + 3 * (turn // 4 % 2)
        shapes = [(), (1,), (width,), (3, 1), (3, width), (2, 3, width), (2, 1, 1), (1, width), (2, 3, 1)]
        dtype = list(TOLERANCE)[turn % 3]
        # Half of them as TensorFlow rewrites them, which the device does not compute alike op by op.
        exact = turn % 2 == 0
        as_written(exact)
        leaves = int(random.integers(1, 8))
        chosen = [shapes[int(random.integers(len(shapes)))] for _ in range(leaves)]
        # Half of them have inputs and steps of all types.
        types = list(TOLERANCE) if turn % 4 < 2 else [dtype]
        inputs = [numbers(shape, types[at % len(types)]) for at, shape in enumerate(chosen)]
        function = tree(int(random.integers(2, 6)), leaves, types, dtype)
        whole = lambda *inputs: function(inputs)
        signature = [tf.TensorSpec(None, x.dtype) for x in inputs] if turn % 5 == 0 else None
        what = "tree %d of %s, shapes %r" % (turn, dtype.name, chosen)
        before = counted()[FUSED]
        compare(whole, inputs, what, signature=signature, exact=exact, limit=max(TOLERANCE[of] for of in types))
        fused += counted()[FUSED] > before
    print("%d of %s trees are fused" % (fused, count))
    check(fused > int(count) / 2, "only %d of %s trees are fused" % (fused, count))


def shapes(sample):
    as_written()
    chain = lambda x, y, z: raw.Tanh(x=raw.Mul(x=raw.AddV2(x=x, y=y), y=z))
    for number, dtype in enumerate(TOLERANCE):
        all_of_them = [((), (), ()), ((1,), (), (1, 1)), ((0,), (1,), ()), ((2, 0), (2, 1), (0,)), ((3, 4), (4,), (3, 1)), ((4, 1), (1, 5), (4, 5)),
                        ((7,), (7,), (7,)), ((5,), (1,), (2, 3, 5)), ((1000, 300), (300,), (1000, 1))]
        for x, y, z in all_of_them[number::len(TOLERANCE)] if sample else all_of_them:
            inputs = [numbers(shape, dtype) for shape in (x, y, z)]
            is_empty = 0 in x + y + z
            expected = {} if is_empty else {FUSED: 1}
            compare(chain, inputs, "shapes %r of %s" % ((x, y, z), dtype.name), expected)
            unknown = [tf.TensorSpec(None, dtype)] * 3
            compare(chain, inputs, "unknown shapes %r of %s" % ((x, y, z), dtype.name), expected, signature=unknown)
    # More axes than can be pushed with six inputs, so each op is launched. The CPU does not broadcast so many.
    inputs = [numbers(shape, tf.float32) for shape in
              [(2, 1, 2, 1, 2, 1), (1, 3, 1, 3, 1, 3), (2, 3, 1, 1, 2, 3), (3,), (2, 1, 1, 1, 1, 1), (1, 1, 2, 3, 1, 1)]]
    six = lambda a, b, c, d, e, f: raw.Mul(x=raw.Sub(x=raw.AddV2(x=a, y=b), y=raw.Mul(x=c, y=d)), y=raw.Maximum(x=e, y=f))
    compare(six, inputs, "many axes", {FUSED: 5}, cpu=False)
    chosen = lambda a, b, c, d, e, f: raw.SelectV2(condition=raw.Less(x=raw.AddV2(x=a, y=b), y=c), t=cast(cast(raw.Mul(x=d, y=e), tf.float16), d.dtype), e=f)
    compare(chosen, inputs, "a choice along many axes", {FUSED: 6}, cpu=False)
    mixed = [of(x, dtype) for x, dtype in zip(inputs, [tf.float16, tf.bfloat16] + [tf.float32] * 4)]
    less = lambda a, b, c, d, e, f: raw.SelectV2(
        condition=raw.Less(x=cast(a, c.dtype), y=cast(b, c.dtype)), t=raw.Mul(x=c, y=raw.AddV2(x=d, y=raw.Sub(x=e, y=f))), e=c)
    compare(less, mixed, "types along many axes", cpu=False)
    # The seventh input is one too many.
    seven = lambda *inputs: raw.AddV2(x=raw.Tanh(x=six(*inputs[:6])), y=inputs[6])
    inputs = [numbers((4,), tf.float32) for _ in range(7)]
    compare(seven, inputs, "seven inputs", {FUSED: 1, "Mul": 1})
    # A chain of 20 ops is three launches.
    def long(x):
        for _ in range(10):
            x = raw.Tanh(x=raw.Neg(x=x))
        return x
    compare(long, [numbers((9,), tf.float32)], "20 ops", {FUSED: 3})
    for x, y, z in [((2,), (3,), ()), ((2, 3), (2, 1), (4, 1)), ((0,), (2,), (1,))]:
        function = traced(chain, [tf.TensorSpec(None, tf.float32)] * 3)
        try:
            function(*on(DEVICE, [numbers(shape, tf.float32) for shape in (x, y, z)]))
        except tf.errors.InvalidArgumentError as error:
            check("Incompatible shapes: " in str(error) and "node Tanh" in str(error), "the error is %s" % error)
        else:
            sys.exit("%r fit" % ((x, y, z),))


def users(_):
    as_written()
    x, y = numbers((3, 5), tf.float32), numbers((5,), tf.float32)
    # Both are results; the sum is one of them too, so the product takes it from there.
    compare(lambda x, y: (raw.AddV2(x=x, y=y), raw.Tanh(x=raw.Mul(x=raw.AddV2(x=x, y=y), y=y))), [x, y], "two sums")

    def intermediate(x, y):
        z = raw.AddV2(x=x, y=y)
        return z, raw.Tanh(x=raw.Mul(x=z, y=y))
    compare(intermediate, [x, y], "a result in the middle", {"AddV2": 1, FUSED: 1})

    def twice(x, y):
        z = raw.Exp(x=x)
        return raw.AddV2(x=raw.Mul(x=z, y=z), y=raw.Sub(x=y, y=z))
    compare(twice, [x, y], "several uses within a tree", {FUSED: 1})
    compare(lambda x, y: raw.Mul(x=raw.AddV2(x=x, y=x), y=raw.AddV2(x=x, y=x)), [x, y], "an input several times")

    def two_trees(x, y):
        z = raw.Exp(x=raw.Neg(x=x))
        return raw.Tanh(x=raw.Mul(x=z, y=y)), raw.Sin(x=raw.Sub(x=z, y=y))
    compare(two_trees, [x, y], "two trees on a third", {FUSED: 3})

    def outside(x, y):
        z = raw.Exp(x=x)
        total = tf.reduce_sum(z)
        return raw.Mul(x=raw.Neg(x=z), y=total)
    compare(outside, [x, y], "a use through another op", {"Exp": 1, "Sum": 1, FUSED: 1})

    def named(x, y):
        with tf.name_scope("odd/names.of-ops_1"):
            z = tf.add(x, y, name="x")
            return tf.tanh(tf.multiply(z, y, name="x"), name="x_1")
    compare(named, [x, y], "odd names", {FUSED: 1})

    # Memory of an input is used again, and not while it is still needed.
    def again(x, y):
        z = tf.matmul(x, tf.transpose(x))
        first = raw.Tanh(x=raw.Mul(x=z, y=z))
        w = tf.matmul(first, first)
        return first, raw.Sub(x=raw.Neg(x=w), y=w[:1])
    compare(again, [x, y], "memory that is used again")


def controls(_):
    for turn in range(3):
        with tf.device(DEVICE):
            found = tf.Variable(tf.constant([1.0, 2.0, 3.0]))
        with tf.device(CPU):
            expected = tf.Variable(tf.constant([1.0, 2.0, 3.0]))

        def step(variable, x):
            before = tf.tanh(variable.read_value() * x)
            variable.assign(tf.exp(-variable) + x)
            middle = variable.read_value()
            with tf.control_dependencies([before]):
                waits = tf.negative(middle + x)
            result = tf.sin(waits * x)
            variable.assign_sub(tf.square(result - before) * x)
            # A branch that is not taken leaves it alone.
            if x[0] > 1.0:
                variable.assign(tf.abs(tf.negative(variable * 0.5)))
            return before, middle, result, variable.read_value()

        for value in (0.5, 1.5, 0.25):
            x = tf.constant([value, -value, 0.7])
            ran = []
            for device, variable in ((DEVICE, found), (CPU, expected)):
                with tf.device(device):
                    function = tf.function(lambda x, variable=variable: step(variable, x))
                    ran.append([y.numpy() for y in function(x)] + [variable.numpy()])
            for a, b in zip(*ran):
                check(near(a, b, TOLERANCE[tf.float32]), "turn %d: %r and on the CPU %r" % (turn, a, b))


def functions_(sample):
    before = counted()[FUSED]

    @tf.function
    def inner(x, y):
        return tf.tanh(x * y) - x

    def gradient(x, y):
        with tf.GradientTape() as tape:
            tape.watch((x, y))
            z = tf.reduce_sum(tf.sigmoid(inner(x, y)) * tf.nn.elu(x - y))
        return tape.gradient(z, (x, y))

    def branch(x, y):
        if tf.reduce_sum(x) > 0.0:
            return tf.exp(-x) + y
        return tf.sin(tf.abs(y)) * x

    def loop(x, y):
        for at in tf.range(4):
            x = tf.tanh(x * y) + tf.cast(at, x.dtype)
            if at > 1:
                y = inner(y, x[0])
        return x, y

    def mapped(x, y):
        return tf.map_fn(lambda row: tf.tanh(row * 2.0) - y, x)

    # Gradients are sums, which the CPU adds up in another order, and in 16 bits with less precision.
    for dtype, limit in ((tf.float32, None), (tf.float16, 3e-2), (tf.bfloat16, 0.2)):
        for function in (gradient, branch, loop, mapped) if dtype == tf.float32 or not sample else (gradient,):
            for sign in (1.0, -1.0):
                inputs = [numbers((3, 5), dtype, 0.1, 1.0) * tf.cast(sign, dtype), numbers((5,), dtype)]
                compare(function, inputs, "%s of %s" % (function.__name__, dtype.name), exact=False, limit=limit)
    check(counted()[FUSED] > before, "nothing is fused")


def session(_):
    with tf.Graph().as_default() as graph:
        with tf.device(DEVICE):
            x = tf.compat.v1.placeholder(tf.float32, [3])
            y = tf.exp(-x, name="in/the.middle")
            z = tf.tanh(y * x, name="end")
            w = z - x
        with tf.compat.v1.Session(graph=graph) as running:
            value = np.array([0.5, -1.0, 2.0], "float32")
            middle = np.exp(-value)
            last = lambda y: np.tanh(y * value) - value
            # With the middle fetched, two trees.
            for fetched, fed, expected, count in [(w, {}, last(middle), 1), ([w, y], {}, [last(middle), middle], 2),
                                                  (w, {y: [1.0, 2.0, 3.0]}, last(np.array([1, 2, 3], "float32")), 1)]:
                before = counted()[FUSED]
                found = running.run(fetched, {x: value, **fed})
                ran = counted()[FUSED] - before
                check(ran == count, "%r took %d launches of trees and not %d" % (fetched, ran, count))
                check(np.allclose(found, expected, 1e-5), "%r is %r and not %r" % (fetched, found, expected))

    # An unused op runs because a node of a tree waits for it.
    with tf.Graph().as_default() as graph, tf.device(DEVICE):
        x = tf.compat.v1.placeholder(tf.float32, [3])
        log = tf.compat.v1.get_variable("log", initializer=tf.zeros([1]), use_resource=True)
        with tf.control_dependencies([log.assign(tf.ones([1]))]):
            y = tf.negative(x)
        z = tf.tanh(tf.exp(y) * x)
        with tf.compat.v1.Session(graph=graph) as running:
            running.run(log.initializer)
            before = counted()[FUSED]
            running.run(z, {x: value})
            check(counted()[FUSED] == before + 1, "a node that waits is not fused")
            check(running.run(log) == [1.0], "what a node of a tree waits for did not run")

    # A variable that is a reference is read before what waits for the reader changes it.
    with tf.Graph().as_default() as graph, tf.device(DEVICE):
        with tf.device(CPU):
            variable = tf.compat.v1.get_variable("reference", initializer=tf.constant([3.0, 4.0]), use_resource=False)
        read = raw.Mul(x=variable, y=tf.constant([1.0, 1.0]))
        with tf.control_dependencies([read]), tf.device(CPU):
            late = tf.compat.v1.assign(variable, tf.constant([100.0, 100.0]))
        out = raw.Neg(x=raw.AddV2(x=read, y=raw.Mul(x=tf.identity(late), y=tf.constant([0.0, 1.0]))))
        with tf.compat.v1.Session(graph=graph) as running:
            running.run(variable.initializer)
            found = running.run(out)
            check(found.tolist() == [-3.0, -104.0], "a reference is read too late: %r" % found)


def chains(_):
    """Many trees, each of which waits for a node inside the one before it."""
    @tf.function
    def function(x):
        total, before = x, None
        for _ in range(300):
            with tf.device(DEVICE), tf.control_dependencies([] if before is None else [before]):
                before = raw.Neg(x=x)
            with tf.device(DEVICE):
                total = raw.AddV2(x=total, y=raw.Mul(x=before, y=x))
        return total
    x = on(DEVICE, [tf.constant([0.5, 2.0])])[0]
    found = function(x).numpy()
    check(np.allclose(found, [0.5 - 300 * 0.25, 2.0 - 300 * 4.0]), found)


def common(_):
    as_written()
    rates = [numbers((3,), tf.float32) for _ in range(6)]

    def made(device):
        with tf.device(device):
            return tf.Variable(3, dtype=tf.int64), tf.Variable(0.5)

    def power(count):
        return raw.Pow(x=tf.constant(0.9), y=raw.Cast(x=count.read_value() + tf.constant(1, tf.int64), DstT=tf.float32))

    # As an optimizer of Keras for six variables, before the number of its steps changes.
    def optimizer(count, _, xs):
        found = [raw.Mul(x=x, y=power(count)) for x in xs]
        count.assign(count.read_value() + tf.constant(1, tf.int64))
        return found

    def between(count, factor, xs):
        first = power(count) * factor.read_value()
        count.assign(count.read_value() + 2)
        second = power(count) * factor.read_value()
        factor.assign(factor * 3.0)
        return first * xs[0], second * xs[1], power(count) * factor.read_value()

    def branch(count, factor, xs):
        first = power(count) * factor.read_value()
        if xs[0][0] > 0.0:
            second = power(count)
            factor.assign(factor + 1.0)
            count.assign(count - 1)
            third = power(count) + second
        else:
            third = power(count) * 2.0
        return first, third, power(count) * factor.read_value()

    def call(count, factor, xs):
        @tf.function
        def inner():
            count.assign_add(1)
            factor.assign(factor + 1.0)

        first = power(count)
        inner()
        return first, power(count) * factor.read_value() * xs[0]

    def loop(count, factor, xs):
        for at in tf.range(3):
            xs = [x * power(count) * power(count) * factor.read_value() for x in xs]
            count.assign(count + tf.cast(at, tf.int64))
        return xs

    for function in (optimizer, between, branch, call, loop):
        ran = {}
        for device in (DEVICE, CPU):
            count, factor = made(device)
            with tf.device(device):
                xs = on(device, rates)
                step = tf.function(lambda xs, count=count, factor=factor: function(count, factor, xs))
                all_ = [tf.nest.flatten(step([x * sign for x in xs])) for sign in (1.0, -1.0, 1.0)]
                results = [y.numpy() for y in tf.nest.flatten(all_)] + [count.numpy(), factor.numpy()]
            ran[device] = results
        for at, (a, b) in enumerate(zip(ran[DEVICE], ran[CPU])):
            check(near(a, b, TOLERANCE[tf.float32]), "%s, value %d: %r and on the CPU %r" % (function.__name__, at, a, b))
    count, _ = made(DEVICE)
    _, ran = launches(traced(lambda *xs: optimizer(count, None, xs)), on(DEVICE, rates))
    expected = {"AddV2": 1, FUSED: 1, "Mul": 6}
    check(ran == expected, "an optimizer takes the launches %r and not %r" % (dict(ran), expected))


def changes(_):
    as_written()
    shapes = [((), ()), ((5,), (5,)), ((8,), (8,)), ((0,), (0,)), ((3, 4), (3, 4)), ((1000, 3), (1000, 3)), ((2, 3), (3,)), ((7, 7), (7, 7)), ((64,), (64,))]
    for dtype in TOLERANCE:
        values = [[numbers(shape, dtype) for shape in pair] for pair in shapes]

        def step(variables, moments, gradients):
            for variable, moment, gradient in zip(variables, moments, gradients):
                moment.assign(moment * 0.5 - gradient * 0.25)
                variable.assign(variable.read_value() + moment.read_value())
            # The first changes again.
            moments[1].assign(moments[1] * 0.25)
            variables[1].assign(variables[1].read_value() + moments[1].read_value())

        ran = {}
        for device in (DEVICE, CPU):
            with tf.device(device):
                variables, moments = [[tf.Variable(pair[at]) for pair in values] for at in range(2)]
                gradients = on(device, [pair[1] for pair in values])
                plain = tf.function(lambda gradients: step(variables, moments, gradients))
                branch = tf.function(lambda gradients, is_finite: tf.cond(
                    is_finite, lambda: step(variables, moments, gradients) or 0, lambda: 0))
                before = counted()
                plain(gradients)
                for is_finite in (True, False, True):
                    branch(gradients, tf.constant(is_finite))
                ran[device] = [one.numpy() for one in variables + moments]
                counts = counted() - before
            if device == DEVICE:
                # There are more than six for each shape op by op.
                check(0 < counts[MULTI_TENSOR] < 5 * len(shapes), "the changes of %s took the launches %r" % (dtype.name, dict(counts)))
        for at, (a, b) in enumerate(zip(ran[DEVICE], ran[CPU])):
            check(near(a, b, TOLERANCE[dtype]), "variable %d of %s: %r and on the CPU %r" % (at, dtype.name, a, b))


def updates(_):
    """Optimizers of Keras on variables of many shapes. In some of them a cast or a choice is part of the change."""
    import keras
    sizes = [(), (1,), (1, 1), (5,), (8,), (3, 4), (7, 7), (64,), (33, 3), (2, 5), (16,)]
    values = [random.uniform(-1.0, 1.0, size).astype("float32") for size in sizes]
    made = {
        "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9), "Nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        "clipped": lambda: keras.optimizers.SGD(0.1, momentum=0.9, clipvalue=0.2), "Adam": lambda: keras.optimizers.Adam(0.1), "AdamW": lambda: keras.optimizers.AdamW(0.1),
        "AMSGrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True), "RMSprop": lambda: keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
        "Adagrad": lambda: keras.optimizers.Adagrad(0.1), "Adamax": lambda: keras.optimizers.Adamax(0.1), "Lion": lambda: keras.optimizers.Lion(0.1),
        "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=8.0)}
    for name, optimizer_of in made.items():
        ran = {}
        for device in (DEVICE, CPU):
            with tf.device(device):
                variables = [keras.Variable(value) for value in values]
                optimizer = optimizer_of()
                optimizer.build(variables)

                @tf.function(jit_compile=False)
                def step(targets):
                    with tf.GradientTape() as tape:
                        tape.watch([variable.value for variable in variables])
                        error = sum(tf.reduce_sum((variable.value - target) ** 2) for variable, target in zip(variables, targets))
                        scaled = optimizer.scale_loss(error)
                    optimizer.apply(tape.gradient(scaled, [variable.value for variable in variables]))
                before = counted()
                for _ in range(3):
                    step([tf.constant(value[::-1] * 0.5 if value.ndim else value) for value in values])
                ran[device] = [variable.numpy() for variable in variables]
                counts = counted() - before
            if device == DEVICE:
                check(counts[MULTI_TENSOR] > 0, "%s took the launches %r" % (name, dict(counts)))
        for size, found, expected in zip(sizes, ran[DEVICE], ran[CPU]):
            check(near(found, expected, 1e-4), "%s, %r: %r and on the CPU %r" % (name, size, found, expected))


def conversions(_):
    """Parameters, and their gradients, of a model in mixed precision: some are converted in one launch."""
    import keras
    as_written(False)
    for policy, dtype in (("mixed_float16", "float16"), ("mixed_bfloat16", "bfloat16")):
        keras.mixed_precision.set_global_policy(policy)
        inputs = random.uniform(-1.0, 1.0, (8, 12)).astype("float32")
        ran = []
        for device in (DEVICE, CPU):
            keras.utils.set_random_seed(3)
            with tf.device(device):
                model = keras.Sequential([keras.Input((12,)), *(keras.layers.Dense(12, activation="tanh") for _ in range(5))])
                optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0)
                optimizer.build(model.trainable_variables)

                @tf.function(jit_compile=False)
                def step(x):
                    with tf.GradientTape() as tape:
                        error = tf.reduce_mean(tf.cast(model(x), "float32") ** 2)
                        scaled = optimizer.scale_loss(error)
                    variables = [variable.value for variable in model.trainable_variables]
                    optimizer.apply(tape.gradient(scaled, variables))
                    return error
                step(tf.constant(inputs))
                before = counted()
                losses = [step(tf.constant(inputs)).numpy() for _ in range(3)]
                counts = counted() - before
                ran.append(losses + [variable.numpy() for variable in model.trainable_variables])
            if device == DEVICE:
                # Not one for each of the ten parameters.
                check(counts["Cast"] <= 6, "%s took the launches %r" % (policy, dict(counts)))
        limit = 5e-3 if dtype == "float16" else 4e-2
        for found, expected in zip(*ran):
            check(near(found, expected, limit), "%s: %r and on the CPU %r" % (policy, found, expected))
    keras.mixed_precision.set_global_policy("float32")


def exports(_):
    """A graph that is rewritten and not run has TensorFlow's ops alone."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    variable = tf.Variable([1.0, 2.0, 3.0])
    function = traced(lambda x: raw.Tanh(x=raw.Mul(x=raw.AddV2(x=x, y=variable), y=x)), [tf.TensorSpec([3], tf.float32)])
    frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=False)
    found = {node.op for node in frozen.graph.as_graph_def().node}
    check("Tanh" in found and FUSED not in found, "the graph that is exported has %r" % found)


def off(_):
    as_written()
    inputs = [numbers((3, 5), tf.float32), numbers((5,), tf.float32)]
    compare(lambda x, y: raw.Tanh(x=raw.AddV2(x=x, y=y)), inputs, "a chain", {"AddV2": 1, "Tanh": 1})


STEPS = {"ops": ops, "trees": trees, "shapes": shapes, "users": users, "controls": controls, "functions": functions_, "session": session, "common": common, "changes": changes, "updates": updates, "conversions": conversions, "chains": chains,
         "exports": exports, "off": off}

tf.get_logger().setLevel("ERROR")
tf.config.set_soft_device_placement(False)
for step in sys.argv[1:]:
    verb, _, value = step.partition("=")
    STEPS[verb](value)
    print("ok " + step, flush=True)
