# Results ------------------------------------------------------------------------------------------------------


@case
def python_every_op(place):
    wrong = [{"what": "the op %s is registered" % name, "wanted": "yes", "got": "no", "detail": op["error"]}
             for name, op in place.ops.items() if op["error"] or op_def_registry.get(name) is None]
    if wrong:
        raise Several(wrong)
    called = {call["op"] for call in place.calls}
    called.update(place.ops[name]["gradient"] for name in list(called))
    missing = sorted(set(place.ops) - called)
    if missing:
        raise Skip("never called: %s; add sample calls" % ", ".join(missing))


@case
def python_results(place):
    def check(sample):
        got = sample.apply(*sample.tensors())
        same("the types of the outputs", [tensor.dtype for tensor in got], [dtype for dtype in output_types(sample, got)])
        arrays = dict(zip(output_names(sample, got), arrays_of(got)))
        for name, value in sample.call["outputs"].items():
            if name not in arrays:
                raise Wrong("the expected output `%s` is one of the op's" % name, ", ".join(arrays), name)
            wanted, exact = array_of(value, "string" if arrays[name].dtype == object else tf.as_dtype(arrays[name].dtype).name)
            if not (exact and sample.exact):
                continue
            tolerance = TOLERANCE.get(wanted.dtype.name)
            found = arrays[name]
            is_near = found.shape == wanted.shape and (
                found.tolist() == wanted.tolist() if tolerance is None
                else np.allclose(found.astype(complex), wanted.astype(complex), tolerance, tolerance, equal_nan=True))
            if not is_near:
                raise Wrong("the output `%s`" % name, shown(text_of(wanted)), shown(text_of(found)))

    each(place.samples, check)


def output_names(sample, got):
    """The name of each output; of a list, that of the list with an index."""
    if len(got) == len(sample.outputs):
        return [name for name, _, _ in sample.outputs]
    if len(sample.outputs) == 1:
        return ["%s[%d]" % (sample.outputs[0][0], at) for at in range(len(got))]
    # The lengths of several lists are attributes.
    return [str(at) for at in range(len(got))]


def output_types(sample, got):
    if len(got) == len(sample.outputs):
        return [dtype for _, dtype, _ in sample.outputs]
    if len(sample.outputs) == 1:
        return [sample.outputs[0][1]] * len(got)
    return [tensor.dtype for tensor in got]


@case
def python_same_again(place):
    def check(sample):
        if sample.stateful:
            raise Skip("the op is declared to be stateful")
        wanted = sample.eager()
        for _ in range(10):
            same_outputs(sample, "the same call again", sample.eager(), wanted)
        for _ in range(2):
            same_outputs(sample, "a new node", arrays_of(sample.graph()(*sample.tensors())), wanted)

    each(place.samples, check)


def fresh(tensor):
    """A copy in memory that nothing else uses, of which no optimizer knows that it is one."""
    flat = tf.gather(tf.reshape(tensor, [-1]), tf.range(tf.size(tensor)))
    return tf.reshape(flat, tf.shape(tensor))


@case
def python_inputs_are_kept(place):
    def check(sample):
        flat = sample.flat()

        def kept(way, tensors):
            for name, got, array in zip(sample.names(), arrays_of(tensors), flat):
                if not is_same(got, array):
                    raise Wrong("`%s` after %s" % (name, way), shown(text_of(array)), shown(text_of(got)))

        tensors = sample.tensors()
        wanted = arrays_of(sample.apply(*tensors))
        kept("an eager call", tensors)
        variables = [tf.Variable(array, dtype=dtype) for array, dtype in zip(flat, sample.dtypes())]
        sample.apply(*[variable.read_value() for variable in variables])
        kept("a call on variables", [variable.read_value() for variable in variables])

        def used_twice(*tensors):
            copies = [fresh(tensor) for tensor in tensors]
            outputs = sample.apply(*copies)
            # After the op.
            with tf.control_dependencies(outputs):
                return outputs, [fresh(copy) for copy in copies]

        outputs, copies = sample.graph(apply=used_twice)(*tensors)
        same_outputs(sample, "a function that uses the inputs twice", arrays_of(outputs), wanted)
        kept("a function that uses them twice", copies)
        constants = sample.tensors()

        def of_constants(number):
            # With a loop that nothing folds, the constants are inputs of the node.
            return tf.nest.flatten(tf.while_loop(
                lambda at, *_: at < number, lambda at, *_: (at + 1, *sample.apply(*constants)), (0, *first),
                shape_invariants=(tf.TensorShape([]), *[tf.TensorShape(None) for _ in first])))[1:]

        first = sample.apply(*constants)
        function = tf.function(of_constants, autograph=False)
        same_outputs(sample, "a loop over constants", arrays_of(function(tf.constant(4))), wanted)
        kept("a loop over constants", constants)

    each(place.samples, check)


