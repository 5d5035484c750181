# Programs -----------------------------------------------------------------------------------------------------


def turned(sample, count):
    """So many versions of the arguments, whose elements are in another order: as far as the op takes them."""
    made = []
    for by in range(count):
        inputs = {}
        for name, arrays in sample.inputs.items():
            stays = sample.arguments[name]["ragged"] and name.endswith("_row_splits")
            inputs[name] = [array if stays or not array.size else np.roll(array.ravel(), by).reshape(array.shape) for array in arrays]
        _, refusal = attempt("arguments in another order", lambda: sample.eager(inputs))
        made.append(inputs if refusal is None else sample.inputs)
    return made


def stacked(sample, versions):
    """Each argument of all versions as one array, with a first dimension more."""
    return tuple(np.stack(arrays) for arrays in zip(*[sample.flat(inputs) for inputs in versions]))


@case
def python_function(place):
    def check(sample):
        wanted = sample.eager()
        function = tf.function(sample.apply, autograph=False)
        for _ in range(3):
            same_outputs(sample, "a function", arrays_of(function(*sample.tensors())), wanted)
        # TensorFlow computes a node with constants when it optimizes the graph.
        flat = sample.flat()
        constants = tf.function(lambda: sample.apply(*[tf.constant(array, dtype) for array, dtype in zip(flat, sample.dtypes())]), autograph=False)
        same_outputs(sample, "a function of constants", arrays_of(constants()), wanted)

    each(place.samples, check)


@case
def python_session(place):
    def check(sample):
        wanted = sample.eager()
        with tf.Graph().as_default() as graph:
            places = [tf.compat.v1.placeholder(dtype) for dtype in sample.dtypes()]
            ends = sample.apply(*places)
        with tf.compat.v1.Session(graph=graph) as session:
            for _ in range(2):
                got = session.run(ends, dict(zip(places, sample.flat())))
                got = [np.asarray(one, want.dtype) for one, want in zip(got, wanted)]
                same_outputs(sample, "a session", got, wanted)

    each(place.firsts, check)


def elements(dataset, count):
    found = [arrays_of(element) for element in dataset]
    same("the number of elements", len(found), count)
    return found


@case
def python_data_map(place):
    def check(sample):
        if not sample.flat():
            raise Skip("the op has no inputs")
        versions = turned(sample, 24)
        wanted = [sample.eager(inputs) for inputs in versions]
        dataset = tf.data.Dataset.from_tensor_slices(stacked(sample, versions))
        for parallel in (None, 4):
            mapped = dataset.map(lambda *flat: tuple(sample.apply(*flat)), num_parallel_calls=parallel)
            for at, (got, want) in enumerate(zip(elements(mapped, len(wanted)), wanted)):
                same_outputs(sample, "element %d of tf.data with num_parallel_calls=%s" % (at, parallel), got, want)

    each(place.firsts, check)


@case
def python_data_batches(place):
    def check(sample):
        if not sample.flat():
            raise Skip("the op has no inputs")
        versions = turned(sample, 22)
        batches = [stacked(sample, versions[at:at + 5]) for at in range(0, 22, 5)]
        inputs = [unflattened(sample, batch) for batch in batches]
        _, refusal = attempt("a batch", lambda: sample.eager(inputs[0]))
        if refusal is not None:
            raise Skip("the op takes no batches: " + plain(refusal))
        dataset = tf.data.Dataset.from_tensor_slices(stacked(sample, versions)).batch(5)
        mapped = dataset.map(lambda *flat: tuple(sample.apply(*flat)), num_parallel_calls=4)
        for at, (got, inputs) in enumerate(zip(elements(mapped, len(batches)), inputs)):
            same_outputs(sample, "batch %d of tf.data" % at, got, sample.eager(inputs))

    each(place.firsts, check)


def unflattened(sample, flat):
    rest, inputs = list(flat), {}
    for name, arrays in sample.inputs.items():
        inputs[name], rest = rest[:len(arrays)], rest[len(arrays):]
    return inputs


@case
def python_vectorized_map(place):
    def check(sample):
        if sample.stateful:
            raise Skip("the op is declared to be stateful")
        if not sample.flat():
            raise Skip("the op has no inputs")
        wanted = [np.stack([array] * 3) for array in sample.eager()]
        flat = tuple(tf.constant(array, dtype) for array, dtype in zip(stacked(sample, [sample.inputs] * 3), sample.dtypes()))
        got = tf.vectorized_map(lambda flat: tuple(sample.apply(*flat)), flat)
        same_outputs(sample, "vectorized_map", arrays_of(tf.nest.flatten(got)), wanted)

    each(place.firsts, check)


# The process that serves a model: it has TensorFlow and the library.
SERVE = """
import pickle, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
with open(sys.argv[1] + "/calls", "rb") as file:
    calls = pickle.load(file)
results = {}
for name, (flat, dtypes) in calls.items():
    try:
        tensors = [tf.constant(array, getattr(tf, dtype)) for array, dtype in zip(flat, dtypes)]
        results[name] = [tensor.numpy() for tensor in tf.nest.flatten(getattr(model, name)(*tensors))]
    except Exception as error:
        results[name] = "%s: %s" % (type(error).__name__, error)
with open(sys.argv[1] + "/results", "wb") as file:
    pickle.dump(results, file)
"""


@case
def python_saved_model(place):
    module, calls, by_name = tf.Module(), {}, {}
    for number, sample in enumerate(place.samples):
        name = "call_%d" % number
        setattr(module, name, tf.function(sample.apply, input_signature=sample.specs(unknown_dimensions), autograph=False))
        # NumPy's own pickles of 16-bit floats need TensorFlow's types.
        calls[name] = (sample.flat(), [dtype.name for dtype in sample.dtypes()])
        by_name[name] = sample
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory + "/first")
        # A model is used elsewhere than where it was written.
        os.rename(directory + "/first", directory + "/model")
        with open(directory + "/model/calls", "wb") as file:
            pickle.dump(calls, file)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = os.path.abspath(place.library)
        served = subprocess.run([sys.executable, "-c", SERVE, directory + "/model"], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        if served.returncode:
            raise Wrong("a process that loads the model", "exit status 0", str(served.returncode), served.stdout.decode(errors="replace")[-2000:])
        with open(directory + "/model/results", "rb") as file:
            results = pickle.load(file)
    for name, sample in by_name.items():
        sample.served = results[name]

    def check(sample):
        if isinstance(sample.served, str):
            raise Wrong("the model in another process", "success", "an error", sample.served)
        wanted = sample.eager()
        got = [np.asarray(one, want.dtype) for one, want in zip(sample.served, wanted)]
        same_outputs(sample, "the model in another process", got, wanted)

    each(place.samples, check)
