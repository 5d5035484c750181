

# Ops: each function gets True for the op, and False for the reference.


def sample(argument, op, batch):
    """A tensor that an input may be: of the declared shape, with `batch` for what may be any length."""
    types = {one["name"]: one["allowed"][0] for one in op["types"]}
    dtype = tf.as_dtype(types.get(argument["type"], argument["type"]))
    shape = []
    dims = (argument["shape"] or "[n]").strip("[]").split(", ")
    for at, dim in enumerate(dim for dim in dims if dim):
        shape.append(int(dim) if dim.isdigit() else batch if at == 0 else 1)
    if dtype == tf.string:
        return tf.fill(shape, "the text of a row, of 42 bytes, no. 000001")
    return tf.ones(shape, dtype)


def given(op, batch):
    """The arguments of TensorFlow's wrapper: made up, for ops whose attributes have defaults."""
    for attribute in op["attributes"]:
        if "default" not in attribute:
            raise Absent("not measured: `%s` has no default, and cannot be made up" % attribute["name"])
    arguments = {}
    for argument in op["inputs"]:
        name, tensor = argument["name"], sample(argument, op, batch)
        if argument["repeat"] == "ragged":
            arguments[name + "_values"] = tensor
            arguments[name + "_row_splits"] = tf.constant([0, tensor.shape[0]], tf.int64)
        elif argument["repeat"] == "one":
            arguments[name] = tensor
        else:
            arguments[name] = [tensor]
    return arguments


def wrapper(op):
    """TensorFlow's function for an op, however its library was loaded."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.framework import load_library, op_def_registry

    definition = op_def_registry.get(op)
    if definition is None:
        raise ValueError("the op is not registered in TensorFlow")
    text = load_library._pywrap_python_op_gen.GetPythonWrappers(op_def_pb2.OpList(op=[definition]).SerializeToString())
    module = type(sys)("wrappers")
    exec(text, module.__dict__)
    known = [value for name, value in vars(module).items() if not name.startswith("_")]
    return next(value for value in known if getattr(value, "__name__", "") == module_name(op))


def module_name(op):
    letters = []
    for at, letter in enumerate(op):
        if letter.isupper() and at and (op[at - 1].islower() or op[at + 1:at + 2].islower()):
            letters.append("_")
        letters.append(letter.lower())
    return "".join(letters)


def op_rows(op):
    for batch in (1, 1000):
        texts = "a row of 1" if batch == 1 else "rows of %d" % batch

        def calls(is_op, batch=batch):
            function, arguments = wrapper(op["name"]), given(op, batch)
            result = function(**arguments)
            if is_op:
                return lambda arguments: function(**arguments), arguments
            tensors = tf.nest.flatten(arguments)
            if JOB["op_reference"] == "tf.identity_n":
                if not tensors:
                    raise Absent("not measured: `tf.identity_n` takes at least one tensor, and the op has no inputs")
                return tf.identity_n, tensors
            # Returns what the op has computed: what is measured is the way to Python and back.
            ready = tf.nest.flatten(result)
            types = [tensor.dtype for tensor in ready]
            return lambda tensors: tf.py_function(lambda *_: ready, tensors, types), tensors

        @row(op["name"], "%s, %s" % (op["name"], texts))
        def _(is_op, calls=calls):
            function, arguments = calls(is_op)
            return (clock(lambda: function(arguments)),)

        @row(op["name"], "%s in a tf.function, %s" % (op["name"], texts))
        def _(is_op, calls=calls):
            function, arguments = calls(is_op)
            # The tensors are arguments: an op of constants is computed once.
            call = tf.function(function, autograph=False)
            call(arguments)
            return (clock(lambda: call(arguments)),)


def ops():
    for op in JOB["ops"]:
        op_rows(op)
    measure_rows(True, False)
    return None
