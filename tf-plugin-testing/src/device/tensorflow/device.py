"""Cases for devices. A job says `library`, the plugin, and `type`, the type of its devices."""
import concurrent.futures
import contextlib
import gc

from tensorflow.python.framework import kernels, load_library  # noqa: E402

errors = tf.errors
CPU = "/device:CPU:0"
# Sizes around those by which memory is given away.
SIZES = (0, 1, 3, 17, 255, 256, 257, 4096, 100003)
# Largest difference, relative to the larger of 1 and the magnitude.
TOLERANCE = {"float16": 2e-2, "bfloat16": 0.1, "float32": 1e-4, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-10}


# The attribute that has the type of an op, and a type without it, where they are not `T` and float32.
TYPES = dict.fromkeys(("All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr"), (None, "bool"))
TYPES["GatherV2"] = ("Tparams", "float32")


class Place:
    """The first device of the plugin."""

    def __init__(self, settings):
        self.__dict__.update(settings)
        self.device = "/device:%s:0" % self.type
        self.count = len(tf.config.list_physical_devices(self.type))
        # What has no kernel on the device is an error, rather than the CPU's.
        tf.config.set_soft_device_placement(False)
        self.kernels = {}
        for kernel in kernels.get_all_registered_kernels().kernel:
            if kernel.device_type == self.type:
                self.kernels.setdefault(kernel.op, []).append(kernel)

    @contextlib.contextmanager
    def case(self, name):
        if self.count == 0:
            raise Skip("this machine has no device of the type %s" % self.type)
        np.seterr(all="ignore")
        yield
        gc.collect()

    def on(self):
        return tf.device(self.device)

    def put(self, array):
        with self.on():
            tensor = tf.constant(array)
        holds("the tensor is on the device, not on %s" % tensor.device, tensor.device.endswith(self.device))
        return tensor

    def types(self, op):
        """The types of elements that a kernel has; without a constraint one that will do."""
        attribute, will_do = TYPES.get(op, ("T", "float32"))
        types = []
        for kernel in self.kernels.get(op, []):
            listed = [c.allowed_values.list.type for c in kernel.constraint if c.name == attribute]
            types += [tf.as_dtype(one).name for one in listed[0]] if listed else [will_do]
        # What is in a variant only TensorFlow knows.
        return sorted(set(types) - {"variant", "resource"})

    def has(self, *ops):
        """The first of these that the plugin has for float32."""
        for op in ops:
            if "float32" in self.types(op):
                return op
        raise Skip("the plugin has no kernel of %s" % " or ".join(ops))


def numbers(shape, dtype="float32", low=-3, high=3, seed=1):
    dtype = tf.as_dtype(dtype)
    random = np.random.default_rng(seed)
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_complex:
        return (random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)).astype(dtype.as_numpy_dtype)
    if dtype.is_integer:
        return random.integers(1 if dtype.is_unsigned else low, 9, shape).astype(dtype.as_numpy_dtype)
    return random.uniform(low, high, shape).astype(dtype.as_numpy_dtype)


def there_and_back(place, array):
    back = place.put(array).numpy()
    what = "%s of %s" % (array.dtype, list(array.shape))
    same("type and shape of " + what, (back.dtype, back.shape), (array.dtype, array.shape))
    same("the bytes of " + what, back.tobytes(), array.tobytes())


def copies(place, *types):
    for dtype in types:
        for size in SIZES:
            there_and_back(place, numbers((size,), dtype, seed=size))


# The device ---------------------------------------------------------------------------------------------------


@case
def python_device_is_listed(place):
    names = [device.name for device in tf.config.list_physical_devices(place.type)]
    same("the physical devices", names, ["/physical_device:%s:%d" % (place.type, n) for n in range(place.count)])
    names = [device.name for device in tf.config.list_logical_devices(place.type)]
    same("the logical devices", names, ["/device:%s:%d" % (place.type, n) for n in range(place.count)])


@case
def python_loaded_twice(place):
    load_library.load_pluggable_device_library(place.library)
    there_and_back(place, numbers((1000,)))


