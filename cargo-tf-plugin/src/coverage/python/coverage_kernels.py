"""Which kernels there are for an op and its types, and why there is none on the device."""
import functools

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import kernels as registered
from tensorflow.python.framework import op_def_registry

# TensorFlow's kernels for these compute on the host with addresses of the device.
UNSAFE = {"AssignAddVariableOp", "AssignSubVariableOp"}

# Ops on variables: what users call, and the ops by which the SDK's graph pass replaces each in functions.
REPLACED = {
    "AssignAddVariableOp": ("v.assign_add", "AddV2"),
    "AssignSubVariableOp": ("v.assign_sub", "Sub"),
    "ResourceGather": ("tf.gather", "GatherV2"),
    "ResourceGatherNd": ("tf.gather_nd", "GatherNd"),
    "ResourceStridedSliceAssign": ("v[...].assign", "TensorStridedSliceUpdate"),
}
for _change in ("Add", "Sub", "Min", "Max", "Update"):
    for _kind in ("Scatter", "ScatterNd"):
        _method = "v.%s_%s" % (_kind.replace("Nd", "_nd").lower(), _change.lower())
        _scatter = "TensorScatter" + _change
        REPLACED["Resource" + _kind + _change] = (_method, _scatter if _kind == "ScatterNd" else _scatter + " BroadcastTo")
# Optimizers, which it computes by arithmetic for these types of floats.
_rms = "Square Sub Mul AddV2 Sqrt RealDiv"
OPTIMIZERS = {
    "ResourceApply" + _name: _ops
    for _name, _ops in {
        "GradientDescent": "Mul Sub",
        "Momentum": "Mul AddV2 Sub",
        "KerasMomentum": "Mul AddV2 Sub",
        "Adam": _rms,
        "AdamWithAmsgrad": _rms + " Maximum",
        "AdaMax": "Sub Mul AddV2 Abs Maximum RealDiv",
        "Adagrad": "Square AddV2 Mul Rsqrt Sub",
        "AdagradV2": _rms,
        "Adadelta": "Square AddV2 Mul Sqrt Rsqrt Sub",
        "RMSProp": _rms,
        "CenteredRMSProp": _rms,
    }.items()
}
REPLACED.update((_op, (_op, _ops)) for _op, _ops in OPTIMIZERS.items())
FLOATS = {types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE}

# What has no values to compute with: strings, datasets, iterators.
HOST_TYPES = {types_pb2.DT_STRING, types_pb2.DT_VARIANT}


def type_name(number):
    return dtypes.as_dtype(number).name


@functools.lru_cache(None)
def op_def(op):
    """The definition of an op; None for a function or an unknown op."""
    return op_def_registry.get(op)


def types_of(op, attr):
    """The types of a node as ((attribute, (types, ...)), ...), in the order of the op's definition.

    `attr` returns the value of an attribute as a list of types, or None.
    """
    definition = op_def(op)
    found = []
    for one in definition.attr if definition else []:
        if one.type in ("type", "list(type)"):
            value = attr(one.name)
            if value is None:
                default = one.default_value
                value = list(default.list.type) if one.type == "list(type)" else [default.type]
            found.append((one.name, tuple(value)))
    return tuple(found)


def types_of_node(node):
    def attr(name):
        if name not in node.attr:
            return None
        value = node.attr[name]
        return list(value.list.type) if value.WhichOneof("value") == "list" else [value.type]

    return types_of(node.op, attr)


def types_text(types):
    """`float32`, or `T=float32 Tidx=int32` where attributes differ."""
    shown = {}
    for name, values in types:
        if values:
            shown[name] = ",".join(dict.fromkeys(type_name(value) for value in values if value))
    shown = {name: text for name, text in shown.items() if text}
    if len(set(shown.values())) <= 1:
        return next(iter(shown.values()), "")
    return " ".join("%s=%s" % one for one in shown.items())


