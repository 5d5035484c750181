# Kernels ------------------------------------------------------------------------------------------------------


def near(what, got, wanted):
    same("type and shape of " + what, (got.dtype, got.shape), (wanted.dtype, wanted.shape))
    tolerance = TOLERANCE.get(got.dtype.name)
    if tolerance is None:
        equal = np.array_equal(got, wanted)
    else:
        kind = np.complex128 if got.dtype.kind == "c" else np.float64
        a, b = got.astype(kind), wanted.astype(kind)
        equal = np.all((np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b))) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not equal:
        raise Wrong(what, shown(wanted.ravel()[:8].tolist()), shown(got.ravel()[:8].tolist()), "the CPU's is the wanted one")


def on_cpu(op, x, y):
    with tf.device(CPU):
        return getattr(tf.raw_ops, op)(x=tf.constant(x), y=tf.constant(y)).numpy()


def compared(place, samples):
    """Each operation that the plugin has a kernel for, in each of the kernel's types, against the CPU."""
    wrong, done = [], 0
    for op, inputs, attributes in samples:
        types, before = place.types(op), done
        for dtype in types:
            arrays = {name: make(dtype) for name, make in inputs.items()}

            def call(device):
                with tf.device(device):
                    given = {name: tf.constant(array) for name, array in arrays.items()}
                    result = getattr(tf.raw_ops, op)(**given, **attributes)
                return [part.numpy() for part in tf.nest.flatten(result)]

            try:
                wanted = call(CPU)
            except (errors.OpError, TypeError, ValueError):
                continue  # Not even the CPU can.
            done += 1
            try:
                found = call(place.device)
                same("the number of outputs of %s" % op, len(found), len(wanted))
                for got, want in zip(found, wanted):
                    near("%s of %s" % (op, dtype), got, want)
            except Wrong as error:
                wrong.append(error.told)
            except errors.OpError as error:
                wrong.append({"what": "%s of %s" % (op, dtype), "wanted": "what the CPU answers",
                              "got": type(error).__name__, "detail": plain(error)})
        if types and done == before:
            # A mistake of these cases, which must not hide a kernel.
            wrong.append({"what": "%s of %s" % (op, " or ".join(types)), "wanted": "an answer of the CPU",
                          "got": "none", "detail": None})
    if wrong:
        raise Several(wrong)
    if not done:
        raise Skip("the plugin has none of these kernels")


def of(*shape, low=-3, high=3, seed=1):
    return lambda dtype: numbers(shape, dtype, low, high, seed)


def always(value, dtype="int32"):
    return lambda _: np.array(value, dtype)


def unary(ops, argument="x", low=-3, high=3):
    return [(op, {argument: of(*shape, low=low, high=high)}, {}) for op in ops for shape in ((), (0,), (17,), (2, 3, 5))]


EQUAL = (((), ()), ((17,), (17,)), ((2, 3), (2, 3)), ((0, 3), (0, 3)))
BROADCAST = (((3,), ()), ((2, 3), (3,)), ((4, 1), (1, 5)), ((0, 3), (3,)))


def binary(ops, low=-3, high=3, shapes=EQUAL):
    return [(op, {"x": of(*a, low=low, high=high), "y": of(*b, low=low, high=high, seed=2)}, {}) for op in ops for a, b in shapes]


@case
def python_kernels_of_one_argument(place):
    compared(place, unary(["Abs", "Neg", "Sign", "Square", "Exp", "Expm1", "Sin", "Cos", "Tan", "Tanh", "Sinh", "Cosh", "Sigmoid", "Erf", "Atan",
                           "Floor", "Ceil", "IsNan", "IsInf", "IsFinite", "ZerosLike", "OnesLike", "Conj", "LogicalNot"])
             + unary(["Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal", "Inv", "Digamma", "Lgamma"], low=0.2))