@case
def python_memory_info(place):
    name = place.device.replace("/device:", "")
    try:
        before = tf.config.experimental.get_memory_info(name)["current"]
    except (ValueError, errors.OpError) as error:
        raise Skip("the device gives no figures: %s" % plain(error))
    kept = place.put(np.zeros(4 << 20, np.uint8))
    after = tf.config.experimental.get_memory_info(name)["current"]
    if after < before + (4 << 20):
        raise Wrong("bytes in use after 4 MiB more", "at least %d" % (before + (4 << 20)), str(after))
    same("the tensor", kept.shape, (4 << 20,))


# Copies -------------------------------------------------------------------------------------------------------


@case
def python_copies_of_floats(place):
    copies(place, "float16", "bfloat16", "float32", "float64")


@case
def python_copies_of_integers(place):
    copies(place, "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")


@case
def python_copies_of_int32(place):
    # TensorFlow keeps them on the host, as constants too.
    for size in SIZES:
        with place.on():
            tensor = tf.constant(numbers((size,), "int32"))
        same("%d values" % size, tensor.numpy().tobytes(), numbers((size,), "int32").tobytes())


@case
def python_copies_of_bool_and_complex(place):
    copies(place, "bool", "complex64", "complex128")


@case
def python_copies_of_shapes(place):
    for shape in ((), (1,), (0,), (3, 0, 2), (1, 1, 1, 5), (2, 3, 4), (2, 1, 3, 1, 2, 2)):
        there_and_back(place, numbers(shape))


@case
def python_copy_of_16_mib(place):
    there_and_back(place, numbers((4 << 20,)))
    there_and_back(place, np.arange((16 << 20) + 1, dtype=np.uint8))


@case
def python_copies_of_odd_views(place):
    whole = numbers((64, 33))
    for view in (whole[::2], whole[:, 1:], whole.T, whole[5:6, 7:8]):
        same("a view of %s" % list(view.shape), place.put(view).numpy().tobytes(), view.tobytes())


@case
def python_copy_to_the_cpu(place):
    array = numbers((1003,))
    tensor = place.put(array)
    with tf.device(CPU):
        copied = tf.identity(tensor)
    holds("the copy is on the CPU, not on %s" % copied.device, copied.device.endswith(CPU))
    same("the bytes", copied.numpy().tobytes(), array.tobytes())


@case
def python_copy_between_devices(place):
    if place.count < 2:
        raise Skip("there is one device")
    array = numbers((100003,))
    tensor = place.put(array)
    with tf.device("/device:%s:1" % place.type):
        copied = tf.identity(tensor)
    same("the bytes", copied.numpy().tobytes(), array.tobytes())


@case
def python_strings_stay_on_the_host(place):
    with contextlib.suppress(errors.InvalidArgumentError, errors.NotFoundError, errors.UnimplementedError):
        with place.on():
            tensor = tf.constant(["a", "bc", ""])
        same("the strings", tensor.numpy().tolist(), [b"a", b"bc", b""])
    there_and_back(place, numbers((3,)))


# Many ---------------------------------------------------------------------------------------------------------


@case
def python_many_small_tensors(place):
    kept = [place.put(np.float32(number)) for number in range(2000)]
    same("the values", [float(tensor) for tensor in kept], [float(number) for number in range(2000)])


@case
def python_memory_comes_back(place):
    # 64 times 4 MiB, of which few are kept at a time.
    kept = []
    for number in range(64):
        kept.append((number, place.put(np.full(1 << 20, number, np.float32))))
        kept = kept[-3:]
    for number, tensor in kept:
        same("the last of number %d" % number, float(tensor.numpy()[-1]), float(number))


def in_threads(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, range(count)):
            pass


@case
def python_threads_copy(place):
    def work(thread):
        for step in range(20):
            there_and_back(place, numbers((1 + 997 * step,), seed=100 * thread + step))

    in_threads(8, work)


