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
        # An op without a kernel on the device is an error instead of running on the CPU.
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
        # Only TensorFlow knows the content of a variant.
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
