"""Variants: lists of tensors."""
import numpy as np
import tensorflow as tf

from sweep import case as cases
from sweep.case import FLOATS, NUMBERS, SPECIAL, TYPE, flags, numbers, random, raw


def case(*arguments, **options):
    cases.case(*arguments, is_required=True, **options)


def lists():
    """Lists that are made of a tensor, and become one again."""
    def added(*parts):
        return stacked(raw.AddN(inputs=[listed(part) for part in parts]), parts[0])

    def listed(x):
        return raw.TensorListFromTensor(tensor=x, element_shape=tf.constant(x.shape[1:].as_list(), tf.int32))

    def reserved(x):
        return raw.TensorListReserve(element_shape=tf.constant(-1), num_elements=tf.constant(x.shape[0]), element_dtype=x.dtype)

    def stacked(list_, like):
        return raw.TensorListStack(input_handle=list_, element_shape=tf.constant(like.shape[1:].as_list(), tf.int32), element_dtype=like.dtype)

    def with_one(x, index):
        return raw.TensorListSetItem(input_handle=reserved(x), index=tf.constant(index), item=tf.constant(x.numpy()[index]))

    for dtype in NUMBERS + ["int32"]:
        for shape in [(1,), (4,), (3, 0), (2, 3), (3, 5, 7), (3, 1000)]:
            for count in (1, 2, 5):
                case("AddN", added, *[numbers(shape, dtype, 0, 9) for _ in range(count)])
            case("ZerosLike", lambda x: stacked(raw.ZerosLike(x=listed(x)), x), numbers(shape, dtype, 1, 9))
        # What only one list has, or none.
        case("AddN", lambda x: stacked(raw.AddN(inputs=[with_one(x, 0), with_one(x, 2), reserved(x), with_one(x, 2)]), x), numbers((4, 3), dtype))
        case("ZerosLike", lambda x: stacked(raw.ZerosLike(x=with_one(x, 1)), x), numbers((4, 3), dtype, 1, 9))
    for dtype in FLOATS:
        special = np.array(SPECIAL).astype(tf.as_dtype(dtype).as_numpy_dtype)
        pair = np.repeat(special, len(special)), np.tile(special, len(special))
        case("AddN", added, *[x[None] for x in pair])
    # Of all magnitudes: not a bit may differ.
    for scale in (1e-300, 1e-17, 1e-3, 1.0, 1e3, 1e16, 1e300):
        case("AddN", added, numbers((2, 2000), "float64"), numbers((2, 2000), "float64") * scale, tolerance=0)
        x = numbers((2, 2000), "float64")
        near = (-x * (1 + numbers((2, 2000), "float64") * min(scale, 1.0))).astype("float64")
        case("AddN", added, x, near, tolerance=0)
    # Any bits: among them numbers beyond all, and no numbers. The CPU takes the smallest for 0.
    any_bits = [random.integers(0, 1 << 64, (2, 4000), "uint64", endpoint=False).view("float64") for _ in range(2)]
    case("AddN", added, *[np.where(np.abs(x) < 1e-290, 1.0, x) for x in any_bits], tolerance=0)
    empty = lambda: raw.EmptyTensorList(element_shape=tf.constant(-1), max_num_elements=tf.constant(-1), element_dtype=tf.float32)
    length = lambda list_: raw.TensorListLength(input_handle=list_)
    case("AddN", lambda x: length(raw.AddN(inputs=[empty(), empty()])), np.float32(0))
    case("ZerosLike", lambda x: length(raw.ZerosLike(x=empty())), np.float32(0))
    x = numbers((2, 3), "float32")
    case("AddN", lambda x: raw.AddN(inputs=[listed(x), listed(x[:1])]), x, fails="different lengths")
    case("AddN", lambda x: raw.AddN(inputs=[listed(x), listed(tf.ones([2, 3], tf.int64))]), x, fails="different dtypes")
    case("AddN", lambda x: raw.AddN(inputs=[listed(x), listed(tf.ones([2, 4]))]), x, fails="incompatible")

    def uneven(x):
        if TYPE not in x.device:
            raise ValueError("the CPU reads behind the smaller tensor")
        return raw.AddN(inputs=[with_one(x, 0), with_one(x[:, :2], 0)])
    case("AddN", uneven, x, fails="must have the same type, size and shape")
    # No tensor of bool has a sum; lists of it grow on all devices.
    push = lambda x: raw.TensorListPushBack(
        input_handle=raw.EmptyTensorList(element_shape=tf.constant(-1), max_num_elements=tf.constant(-1), element_dtype=x.dtype), tensor=x)
    case("AddN", lambda x: raw.AddN(inputs=[push(x), push(x)]), flags((3,)), fails="unsupported dtype")

    def memory(x):
        """Whether all memory comes back."""
        def used():
            run()
            return tf.config.experimental.get_memory_info("%s:0" % TYPE)["current"]

        def run():
            for _ in range(20):
                added(x, x, x)
                raw.ZerosLike(x=listed(x))
        return tf.constant(TYPE not in x.device or abs(used() - used()) < 1 << 20)
    case("AddN", memory, numbers((4, 40000), "float32"))
