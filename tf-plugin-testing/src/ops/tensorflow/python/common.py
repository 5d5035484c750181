"""Cases for ops. A job says `library`; `calls`, the author's sample calls; and `package`, the Python package of the library, or null."""
import concurrent.futures
import contextlib
import importlib
import itertools
import keyword
import pickle
import subprocess
import tempfile

from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.framework import load_library, op_def_registry, ops as framework_ops  # noqa: E402

errors = tf.errors
# What may be said of arguments that do not fit. A panic is an `InternalError`.
REFUSALS = (errors.OpError, TypeError, ValueError)
# Largest difference to an expected output, relative to the larger of 1 and the magnitude.
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-5, "complex128": 1e-10}
IS_WHOLE = os.environ.get("TF_PLUGIN_TESTS") == "all"


class Place:
    """The library, and its sample calls: each for each number type."""

    def __init__(self, settings):
        self.__dict__.update(settings)
        self.module = tf.load_op_library(self.library)
        library = ctypes.CDLL(self.library)
        try:
            describe = library.tf_plugin_ops
        except AttributeError:
            raise RuntimeError("%s describes no ops; write `tf_op_plugin::op_plugin!();` once in the crate" % self.library) from None
        describe.restype = ctypes.c_char_p
        self.ops = {op["name"]: op for op in json.loads(describe())["ops"]}
        for call in self.calls:
            if call["op"] not in self.ops:
                raise RuntimeError("%s has no op `%s`; it has %s" % (self.library, call["op"], ", ".join(sorted(self.ops))))
        registered = [op_def_registry.get(name) for name in self.ops]
        if not all(hasattr(self.module, op.name) for op in registered if op):
            # TensorFlow has loaded it as a plugin: then it returns no functions for the ops.
            every = op_def_pb2.OpList(op=[op for op in registered if op])
            text = load_library._pywrap_python_op_gen.GetPythonWrappers(every.SerializeToString())
            exec(text, self.module.__dict__)
        if self.package:
            # It registers the gradients.
            importlib.import_module(self.package)
        counts = {}
        for call in self.calls:
            counts[call["op"]] = counts.get(call["op"], 0) + 1
        numbers, self.samples, self.firsts = {}, [], []
        for call in self.calls:
            numbers[call["op"]] = number = numbers.get(call["op"], 0) + 1
            title = call["op"] if counts[call["op"]] == 1 else "%s, call %d" % (call["op"], number)
            samples = [Sample(self, call, title, types) for types in types_of(self.ops[call["op"]])]
            self.samples += samples
            self.firsts.append(samples[0])

    @contextlib.contextmanager
    def case(self, name):
        np.seterr(all="ignore")
        self.running = name
        if not self.calls:
            raise Skip("there are no sample calls")
        yield
        gc.collect()


def types_of(op):
    """Types for the op's type parameters: each of each parameter at least once."""
    first = {one["name"]: one["allowed"][0] for one in op["types"]}
    listed = [first]
    for one in op["types"]:
        listed += [dict(first, **{one["name"]: dtype}) for dtype in one["allowed"][1:]]
    return listed


def tensor_of(value):
    """The author's tensor as an array."""
    if value["dtype"] == "string":
        array = np.empty(len(value["strings"]), object)
        array[:] = [string.encode("latin-1") for string in value["strings"]]
        return array.reshape(value["shape"])
    content, dtype = value["bytes"].encode("latin-1"), tf.as_dtype(value["dtype"]).as_numpy_dtype
    return (np.frombuffer(content, dtype) if content else np.empty(0, dtype)).reshape(value["shape"])


def array_of(value, dtype):
    """An array of the author's values, of any type that TensorFlow asks for, and whether the values are the same."""
    given = tensor_of(value)
    if (dtype == "string") != (value["dtype"] == "string"):
        raise RuntimeError("a sample call has a tensor of %s where the op has %s" % (value["dtype"], dtype))
    if dtype == "string":
        return given, True
    dtype, array = tf.as_dtype(dtype), given
    if dtype.is_integer and tf.as_dtype(value["dtype"]).is_floating:
        array = np.trunc(given.astype(np.float64))
    if dtype.is_unsigned:
        array = np.abs(array)
    array = array.astype(dtype.as_numpy_dtype)
    return array, bool(np.all(array == given)) or not dtype.is_integer and not dtype.is_bool


