"""Watches what TensorFlow runs: ops by its callbacks, functions by the graphs that it makes of them."""
import collections
import sys
import threading
import traceback

import coverage_graphs as graphs
import tensorflow as tf
from coverage_kernels import Kernels, op_def, types_of, types_of_node, types_text
from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import dtypes

# TensorFlow's own types of devices.
OTHERS = {"CPU", "TPU", "TPU_SYSTEM", "XLA_CPU", "XLA_GPU"} | ({"GPU"} if tf.test.is_built_with_gpu_support() else set())

# The ops that run a function that is not part of the graph.
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}

# So many tensors are remembered with the op that made them.
REMEMBERED = 100000

# For so many shapes of a function's arguments the sizes of its copies are told apart.
SHAPES = 20


class Row:
    """An op with its types at one place, and what it cost."""

    def __init__(self, where, why, detail):
        self.where, self.why, self.detail = where, why, detail
        self.runs, self.exact = 0, True
        self.copies = {"to": [0, 0, 0], "from": [0, 0, 0]}

    def copy(self, direction, size, times=1):
        copies = self.copies[direction]
        copies[0] += times
        copies[1] += times * (size or 0)
        copies[2] += times if size is None else 0


class Call:
    """A function with arguments on these devices, and how often it was called."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.calls, self.graph = 0, None


class Watch:
    def __init__(self, settings, stop):
        self.settings, self.stop = settings, stop
        found = sorted({device.device_type for device in tf.config.list_physical_devices()} - OTHERS)
        self.found = found
        wanted = settings["device"]
        self.device = wanted if wanted in found else found[0] if wanted is None and len(found) == 1 else None
        self.lock = threading.RLock()
        self.rows, self.calls, self.missing = {}, {}, {}
        self.told, self.collects = set(), False
        self.outside = Row("program", None, "")
        self.makers = collections.OrderedDict()
        self.mirrors = collections.OrderedDict()
        self.stopped, self.unseen, self.error = None, set(), None
        if self.device:
            self.kernels = Kernels(self.device)
            self.install()

    # Where TensorFlow lets itself be watched -----------------------------------------------------------------

    def install(self):
        context.context().add_op_callback(self.callback)
        begin_thread = threading.Thread._bootstrap_inner

        def begin_watched(thread):
            # Callbacks are each thread's own.
            context.context().add_op_callback(self.callback)
            begin_thread(thread)

        threading.Thread._bootstrap_inner = begin_watched
        quick, cancellable = execute.quick_execute, execute.execute_with_cancellation

        def watched(genuine):
            def run_op(op_name, num_outputs, inputs, attrs, ctx, *rest, **named):
                name = op_name.decode() if isinstance(op_name, bytes) else str(op_name)
                is_function = op_def(name) is None and ctx.has_function(name)
                if is_function:
                    self.carefully(self.before, name, ctx)
                outputs = genuine(op_name, num_outputs, inputs, attrs, ctx, *rest, **named)
                if is_function:
                    self.carefully(self.after, name, inputs, ctx)
                elif self.callback in ctx.op_callbacks:
                    self.callback(name, tuple(inputs), attrs, outputs)
                return outputs

            return run_op

        execute.execute = watched(quick)
        execute.execute_with_cancellation = watched(cancellable)
        self.ignore_xla()

    @staticmethod
    def ignore_xla():
        """Makes functions of those that request XLA, as Keras does: no plugin's device has it.

        They would be functions with a separate graph, which is not collected.
        """
        begin = polymorphic_function.Function.__init__

        def begin_without_xla(function, *arguments, **named):
            if named.get("jit_compile"):
                named["jit_compile"] = None
            begin(function, *arguments, **named)

        polymorphic_function.Function.__init__ = begin_without_xla

    def carefully(self, function, *arguments):
        """The program is not to suffer from being watched; the report tells the first error."""
        try:
            with self.lock:
                function(*arguments)
        except Exception:
            self.error = self.error or traceback.format_exc()

    # Ops outside of functions --------------------------------------------------------------------------------

    def callback(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        op = op_type.decode() if isinstance(op_type, bytes) else op_type
        if graph is not None or op_def(op) is None or op in graphs.PLUMBING:
            return None
        values = dict(zip(attrs[::2], attrs[1::2])) if attrs else {}

        def types(name):
            value = values.get(name)
            if value is None:
                return None
            several = value if isinstance(value, (list, tuple)) else [value]
            return [dtypes.as_dtype(one).as_datatype_enum for one in several]

        self.carefully(lambda: self.ran(op, types_of(op, types), values, inputs, outputs))
        return None

    def ran(self, op, types, values, inputs, outputs):
        tensors = [one for one in outputs or () if hasattr(one, "backing_device")]
        handles = [one for one in inputs if getattr(one, "dtype", None) == tf.resource]
        place = tensors[0].device if tensors else handles[0].device if handles else ""
        on_device = graphs.device_type(place) == self.device
        row = self.row(op, types, on_device)
        row.runs += 1
        host = self.positions(op, types, values, inputs) if on_device else None
        for position, tensor in enumerate(inputs):
            if not hasattr(tensor, "backing_device") or tensor.dtype in (tf.resource, tf.variant, tf.string):
                continue
            is_there = graphs.device_type(tensor.backing_device) == self.device
            to_be_there = on_device and position not in host
            # int32 tensors of the device are in host memory.
            if is_there == to_be_there or not is_there and graphs.device_type(tensor.device) == self.device:
                continue
            if self.is_mirrored(tensor, place if to_be_there else "CPU"):
                continue
            size = graphs.size_of(tensor.shape, tensor.dtype)
            if size == 0:
                continue
            if to_be_there:
                self.makers.get(tensor._id, self.outside).copy("to", size)
            else:
                row.copy("from", size)
        if not on_device:
            for tensor in tensors:
                self.remember(self.makers, tensor._id, row)

    def is_mirrored(self, tensor, place):
        """Whether TensorFlow has such a copy of a tensor already; it keeps them."""
        key = tensor._id, place
        if key in self.mirrors:
            return True
        self.remember(self.mirrors, key, True)
        return False

    @staticmethod
    def remember(known, key, value):
        known[key] = value
        if len(known) > REMEMBERED:
            known.popitem(last=False)

    def positions(self, op, types, values, inputs):
        """The inputs that a kernel on the device takes in host memory."""
        names = self.kernels.memory(op, types)
        if not names:
            return ()
        definition, positions, position = op_def(op), set(), 0
        for one in definition.input_arg:
            if one.number_attr:
                count = values.get(one.number_attr, 1)
            elif one.type_list_attr:
                count = len(dict(types).get(one.type_list_attr, ()))
            else:
                count = 1
            if one.name in names:
                positions.update(range(position, position + count))
            position += count
        return positions

    # Functions -----------------------------------------------------------------------------------------------

    def before(self, name, ctx):
        """Says what a function will miss, before it runs for the first time."""
        if not self.collects:
            ctx.enable_graph_collection()
            self.collects = True
        ctx.export_run_metadata()
        if name in self.told:
            return
        self.told.add(name)
        missing, changes = self.look(name, ctx)
        new = [one for one in missing if one not in self.missing]
        self.missing.update((one, name) for one in new)
        if new:
            lines = ["coverage: `%s` needs kernels that %s does not have:" % (plain(name), self.device)]
            lines += ["  %s %s: %s" % (op, types, "; ".join(filter(None, why))) for op, types, *why in new]
            sys.stderr.write("\n".join(lines) + "\n")
            sys.stderr.flush()
        if changes and self.settings["dry_run"]:
            self.stopped = plain(name)
            raise self.stop(0)

    def look(self, name, ctx):
        """What the ops of a function lack on the device, and whether it changes variables."""
        missing, changes, seen, names = {}, False, set(), [name]
        while names:
            name = names.pop()
            if name in seen or not ctx.has_function(name):
                continue
            seen.add(name)
            for node in ctx.get_function_def(name).node_def:
                names += [value.func.name for value in node.attr.values() if value.func.name]
                names += [one.name for value in node.attr.values() for one in value.list.func]
                changes |= node.op.startswith(("Assign", "ResourceApply"))
                if op_def(node.op) is None or graphs.device_type(node.device) == "CPU":
                    continue
                types = types_of_node(node)
                # Ops on int32 alone compute shapes in host memory: nothing is copied for them.
                if self.kernels.is_host_only(node.op) or is_for_shapes(types):
                    continue
                # A generator of random numbers may be on the CPU, which the function does not tell.
                if node.op.startswith(("Rng", "Stateful")):
                    continue
                lacks = self.kernels.lacks(node.op, types)
                if lacks:
                    why, op, types, detail = lacks
                    missing[op, types_text(types), why, detail] = True
        return list(missing), changes

    def after(self, name, inputs, ctx):
        collected = ctx.export_run_metadata().function_graphs
        of_this = [call for call in self.calls.values() if call.name == name]
        arguments = [Argument(one, len(of_this) < SHAPES) for one in inputs]
        key = name, tuple(one.key for one in arguments)
        call = self.calls.get(key)
        if call is None:
            call = self.calls[key] = Call(name, arguments)
            same = [other.graph for other in of_this if other.graph]
            if collected:
                call.graph = max(
                    (one.partition_graphs for one in collected),
                    key=lambda graph: sum(len(partition.node) for partition in graph),
                )
            elif same:
                call.graph = same[-1]
        call.calls += 1

    # The end -------------------------------------------------------------------------------------------------

    def row(self, op, types, on_device):
        key = op, types, on_device
        if key not in self.rows:
            self.rows[key] = Row(*self.judge(op, types, on_device))
        return self.rows[key]

    def judge(self, op, types, on_device):
        """Where it computes, why not on the device, and what there is instead."""
        kernels = self.kernels
        kernel, own = kernels.find(op, types)
        if on_device:
            if kernels.computes_on_host(op, types):
                return "host", "host memory", "" if own else "TensorFlow's kernel for every device"
            return ("device" if own else "default"), None, ""
        if kernels.is_host_only(op):
            return "cpu", "host only", ""
        lacks = kernels.lacks(op, types)
        if lacks:
            why, needed, needed_types, detail = lacks
            if needed != op:
                detail = "needs %s %s" % (needed, types_text(needed_types))
            return "cpu", why, detail
        if kernel is not None and kernels.computes_on_host(op, types):
            return "cpu", "host memory", ""
        return "cpu", "placed", "the device has a kernel"

    def count(self, call):
        graph = graphs.Graph(call.graph, call.arguments, self.kernels)
        rows = {}
        for name, node in graph.listed():
            if op_def(node.op) is None:
                self.unseen.add(plain(node.op))
                continue
            if node.op in CALLS:
                self.unseen.add(plain(graph.nodes[name].attr["f"].func.name))
                continue
            row = rows[name] = self.row(node.op, node.types, node.device == self.device)
            row.runs += call.calls
            row.exact &= not node.inexact
        for copy in graph.copies(self.device):
            row = rows.get(copy.node, self.outside)
            row.copy(copy.direction, copy.size, call.calls)
            row.exact &= not copy.inexact

    def report(self):
        if self.device:
            for call in self.calls.values():
                if call.graph:
                    self.carefully(self.count, call)
                else:
                    self.unseen.add(plain(call.name))
        rows = [
            dict(shown(row), op=op, types=types_text(types))
            for (op, types, _), row in self.rows.items()
            if row.runs
        ]
        return {
            "tensorflow": tf.__version__,
            "device": self.device,
            "devices": self.found,
            "stopped": self.stopped,
            "error": self.error,
            "missing": [
                {"op": op, "types": types, "why": why, "detail": detail, "function": plain(function)}
                for (op, types, why, detail), function in self.missing.items()
            ],
            "functions": len({call.name for call in self.calls.values()}),
            "unseen": sorted(self.unseen),
            "rows": rows,
            "program": shown(self.outside),
        }


class Argument:
    """What is known of a tensor after it is gone."""

    def __init__(self, tensor, has_shape):
        shape = getattr(tensor, "shape", tf.TensorShape(None))
        self.shape = shape if has_shape else tf.TensorShape(None)
        self.dtype = getattr(tensor, "dtype", None)
        self._handle_data = getattr(tensor, "_handle_data", None)
        places = getattr(tensor, "device", ""), getattr(tensor, "backing_device", "")
        self.key = places, str(self.shape)


def is_for_shapes(types):
    values = [value for _, several in types for value in several]
    return bool(values) and all(value == types_pb2.DT_INT32 for value in values)


def shown(row):
    def copies(direction):
        times, size, unknown = row.copies[direction]
        return {"copies": times, "bytes": size, "unknown": unknown}

    return {
        "where": row.where,
        "why": row.why,
        "detail": row.detail,
        "runs": row.runs,
        "exact": row.exact,
        "to_device": copies("to"),
        "from_device": copies("from"),
    }


def plain(name):
    """`__inference_step_123` as users know it."""
    for prefix in ("__inference_", "__forward_", "__backward_"):
        name = name[len(prefix) :] if name.startswith(prefix) else name
    stem, _, number = name.rpartition("_")
    return stem if stem and number.isdigit() else name
