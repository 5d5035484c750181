"""Helpers of the wrappers in `ops`: loading, ragged tensors, gradients, Keras."""

import ctypes
import functools
import importlib
import json
import sys
import types
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import load_library, op_def_registry

from ._plugin import plugin_path

#: What a wrapper takes as a tensor: what `tf.convert_to_tensor` takes.
TensorLike = Any
#: What a wrapper takes as a ragged tensor: one, or nested lists, or a tensor, whose rows are then equally long.
RaggedLike = Any
#: What `tf.TensorShape` takes.
ShapeLike = Any


#: The ops that TensorFlow does not have, or has of another library.
_refused = set()


def load(ops):
    """Returns TensorFlow's functions for these ops of the library: their names, each with that of its function.

    The function of an op that TensorFlow does not have, or has of another library, raises ImportError.

    Raises:
      ImportError: if TensorFlow has none of them.
    """
    try:
        return _load(ops)
    except ImportError as error:
        # `python -m @module@ doctor`, which says why, begins with the package.
        if sys.argv[:1] != ["-m"]:
            raise
        return _Unusable(error)


class _Unusable:
    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        raise ImportError(str(self._error)) from self._error


def _load(ops):
    try:
        module = tf.load_op_library(plugin_path)
    except tf.errors.OpError as error:
        raise ImportError("TensorFlow cannot load %s: %s" % (plugin_path, error.message)) from error
    library = ctypes.CDLL(plugin_path)
    if any(op_def_registry.get(op) is None for op in ops) and hasattr(library, "TF_InitKernel"):
        # It was loaded before TensorFlow, when it could not register anything.
        library.TF_InitKernel()
    errors = {op: error for op, error in _errors(library).items() if error}
    for op in ops:
        if op_def_registry.get(op) is None:
            errors.setdefault(op, "%s has no op %s; install @name@ again" % (plugin_path, op))
    _refused.update(errors)
    usable = {op: function for op, function in ops.items() if op not in errors}
    if not usable:
        raise ImportError("; ".join(errors.values()))
    if not all(hasattr(module, function) for function in usable.values()):
        module = _wrappers(usable)
    functions = types.SimpleNamespace(**{function: getattr(module, function) for function in usable.values()})
    for op, error in errors.items():
        if op in ops:
            setattr(functions, ops[op], _raising(error))
    return functions


def _raising(error):
    def call(*arguments, **attributes):
        raise ImportError(error)

    return call


def _errors(library):
    """Why ops of the library could not be registered, by their names."""
    describe = library.tf_plugin_ops
    describe.restype = ctypes.c_char_p
    return {op["name"]: op.get("error") for op in json.loads(describe() or b"{}").get("ops", ())}


def _wrappers(ops):
    """TensorFlow's functions for ops of a library that TensorFlow loaded as a plugin: `load_op_library` has none then."""
    from tensorflow.core.framework import op_def_pb2

    every = op_def_pb2.OpList(op=[op_def_registry.get(op) for op in ops])
    text = load_library._pywrap_python_op_gen.GetPythonWrappers(every.SerializeToString())
    module = type(sys)("_%s_wrappers" % __package__.replace(".", "_"))
    exec(text, module.__dict__)
    return module


def op(function):
    """Marks a wrapper as one that AutoGraph need not convert."""
    function.autograph_info__ = {}
    return function


def rows(name, value, *dtypes):
    """Returns a ragged tensor with one ragged dimension, int64 row splits, and values of one of these types."""
    if isinstance(value, (list, tuple)):
        value = _constant(value, dtypes)
    elif not isinstance(value, tf.RaggedTensor):
        value = tf.convert_to_tensor(value, dtypes[0] if len(dtypes) == 1 else None)
    if not isinstance(value, tf.RaggedTensor):
        value = tf.RaggedTensor.from_tensor(value)
    if value.ragged_rank != 1:
        raise ValueError(
            "`%s` has %d ragged dimensions, and the op takes one; merge_dims removes others" % (name, value.ragged_rank)
        )
    return value.with_row_splits_dtype(tf.int64)


def _constant(rows, dtypes):
    """Returns nested lists as a ragged tensor: of the type of their values, or else of the first type that can hold these."""
    # Of no rows TensorFlow would make a tensor.
    ragged_rank = None if rows else 1
    if len(dtypes) > 1 and _has_values(rows):
        value = tf.ragged.constant(rows, ragged_rank=ragged_rank)
        if value.dtype in dtypes:
            return value
    for dtype in dtypes:
        try:
            return tf.ragged.constant(rows, dtype, ragged_rank=ragged_rank)
        except (TypeError, ValueError):
            if dtype == dtypes[-1]:
                raise


def _has_values(value):
    return any(_has_values(one) for one in value) if isinstance(value, (list, tuple)) else True