@case
def python_kernels_of_two_arguments(place):
    compared(place, binary(["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "MulNoNan"])
             + binary(["RealDiv", "Div", "DivNoNan", "Pow", "Xdivy", "Xlogy"], low=0.5))


@case
def python_kernels_that_broadcast(place):
    compared(place, binary(["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Less", "Equal", "LogicalAnd"], shapes=BROADCAST)
             + binary(["RealDiv", "Div", "DivNoNan", "Pow"], low=0.5, shapes=BROADCAST))


@case
def python_kernels_that_compare(place):
    compared(place, binary(["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr"]))


@case
def python_kernels_that_reduce(place):
    samples = []
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any"):
        for shape, axis in (((5,), [0]), ((2, 3), [0]), ((2, 3), [1]), ((2, 3, 4), [0, 2]), ((2, 3), []), ((300, 4), [0])):
            low, high = (0.9, 1.1) if op == "Prod" else (0, 1)
            samples.append((op, {"input": of(*shape, low=low, high=high), "axis": always(axis)}, {}))
    for op in ("ArgMax", "ArgMin"):
        samples.append((op, {"input": of(4, 7), "dimension": always(1)}, {}))
    compared(place, samples)


@case
def python_kernels_of_matrices(place):
    samples = [("MatMul", {"a": of(3, 5), "b": of(5, 7, seed=2)}, {}), ("MatMul", {"a": of(33, 17), "b": of(17, 9, seed=2)}, {}),
               ("MatMul", {"a": of(5, 3), "b": of(7, 5, seed=2)}, {"transpose_a": True, "transpose_b": True}),
               ("BatchMatMul", {"x": of(2, 3, 4), "y": of(2, 4, 5, seed=2)}, {}), ("BatchMatMulV2", {"x": of(1, 3, 4), "y": of(6, 4, 2, seed=2)}, {}),
               ("BiasAdd", {"value": of(4, 5), "bias": of(5, seed=2)}, {}), ("L2Loss", {"t": of(17, low=-1, high=1)}, {})]
    compared(place, samples)


@case
def python_kernels_of_networks(place):
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    compared(place, unary(["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"], "features") + [
        ("ReluGrad", {"gradients": of(3, 5), "features": of(3, 5, seed=2)}, {}),
        ("TanhGrad", {"y": of(3, 5, low=-1, high=1), "dy": of(3, 5, seed=2)}, {}),
        ("SigmoidGrad", {"y": of(3, 5, low=0, high=1), "dy": of(3, 5, seed=2)}, {}),
        ("Softmax", {"logits": of(4, 7)}, {}), ("LogSoftmax", {"logits": of(4, 7)}, {}),
        ("Conv2D", {"input": of(2, 5, 6, 3), "filter": of(3, 2, 3, 4, seed=2)}, {"strides": [1, 1, 1, 1], "padding": "SAME"}),
        ("DepthwiseConv2dNative", {"input": of(2, 6, 5, 3), "filter": of(3, 2, 3, 2, seed=2)}, {"strides": [1, 1, 1, 1], "padding": "VALID"}),
        ("MaxPool", {"input": of(2, 5, 7, 3)}, window), ("AvgPool", {"value": of(2, 5, 7, 3)}, window),
        ("SoftmaxCrossEntropyWithLogits", {"features": of(4, 7), "labels": of(4, 7, low=0, high=1, seed=2)}, {}),
    ])


@case
def python_kernels_that_arrange(place):
    compared(place, [
        ("Transpose", {"x": of(2, 3, 4), "perm": always([2, 0, 1])}, {}), ("Reshape", {"tensor": of(2, 6), "shape": always([3, 4])}, {}),
        ("Fill", {"dims": always([2, 3]), "value": of()}, {}), ("Tile", {"input": of(2, 3), "multiples": always([2, 2])}, {}),
        ("Pad", {"input": of(2, 3), "paddings": always([[1, 0], [0, 2]])}, {}),
        ("PadV2", {"input": of(2, 3), "paddings": always([[1, 0], [0, 2]]), "constant_values": of()}, {}),
        ("Slice", {"input": of(4, 5), "begin": always([1, 0]), "size": always([2, -1])}, {}),
        ("StridedSlice", {"input": of(4, 5), "begin": always([3, 0]), "end": always([0, 4]), "strides": always([-1, 2])}, {}),
        ("GatherV2", {"params": of(4, 5), "indices": always([3, 0, 0]), "axis": always(0)}, {}),
        ("BroadcastTo", {"input": of(3, 1), "shape": always([2, 3, 4])}, {}), ("ExpandDims", {"input": of(3), "axis": always(0)}, {}),
        ("SelectV2", {"condition": always([[True], [False]], bool), "t": of(2, 3), "e": of(2, 3, seed=2)}, {}),
        ("Cumsum", {"x": of(3, 4), "axis": always(1)}, {}),
    ])


@case
def python_shapes_that_do_not_fit(place):
    op = place.has("AddV2", "Add", "Mul", "Sub")
    two, three = place.put(numbers((2,))), place.put(numbers((3,)))

    def bad():
        with place.on():
            getattr(tf.raw_ops, op)(x=two, y=three).numpy()

    fails("%s of shapes that do not fit" % op, errors.InvalidArgumentError, bad)
    with place.on():
        same("%s afterwards" % op, getattr(tf.raw_ops, op)(x=two, y=two).numpy().shape, (2,))


@case
def python_missing_kernel(place):
    if "Betainc" in place.kernels:
        raise Skip("the plugin has a kernel for `Betainc`")
    x = place.put(np.float32([0.5]))

    def missing():
        with place.on():
            tf.raw_ops.Betainc(a=x, b=x, x=x).numpy()

    fails("an operation without a kernel on the device", (errors.InvalidArgumentError, errors.NotFoundError), missing)
    there_and_back(place, numbers((3,)))
