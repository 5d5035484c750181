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