def attribute_of(value, kind):
    if kind.startswith("list("):
        return [attribute_of(one, kind[len("list("):-1]) for one in value]
    convert = {"string": lambda text: text.encode("latin-1"), "type": tf.as_dtype, "shape": tf.TensorShape, "float": float}
    return convert.get(kind, lambda value: value)(value)


class Sample:
    """A sample call with types: arguments by the names that TensorFlow knows."""

    def __init__(self, place, call, title, types):
        self.place, self.call, self.types = place, call, types
        self.op = place.ops[call["op"]]
        self.title = " ".join([title] + ["%s=%s" % one for one in types.items()])
        self.function = getattr(place.module, call["op"], None)
        self.stateful = self.op["stateful"]
        self.exact = True
        # The tensors of each argument, the name of each; and the arguments, with their tensors' type and declared shape.
        self.inputs, self.arguments = {}, {}
        given = dict(call["inputs"])
        for argument in self.op["inputs"]:
            dtype = types.get(argument["type"], argument["type"])
            names = [argument["name"]]
            parts = [(dtype, argument["shape"])]
            if argument["repeat"] == "ragged":
                names = [argument["name"] + "_values", argument["name"] + "_row_splits"]
                parts.append(("int64", "[_]"))
            for name, (dtype, shape) in zip(names, parts):
                value = given.pop(name, None)
                is_list = argument["repeat"] in ("list", "optional")
                if value is None and not is_list:
                    raise RuntimeError("the sample call of `%s` has no input `%s`" % (call["op"], name))
                values = [] if value is None else value if isinstance(value, list) else [value]
                arrays = []
                for one in values:
                    array, exact = array_of(one, dtype)
                    self.exact &= exact
                    arrays.append(array)
                self.inputs[name] = arrays
                self.arguments[name] = {"dtype": tf.as_dtype(dtype), "shape": shape, "list": is_list,
                                        "ragged": argument["name"] if argument["repeat"] == "ragged" else None}
        if given:
            raise RuntimeError("the sample call of `%s` has an input `%s`, and the op has %s" % (
                call["op"], next(iter(given)), ", ".join(self.inputs) or "none"))
        kinds = {attribute["name"]: attribute["type"] for attribute in self.op["attributes"]}
        for name in call["attributes"]:
            if name not in kinds:
                raise RuntimeError("the sample call of `%s` has an attribute `%s`, and the op has %s" % (
                    call["op"], name, ", ".join(kinds) or "none"))
        self.attributes = {name: attribute_of(value, kinds[name]) for name, value in call["attributes"].items()}
        inferred = {argument["type"] for argument in self.op["inputs"]}
        self.attributes.update((name, tf.as_dtype(dtype)) for name, dtype in types.items() if name not in inferred)
        self.outputs = []
        for argument in self.op["outputs"]:
            dtype = tf.as_dtype(types.get(argument["type"], argument["type"]))
            if argument["repeat"] == "ragged":
                self.outputs += [(argument["name"] + "_values", dtype, argument["shape"]), (argument["name"] + "_row_splits", tf.int64, None)]
            else:
                self.outputs.append((argument["name"], dtype, argument["shape"]))

    def flat(self, inputs=None):
        """The tensors of all arguments, in one tuple."""
        return tuple(array for arrays in (inputs or self.inputs).values() for array in arrays)

    def dtypes(self):
        return [self.arguments[name]["dtype"] for name, arrays in self.inputs.items() for _ in arrays]

    def names(self):
        return [name for name, arrays in self.inputs.items() for _ in arrays]

    def apply(self, *flat):
        """Calls the op on tensors; returns its outputs in one list."""
        rest, arguments = list(flat), {}
        for name, arrays in self.inputs.items():
            part, rest = rest[:len(arrays)], rest[len(arrays):]
            arguments[python_name(name)] = part if self.arguments[name]["list"] else part[0]
        arguments.update((python_name(name), value) for name, value in self.attributes.items())
        if self.function is None:
            raise Wrong("the op is registered", detail=self.op["error"])
        return tf.nest.flatten(self.function(**arguments))

    def tensors(self, inputs=None):
        return [tf.constant(array, dtype) for array, dtype in zip(self.flat(inputs), self.dtypes())]

    def eager(self, inputs=None):
        return arrays_of(self.apply(*self.tensors(inputs)))

    def specs(self, shape=lambda array: array.shape, inputs=None):
        return [tf.TensorSpec(shape(array), dtype) for array, dtype in zip(self.flat(inputs), self.dtypes())]

    def graph(self, shape=lambda array: array.shape, inputs=None, apply=None):
        """The op in a function, for inputs of these shapes."""
        function = tf.function(apply or self.apply, input_signature=self.specs(shape, inputs), autograph=False)
        return function.get_concrete_function()


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def arrays_of(tensors):
    return [np.asarray(tensor.numpy(), object if tensor.dtype == tf.string else None) for tensor in tensors]


