# Kernels, from their definitions -------------------------------------------------------------------------------
import itertools
from types import FunctionType

from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_registry

# Most kernels accept one of these shapes for all their inputs.
SHAPES = ((2, 3), (), (5,), (3, 3), (2, 4, 4, 3), (2, 3, 3), (1, 3, 4, 4, 2), (0, 3))
# Values of inputs that hold no elements, by parts of their names.
ROLES = (
    (("axis", "dimension", "reduction_indices", "split_dim", "concat_dim", "batch_dim", "dim"), ([0], 0)),
    (("perm",), ([0, 1], [1, 0], [0, 2, 1])),
    (("paddings", "crops"), ([[1, 1], [1, 1]], [[0, 0], [0, 0]])),
    (("multiples",), ([2, 2],)),
    (("block_shape",), ([1, 2],)),
    (("size_splits",), ([1, 1],)),
    (("begin",), ([0, 1],)),
    (("end",), ([2, 3],)),
    (("strides",), ([1, 2],)),
    (("input_sizes", "input_size"), ([2, 4, 4, 3],)),
    (("filter_sizes",), ([2, 2, 3, 3],)),
    (("shape", "dims", "size", "output_shape"), ([2, 3], [4, 4], 6)),
    (("indices", "segment_ids", "labels"), ([0, 1], [[0], [1]], [1, 0, 1])),
    (("num_segments", "depth", "num_rows", "num_cols", "diagonal"), (3,)),
    (("num_lower", "num_upper"), (1,)),
    (("seed", "counter", "key"), ([1, 2],)),
    (("alg",), (1,)),
    (("shift",), ([1], 1)),
    (("limit",), (7,)),
    (("delta",), (2,)),
    (("start",), (1,)),
    (("num",), (4,)),
    (("k",), (2,)),
)
# Values of attributes without a default, by name; and of windows, with which images of SHAPES can be computed.
ATTRIBUTES = {
    "N": 2, "num": 2, "num_split": 2, "axis": 0, "ksize": [1, 2, 2, 1], "ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1],
    "padding": "VALID", "block_size": 2, "equation": "ij,jk->ik", "mode": "REFLECT", "shape": [2, 3], "seq_dim": 1, "batch_dims": 0,
}
IMAGE, VIEWS = (2, 4, 4, 3), (2, 3, 3, 3)


def pooled(images):
    with tf.device(CPU):
        return tf.raw_ops.MaxPool(input=tf.constant(images), **{name: ATTRIBUTES[name] for name in ("ksize", "strides", "padding")}).numpy()


# Inputs of ops whose shapes depend on each other: the shape, an array with the values, or a function of the first input.
EXAMPLES = {
    # Zero becomes false, all others true.
    "Cast": {"x": np.array([0, 1, 2, 0.5, 0, 100])},
    "AvgPoolGrad": {"orig_input_shape": np.array(IMAGE), "grad": VIEWS},
    "Conv2DBackpropFilter": {"input": IMAGE, "filter_sizes": np.array([2, 2, 3, 3]), "out_backprop": VIEWS},
    "Conv2DBackpropInput": {"input_sizes": np.array(IMAGE), "filter": (2, 2, 3, 3), "out_backprop": VIEWS},
    "FusedBatchNormGradV3": {
        "y_backprop": IMAGE, "x": IMAGE, "scale": (3,), "reserve_space_1": (3,), "reserve_space_2": np.array([0.5, 1, 2]), "reserve_space_3": (0,)},
    "FusedBatchNormV3": {"x": IMAGE, "scale": (3,), "offset": (3,), "mean": (0,), "variance": (0,)},
    "Range": {"start": np.array(1), "limit": np.array(7), "delta": np.array(2)},
    "SplitV": {"value": (2, 3), "size_splits": np.array([1, 1]), "split_dim": np.array(0)},
    "StridedSliceGrad": {"shape": np.array([4, 5]), "begin": np.array([0, 1]), "end": np.array([4, 5]), "strides": np.array([2, 1]), "dy": (2, 4)},
    "MaxPoolGrad": {"orig_input": IMAGE, "orig_output": pooled, "grad": VIEWS},
}
# The content of their results is not defined.
UNDEFINED = {"Empty", "EmptyLike"}
# Enough inputs that agree; as many of those that the CPU takes, and of all, are tried.
AGREEING, TRIED, ATTEMPTS = 2, 4, 160


def differs_in_a_letter(one, other):
    """Whether a letter is missing, too many or another one, or two are in the other order."""
    start = len(os.path.commonprefix([one, other]))
    one, other = one[start:], other[start:]
    end = len(os.path.commonprefix([one[::-1], other[::-1]]))
    one, other = one[:len(one) - end], other[:len(other) - end]
    return max(len(one), len(other)) == 1 or len(one) == 2 and one == other[::-1]