@case
def python_memory_of_inner_values(place):
    def check(sample):
        wanted = sample.eager()
        function = sample.graph(apply=lambda *tensors: sample.apply(*[fresh(tensor) for tensor in tensors]))
        for _ in range(3):
            got = arrays_of(function(*sample.tensors()))
            same_outputs(sample, "the op on inner values of a function, whose memory it may have", got, wanted)

    each(place.samples, check)


@case
def python_gradient(place):
    def check(sample):
        if not sample.op["gradient"]:
            raise Skip("no gradient is declared")
        try:
            framework_ops._gradient_registry.lookup(sample.op["name"])
        except LookupError:
            raise Skip("the gradient is not registered; the Python package does it, which `cargo tf-plugin test` imports") from None
        tensors, weights = sample.tensors(), None
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            outputs = sample.apply(*tensors)
            weights = [np.random.default_rng(at).uniform(0.5, 1.5, output.shape) for at, output in enumerate(outputs)]
            loss = weighted(outputs, weights)
        slopes = tape.gradient(loss, tensors)

        def in_a_function(*tensors):
            return tf.gradients(weighted(sample.apply(*tensors), weights), tensors)

        found = [one for one in slopes if one is not None]
        if not found:
            raise Wrong("the gradient", "one of an input at least", "none")
        inner = tf.function(in_a_function, autograph=False)(*tensors)
        for name, one, other in zip(sample.names(), slopes, inner):
            same("whether `%s` has a gradient, in a function" % name, other is not None, one is not None)
            if one is not None:
                same("the type of the gradient of `%s`" % name, one.dtype, tensors[sample.names().index(name)].dtype)
                same("the shape of the gradient of `%s`" % name, tf.convert_to_tensor(one).shape, tensors[sample.names().index(name)].shape)
                holds("the gradient of `%s` is the same in a function" % name, np.allclose(one, other))
        for at, (name, slope) in enumerate(zip(sample.names(), slopes)):
            if slope is not None and tensors[at].dtype in (tf.float32, tf.float64):
                finite_differences(sample, name, at, np.asarray(tf.convert_to_tensor(slope)), weights)

    each(place.samples, check)


def weighted(outputs, weights):
    """A number that depends on all outputs that are numbers."""
    parts = [tf.reduce_sum(tf.cast(output, tf.float64) * weight) for output, weight in zip(outputs, weights) if output.dtype.is_floating]
    return tf.add_n(parts) if parts else tf.constant(0.0, tf.float64)


def finite_differences(sample, name, at, slope, weights):
    flat = list(sample.flat())
    step, tolerance = (1e-5, 1e-4) if flat[at].dtype == np.float64 else (1e-2, 1e-2)
    random = np.random.default_rng(1)
    directions = [random.choice([-1.0, 1.0], flat[at].shape) for _ in range(3)]
    for index in range(min(flat[at].size, 8)):
        directions.append(np.zeros(flat[at].shape))
        directions[-1].ravel()[index] = 1
    for direction in directions:
        losses = []
        for sign in (1, -1):
            moved = flat[:at] + [flat[at] + (sign * step * direction).astype(flat[at].dtype)] + flat[at + 1:]
            tensors = [tf.constant(array, dtype) for array, dtype in zip(moved, sample.dtypes())]
            losses.append(float(weighted(sample.apply(*tensors), weights)))
        number, theory = (losses[0] - losses[1]) / (2 * step), float(np.sum(slope * direction))
        if abs(number - theory) > tolerance * max(1e-2, abs(number)):
            raise Wrong("the gradient of `%s`" % name, "%g by finite differences" % number, "%g" % theory,
                        "of the elements %s" % np.flatnonzero(direction)[:8].tolist())