def unknown_dimensions(array):
    return [None] * array.ndim


def unknown_rank(_):
    return None


def is_same(got, wanted):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    if got.dtype == object:
        return got.tolist() == wanted.tolist()
    return got.tobytes() == wanted.tobytes()


def text_of(array):
    return "%s %s %s" % ("string" if array.dtype == object else array.dtype, list(array.shape), array.ravel()[:8].tolist())


def same_outputs(sample, what, got, wanted):
    """All outputs are the same; of an op with a state, their types."""
    same("the number of outputs of " + what, len(got), len(wanted))
    for at, (got, wanted) in enumerate(zip(got, wanted)):
        if sample.stateful:
            same("the type of output %d of %s" % (at, what), got.dtype, wanted.dtype)
        elif not is_same(got, wanted):
            raise Wrong("output %d of %s" % (at, what), shown(text_of(wanted)), shown(text_of(got)))


def attempt(what, compute):
    """The outputs, or a refusal of the arguments: no panic, and none without a text."""
    try:
        return compute(), None
    except (errors.InternalError, errors.UnknownError) as error:
        raise Wrong(what, "results, or an error about the arguments", type(error).__name__, plain(error)) from error
    except REFUSALS as error:
        holds("the %s of %s has a text" % (type(error).__name__, what), bool(str(error)))
        return None, error


def alike(sample, what, inputs, other):
    """Another way to compute returns what an eager call returns, or refuses the arguments as that does."""
    wanted, refusal = attempt("an eager call of " + what, lambda: sample.eager(inputs))
    got, other_refusal = attempt(what, lambda: other(inputs))
    if refusal is None and other_refusal is None:
        same_outputs(sample, what, got, wanted)
        return got
    if (refusal is None) != (other_refusal is None):
        told = [shown(text_of(one)) for one in (wanted or got or [])]
        raise Wrong(what, *((told, plain(other_refusal)) if refusal is None else (plain(refusal), told)))
    return None


def each(samples, check):
    """Checks each sample call, so that one run shows all that is wrong."""
    wrong, reasons, done = [], [], 0
    for sample in samples:
        reason = sample.call["without"].get(sample.place.running)
        if reason is not None:
            reasons.append("left out: %s" % reason)
            continue
        try:
            check(sample)
            done += 1
        except Wrong as error:
            wrong.append(error.told)
        except Several as error:
            wrong += error.told
        except Skip as skip:
            reasons.append(str(skip))
            continue
        except REFUSALS as error:
            wrong.append({"what": "a call that has to succeed", "wanted": "success", "got": type(error).__name__, "detail": plain(error)})
        for told in wrong:
            if not told.get("named"):
                told.update(what="%s: %s" % (sample.title, told["what"]), named=True)
    if wrong:
        raise Several(wrong)
    if not done:
        raise Skip(reasons[0] if reasons else "there are no sample calls")