def misspelt(op, known):
    """The op of TensorFlow that a name without one seems to mean, if there is one."""
    base = re.sub(r"V\d+$", "", op)
    bases = {re.sub(r"V\d+$", "", other): other for other in known}
    # Another release may have another version.
    return None if base in bases else next((bases[other] for other in bases if differs_in_a_letter(base, other)), None)


class Untried(Exception):
    """Why a kernel cannot be compared."""


def attributes_of(definition, kernel):
    """Values for the attributes that an op needs: the kernel's types, and others that TensorFlow allows."""
    chosen = {}
    constraints = {one.name: list(one.allowed_values.list.type) for one in kernel.constraint}
    for one in definition.attr:
        allowed = one.allowed_values.list
        has_default = one.HasField("default_value")
        if one.type in ("type", "list(type)"):
            types = constraints.get(one.name)
            if not types and has_default:
                types = list(one.default_value.list.type) or [one.default_value.type]
            types = types or [t for t in (types_pb2.DT_FLOAT, types_pb2.DT_INT32, types_pb2.DT_INT64) if not allowed.type or t in allowed.type]
            if not types:
                raise Untried("no value for the attribute `%s` is known" % one.name)
            chosen[one.name] = [tf.as_dtype(types[0])] * 2 if one.type == "list(type)" else tf.as_dtype(types[0])
        elif one.name in ATTRIBUTES and not (has_default and one.name in ("axis", "batch_dims", "equation")):
            chosen[one.name] = ATTRIBUTES[one.name]
        elif has_default:
            continue
        elif allowed.s:
            chosen[one.name] = allowed.s[0].decode()
        elif one.type in ("int", "float", "bool", "shape"):
            chosen[one.name] = {"int": 1, "float": 0.5, "bool": False, "shape": [2, 3]}[one.type]
        else:
            raise Untried("no value for the attribute `%s` is known" % one.name)
    return chosen


def role_of(name, dtype):
    """The values that an input of this name usually has; None where it holds elements."""
    if dtype not in ("int32", "int64"):
        return None
    for names, values in ROLES:
        if name in names or any(len(one) > 3 and one in name for one in names):
            return values
    return None


def inputs_of(definition, attributes):
    """(name, types, whether it is a list) of each input."""
    for one in definition.input_arg:
        if one.type_list_attr:
            yield one.name, [t.name for t in attributes[one.type_list_attr]], True
            continue
        dtype = tf.as_dtype(one.type) if one.type else attributes[one.type_attr]
        is_list = bool(one.number_attr)
        yield one.name, [dtype.name] * (attributes.get(one.number_attr, 2) if is_list else 1), is_list


def candidates(definition, attributes):
    """Inputs to try. The first have one shape for all elements."""
    arguments = list(inputs_of(definition, attributes))
    outputs = [attributes[one.type_attr] if one.type_attr else tf.as_dtype(one.type) for one in definition.output_arg if not one.type_list_attr]
    names = {name for one in arguments for name in one[1]} | {dtype.name for dtype in outputs}
    if names & {"string", "resource", "variant"}:
        raise Untried("it computes no numbers")
    low = 0.25 if any(tf.as_dtype(t).is_unsigned for t in attributes.values() if isinstance(t, tf.DType)) else -2.75
    example = EXAMPLES.get(definition.name)
    if example is not None:
        given = []
        for at, (name, types, _) in enumerate(arguments):
            value = example[name]
            given.append([value(*given[0])] if callable(value) else chosen(value, types, low, 10 * at))
        yield 0, given
        return
    roles = [role_of(name, types[0]) if types else None for name, types, _ in arguments]
    # All elements of one shape first, then all combinations.
    alike = ([shape if role is None else role[0] for role in roles] for shape in SHAPES)
    others = itertools.product(*[SHAPES if role is None else role for role in roles])
    for number, values in enumerate(itertools.islice(itertools.chain(alike, others), ATTEMPTS)):
        yield number, [
            chosen(value if role is None else np.array(value), types, low, 1000 * number + 10 * at)
            for at, (value, role, (_, types, _)) in enumerate(zip(values, roles, arguments))]


def chosen(value, types, low, seed):
    """Arrays of these types: values, or random numbers of a shape."""
    if isinstance(value, np.ndarray):
        return [value.astype(tf.as_dtype(dtype).as_numpy_dtype) for dtype in types]
    return [np.asarray(numbers(value, dtype, low, 2.75, seed + each)) for each, dtype in enumerate(types)]