@case
def python_threads_compute(place):
    op = place.has("AddV2", "Add", "Mul", "Sub")

    def work(thread):
        array = numbers((1000,), seed=thread)
        tensor = place.put(array)
        with place.on():
            for _ in range(20):
                result = getattr(tf.raw_ops, op)(x=tensor, y=tensor)
        near("%s in thread %d" % (op, thread), result.numpy(), on_cpu(op, array, array))

    in_threads(8, work)


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
                for got, want in zip(call(place.device), wanted):
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


# Programs -----------------------------------------------------------------------------------------------------


@case
def python_function(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))

    @tf.function
    def program(x, y):
        with place.on():
            for _ in range(5):
                x = op(x=x, y=y)
        return x

    x, y = numbers((1000,)), numbers((1000,), seed=2)
    with tf.device(CPU):
        wanted = tf.constant(x)
        for _ in range(5):
            wanted = op(x=wanted, y=tf.constant(y))
    near("a function, from the host", program(tf.constant(x), tf.constant(y)).numpy(), wanted.numpy())
    near("a function, from the device", program(place.put(x), place.put(y)).numpy(), wanted.numpy())


@case
def python_function_with_copies(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))

    @tf.function
    def program(x, y):
        for _ in range(10):
            with place.on():
                x = op(x=x, y=y)
            with tf.device(CPU):
                x = x / 2.5
        return x

    x, y = numbers((257,)), numbers((257,), seed=2)
    with tf.device(CPU):
        wanted = tf.constant(x)
        for _ in range(10):
            wanted = op(x=wanted, y=tf.constant(y)) / 2.5
    for _ in range(5):
        near("what goes to and fro", program(tf.constant(x), tf.constant(y)).numpy(), wanted.numpy())


@case
def python_gradient(place):
    op = place.has("Mul", "Tanh", "Square", "Sigmoid", "AddV2")
    x = numbers((100,))

    def slope(device):
        with tf.device(device), tf.GradientTape() as tape:
            value = tf.constant(x)
            tape.watch(value)
            result = getattr(tf.raw_ops, op)(x=value, y=value) if op in ("Mul", "AddV2") else getattr(tf.raw_ops, op)(x=value)
        return tape.gradient(result, value).numpy()

    # The gradient may need what the plugin has not.
    tf.config.set_soft_device_placement(True)
    try:
        near("the gradient of %s" % op, slope(place.device), slope(CPU))
    finally:
        tf.config.set_soft_device_placement(False)


@case
def python_chain_of_work(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add"))
    x = place.put(np.zeros(10000, np.float32))
    one = place.put(np.ones(10000, np.float32))
    with place.on():
        for _ in range(500):
            x = op(x=x, y=one)
    same("500 steps without a look between them", set(x.numpy().tolist()), {500.0})


@case
def python_data_pipeline(place):
    batches = tf.data.Dataset.range(64).map(lambda n: tf.cast(n, tf.float32)).batch(8).prefetch(2)
    seen = [place.put(batch.numpy()).numpy().tolist() for batch in batches]
    same("the batches", sum(seen, []), [float(n) for n in range(64)])


@case
def python_session(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))
    ends = []
    with tf.Graph().as_default() as graph:
        x, y = (tf.compat.v1.placeholder(tf.float32) for _ in range(2))
        for device in (place.device, CPU):
            end = x
            for _ in range(10):
                with tf.device(device):
                    end = op(x=end, y=y)
                with tf.device(CPU):
                    end = end * 0.5
            ends.append(end)
    with tf.compat.v1.Session(graph=graph) as session:

        def work(thread):
            for step in range(10):
                feed = {x: numbers((1003,), seed=step), y: numbers((1003,), seed=100 + thread)}
                near("a session", *session.run(ends, feed))

        work(0)
        wrong = {x: numbers((2,)), y: numbers((3,))}
        fails("shapes that do not fit, in a session", errors.InvalidArgumentError, session.run, ends[0], wrong)
        in_threads(8, work)


main(json.loads(REQUEST))