def ragged(values, row_splits):
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)


def optional(tensors):
    """Returns the tensor of an output that may be missing, or None. In a graph TensorFlow has the operation for no tensors."""
    return tensors[0] if isinstance(tensors, (list, tuple)) and tensors else None


def gradient(op_name):
    """Registers a function as the gradient of an op, unless it has one or is not that of this library."""

    def register(function):
        function.autograph_info__ = {}
        if op_name in _refused:
            return function
        try:
            tf.RegisterGradient(op_name)(function)
        except KeyError:
            # Another copy of this package has done so.
            pass
        return function

    return register


def gradient_by(op_name, name):
    """Registers the function `module:function` as the gradient of an op; the module is imported when it is needed."""
    module, _, function = name.partition(":")

    def call(op, *gradients):
        found = importlib.import_module(module, __package__)
        return getattr(found, function)(op, *gradients)

    gradient(op_name)(call)


class Given:
    """What a gradient is computed from: an op's inputs and outputs, and the gradients of its outputs, by name."""

    def __init__(self, op, gradients, inputs, outputs):
        self._op = op
        self._inputs = inputs
        self._tensors = {}
        self._gradients = {}
        for arguments, tensors, given in ((outputs, op.outputs, gradients), (inputs, op.inputs, None)):
            at = 0
            for name, count in arguments:
                count = self._count(count)
                self._tensors[name] = list(tensors[at:at + count])
                if given is not None:
                    self._gradients[name] = list(given[at:at + count])
                at += count
        self._kinds = dict(outputs)
        self._kinds.update(inputs)

    def _count(self, count):
        return self._op.get_attr(count) if isinstance(count, str) else count

    def tensor(self, name):
        """An input or output as the wrapper takes it: a tensor, a list, or a ragged tensor."""
        return self._shaped(name, self._tensors[name])

    def optional(self, name):
        """An input as the wrapper takes it that may be None."""
        tensors = self._tensors[name]
        return tensors[0] if tensors else None

    def gradient(self, name):
        """The gradient of an output: zeros if nothing depends on it."""
        tensors = self._tensors[name]
        found = [
            tf.zeros_like(tensor) if one is None else tf.convert_to_tensor(one)
            for one, tensor in zip(self._gradients[name], tensors)
        ]
        if self._kinds[name] == 2:
            found[1] = tensors[1]
        return self._shaped(name, found)

    def _shaped(self, name, tensors):
        kind = self._kinds[name]
        if kind == 2:
            return ragged(*tensors)
        return tensors[0] if kind == 1 else tensors

    def length(self, name):
        """How many tensors an input has."""
        return len(self._tensors[name])

    def of_inputs(self, results):
        """The gradients of all inputs, in TensorFlow's order; None for those that are not in `results`."""
        gradients = []
        for name, count in self._inputs:
            result = results.get(name)
            if result is None:
                gradients += [None] * self._count(count)
            elif count == 2:
                gradients += [result.values if isinstance(result, tf.RaggedTensor) else result, None]
            else:
                gradients += result if isinstance(result, (list, tuple)) else [result]
        return gradients


def is_symbolic(*inputs):
    """Whether an input is one of Keras 3's placeholders. Those of Keras 2 are TensorFlow's business."""
    for one in inputs:
        if type(one).__name__ == "KerasTensor" and ".backend." in type(one).__module__:
            return True
        if isinstance(one, (list, tuple)) and is_symbolic(*one):
            return True
    return False


def symbolic(function, inputs, attributes, name):
    """Calls a wrapper on placeholders of Keras 3."""
    attributes = {key: _plain(value) for key, value in attributes.items()}
    return _operation()(function.__name__, attributes, name=name)(*inputs)


def _plain(value):
    """A value as a Keras file can have it."""
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return None if value.rank is None else value.as_list()
    return list(value) if isinstance(value, tuple) else value


@functools.lru_cache(None)
def _operation():
    """The class of ops in Keras 3 models."""
    import keras

    class Op(keras.Operation):
        def __init__(self, function, attributes, name=None):
            super().__init__(name=name)
            self.function = function
            self.attributes = attributes

        def compute_output_spec(self, *inputs):
            try:
                return super().compute_output_spec(*inputs)
            except Exception as error:
                raise ValueError(
                    "Keras cannot derive the shape of what %s returns; call it in a layer that says it, such as "
                    "keras.layers.Lambda(function, output_shape=shape)" % self.function
                ) from error

        def call(self, *inputs):
            from . import ops

            return getattr(ops, self.function)(*inputs, **self.attributes)

        def get_config(self):
            return {"function": self.function, "attributes": self.attributes, "name": self.name}

    return keras.saving.register_keras_serializable(package=__package__)(Op)


if hasattr(sys.modules.get("keras"), "Operation"):
    # So that files of Keras models find it.
    _operation()