def outputs_on(device, definition, given, attributes):
    flat = [tensor for one in given for tensor in one]
    named = []
    for one in definition.attr:
        if one.name in attributes:
            value = attributes[one.name]
            enums = [t.as_datatype_enum if isinstance(t, tf.DType) else t for t in (value if isinstance(value, list) else [value])]
            named += [one.name, enums if isinstance(value, list) else enums[0]]
    counts = [len(attributes[one.type_list_attr]) if one.type_list_attr else attributes[one.number_attr] if one.number_attr else 1
              for one in definition.output_arg]
    with tf.device(device):
        result = execute.execute(definition.name, sum(counts), [tf.constant(x) for x in flat], tuple(named), context.context())
    return [np.asarray(part.numpy()) for part in result]


def text_of(kernel):
    types = ["%s=%s" % (one.name, tf.as_dtype(t).name) for one in kernel.constraint for t in one.allowed_values.list.type]
    return " ".join([kernel.op, *types])


def compare(place, kernel, taken, wrong):
    """Compares a kernel with the CPU's, on inputs from the op's definition. `taken` are those that the op takes, if they are known."""
    definition = op_def_registry.get(kernel.op)
    if definition is None:
        raise Untried("TensorFlow has no such op")
    if kernel.label:
        raise Untried("only nodes with its label run it")
    if definition.is_stateful or kernel.op in UNDEFINED:
        raise Untried("its results are not defined by its inputs")
    attributes = attributes_of(definition, kernel)
    refused, agreeing, takes = None, 0, []
    for number, given in candidates(definition, attributes):
        if taken and number not in taken:
            continue
        try:
            wanted = outputs_on(CPU, definition, given, attributes)
        except (errors.OpError, TypeError, ValueError):
            continue
        takes.append(number)
        shapes = ", ".join("%s %s" % (one.name, [list(x.shape) for x in arrays]) for one, arrays in zip(definition.input_arg, given))
        what = "%s of %s" % (text_of(kernel), shapes)
        try:
            got = outputs_on(place.device, definition, given, attributes)
            for index, (one, want) in enumerate(zip(got, wanted)):
                # What a gradient is given is the device's own.
                if index >= len(definition.output_arg) or not definition.output_arg[index].name.startswith("reserve_space"):
                    near("output %d of %s" % (index, what), one, want)
            agreeing += 1
        except Wrong as error:
            wrong.append(error.told)
            return
        except (errors.InvalidArgumentError, errors.UnimplementedError) as error:
            refused = plain(error)
        except errors.OpError as error:
            wrong.append({"what": what, "wanted": "what the CPU answers", "got": type(error).__name__, "detail": plain(error)})
            # It may have failed for good.
            raise Several(wrong)
        if agreeing >= AGREEING or len(takes) >= TRIED:
            break
    taken.update(takes)
    if not agreeing:
        raise Untried("the device refuses it: %s" % refused if refused else "the CPU refuses all inputs that were tried")


def sampled(place):
    """The ops that the cases above compare."""
    found = set()

    class Noted:
        """Has no kernels, so that nothing runs."""

        @staticmethod
        def types(op):
            found.update([op] if place.types(op) else [])
            return []

    for name, function in CASES.items():
        if name.startswith("python_kernels_"):
            with contextlib.suppress(Skip):
                function(Noted)
    return found


@case
def python_names_of_ops(place):
    known = [op for op in dir(tf.raw_ops) if not op.startswith("_")]
    lost = [op for op in sorted(place.kernels) if op_def_registry.get(op) is None]
    meant = {op: misspelt(op, known) for op in lost}
    told = [{"what": "no op named `%s` in TensorFlow %s" % (op, tf.__version__), "wanted": "`%s`?" % near, "got": None, "detail": None}
            for op, near in meant.items() if near]
    if told:
        raise Several(told)
    if lost:
        raise Skip("never run: TensorFlow %s has no op named %s" % (tf.__version__, ", ".join(lost)))


@case
def python_every_kernel(place):
    wrong, untried = [], {}
    for op, registered in sorted(place.kernels.items()):
        taken = set()
        for kernel in registered:
            # The SDK's, which only fail.
            if kernel.priority < 0:
                continue
            try:
                # A crash shows the names of functions.
                named = compare.__code__.replace(co_name="comparison of " + text_of(kernel))
                FunctionType(named, globals())(place, kernel, taken, wrong)
            except Untried as why:
                untried.setdefault(op, {}).setdefault(str(why), []).append(text_of(kernel))
    if wrong:
        raise Several(wrong)
    if untried:
        elsewhere = sampled(place)
        listed = ["%s (%s)" % (", ".join(kernels) if len(kernels) < 4 else "%s of %d types" % (op, len(kernels)), why)
                  for op, reasons in untried.items() if op not in elsewhere for why, kernels in reasons.items()]
        if listed:
            raise Skip("never compared with the CPU: " + "; ".join(listed))