class Kernels:
    """The kernels for one type of device."""

    def __init__(self, device_type):
        self.device_type = device_type

    @functools.lru_cache(None)
    def of(self, op, device_type):
        kernels = registered.get_registered_kernels_for_op(op).kernel
        return [kernel for kernel in kernels if kernel.device_type == device_type and not kernel.label]

    @staticmethod
    def is_for(kernel, types):
        types = dict(types)
        return all(
            set(types.get(one.name, ())) <= set(one.allowed_values.list.type) for one in kernel.constraint
        )

    @functools.lru_cache(None)
    def find(self, op, types):
        """The kernel that runs on the device, and whether it is the plugin's; (None, False) without one."""
        for device_type in (self.device_type, "DEFAULT"):
            matching = [kernel for kernel in self.of(op, device_type) if self.is_for(kernel, types)]
            if matching:
                best = max(matching, key=lambda kernel: kernel.priority)
                return best, device_type == self.device_type
        return None, False

    @staticmethod
    def is_refusal(kernel):
        """Whether a kernel of the plugin is the SDK's, which only fails: it is registered with a negative priority."""
        return kernel is not None and kernel.priority < 0

    def is_host_only(self, op):
        """Whether no device computes it: datasets, strings, files."""
        definition = op_def(op)
        if definition is None or "Dataset" in op or "Iterator" in op or "Summary" in op:
            return True
        arguments = list(definition.input_arg) + list(definition.output_arg)
        return any(one.type in HOST_TYPES for one in arguments)

    def lacks(self, op, types):
        """(why, detail) for what has no kernel on the device; None where there is one."""
        kernel, own = self.find(op, types)
        values = dict(types)
        dtype = values.get("dtype") or values.get("T", (0,))
        if op in UNSAFE and not own and dtype != (types_pb2.DT_INT32,):
            return "no kernel", op, types, "TensorFlow's own computes on the host with addresses of the device"
        # TensorFlow keeps variables of int32 on the CPU.
        if own and self.is_refusal(kernel) and dtype != (types_pb2.DT_INT32,):
            method, computes = REPLACED.get(op, (op, ""))
            if not computes or op in OPTIMIZERS and not FLOATS.issuperset(dtype):
                return "no kernel", op, types, "the CPU computes it"
            for one in computes.split():
                lacks = self.replacement_lacks(one, values, dtype)
                if lacks:
                    return (*lacks, "for `%s`, which the CPU computes" % method)
            return None
        if kernel is not None:
            return None
        own = self.of(op, self.device_type) or self.of(op, "DEFAULT")
        if not own:
            return "no kernel", op, types, ""
        return "no kernel for this type", op, types, self.instead(own, dict(types))

    def replacement_lacks(self, op, values, dtype):
        """(why, op, types) for an op that replaces one with these types, on variables of `dtype`."""
        axis = (types_pb2.DT_INT32,)
        needed = types_of(op, lambda name: values.get(name) or (dtype if name in ("T", "Tparams") else axis))
        lacks = self.lacks(op, needed)
        return lacks and (lacks[0], op, needed)

    @staticmethod
    def instead(kernels, types):
        """The types that there are kernels for, of the attribute that none has."""
        have = {}
        for kernel in kernels:
            for one in kernel.constraint:
                have.setdefault(one.name, set()).update(one.allowed_values.list.type)
        for name, values in have.items():
            if not set(types.get(name, ())) <= values:
                return "there is one for " + ", ".join(sorted(map(type_name, values)))
        return ""

    @functools.lru_cache(None)
    def memory(self, op, types):
        """Which inputs and outputs of a node on the device are in host memory, by argument, or None for all of it."""
        kernel, _ = self.find(op, types)
        return frozenset(kernel.host_memory_arg) if kernel else frozenset()

    @functools.lru_cache(None)
    def computes_on_host(self, op, types):
        """Whether a kernel for the device has all that it computes in host memory."""
        kernel, _ = self.find(op, types)
        definition = op_def(op)
        if kernel is None or definition is None or not definition.output_arg:
            return False
        names = {one.name for one in list(definition.input_arg) + list(definition.output_arg)}
        return names <= set(kernel.host_memory_arg)


def lengths(definition, attr, arguments):
    """(argument, how many tensors) for each argument; `attr` returns the value of an attribute."""
    for one in arguments:
        if one.number_attr:
            yield one.name, int(attr(one.number_attr).i)
        elif one.type_list_attr:
            yield one.name, len(attr(one.type_list_attr).list.type)
        else:
            yield one.name, 1
