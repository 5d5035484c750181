"""The nodes of a function as TensorFlow runs it, after optimisation and placement, and its copies."""
import collections

from coverage_kernels import lengths, op_def, types_of_node
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import importer
from tensorflow.python.framework import ops
from tensorflow.python.framework import versions

SENDS = {"_Send", "_HostSend"}
RECEIVES = {"_Recv", "_HostRecv"}
ARGUMENTS = {"_Arg", "_DeviceArg"}
RESULTS = {"_Retval", "_DeviceRetval"}
# What TensorFlow adds; nobody writes it.
PLUMBING = SENDS | RECEIVES | ARGUMENTS | RESULTS | {"NoOp", "_EagerConst"}

# A copy of a tensor: "to" or "from" the device, for which node (None: the function's arguments or results).
Copy = collections.namedtuple("Copy", "direction node size inexact")
Node = collections.namedtuple("Node", "op types device inexact")


def device_type(device):
    return device.rpartition("device:")[2].partition(":")[0]


def split(tensor):
    """The node and the output of an input; the output is None for a control input."""
    if tensor.startswith("^"):
        return tensor[1:], None
    name, _, output = tensor.partition(":")
    return name, int(output or 0)


def size_of(shape, dtype):
    """Bytes; None where they are not known."""
    dims = shape.as_list() if shape.rank is not None else [None]
    if None in dims or dtype in (dtypes.resource, dtypes.variant, dtypes.string):
        return None
    size = dtype.size
    for dim in dims:
        size *= dim
    return size


class Graph:
    """The partitions of a function; `arguments` are the tensors that it was called with."""

    def __init__(self, partitions, arguments, kernels):
        self.kernels = kernels
        self.nodes = {node.name: node for partition in partitions for node in partition.node}
        self.sends = {node.attr["tensor_name"].s: node for node in self.nodes.values() if node.op in SENDS}
        self.users = collections.defaultdict(list)
        for node in self.nodes.values():
            for tensor in node.input:
                name, output = split(tensor)
                if output is not None:
                    self.users[name, output].append(node)
        self.types = {name: types_of_node(node) for name, node in self.nodes.items()}
        self.inexact = self.in_loops_and_branches()
        self.shapes = self.infer_shapes(arguments)

    def listed(self):
        """(name, Node) for each node that a user or TensorFlow's optimizers wrote."""
        for name, node in self.nodes.items():
            if node.op not in PLUMBING and not name.startswith("_cloop"):
                yield name, Node(node.op, self.types[name], device_type(node.device), name in self.inexact)

    # Control flow -----------------------------------------------------------------------------------------------

    def sources(self, node):
        """What a node waits for, across partitions."""
        if node.op in RECEIVES and node.attr["tensor_name"].s in self.sends:
            yield self.sends[node.attr["tensor_name"].s].name
        for tensor in node.input:
            yield split(tensor)[0]

    def in_loops_and_branches(self):
        """The names of nodes that one call runs not exactly once."""
        frames, parents, branches = {}, {}, {}
        pending = collections.deque(self.nodes.values())
        left = len(pending) * 64
        while pending and left:
            left -= 1
            node = pending.popleft()
            sources = [name for name in self.sources(node) if name in self.nodes]
            known = [name for name in sources if name in frames]
            # The way back of a loop waits for the `Merge` that it leads to.
            if any(name not in frames and self.nodes[name].op != "NextIteration" for name in sources):
                pending.append(node)
                continue
            frame, taken = "", frozenset()
            for name in known:
                source = self.nodes[name]
                inner = frames[name]
                if source.op == "Enter":
                    inner = source.attr["frame_name"].s
                    parents.setdefault(inner, frames[name])
                elif source.op == "Exit":
                    inner = parents.get(inner, "")
                frame = inner or frame
                ways = branches[name]
                if source.op == "Switch" and not self.is_loop(source):
                    ways = ways | {(self.predicate(source), self.way(node, name))}
                taken = taken | ways
            if node.op == "Merge":
                both = {predicate for predicate, way in taken if (predicate, 1 - way) in taken}
                taken = frozenset(one for one in taken if one[0] not in both)
            frames[node.name], branches[node.name] = frame, taken
        return {
            name
            for name in self.nodes
            if frames.get(name) or branches.get(name) or name not in frames
            if not (self.nodes[name].op == "Exit" and not parents.get(frames.get(name)))
        }

    def way(self, node, switch):
        return next((output for name, output in map(split, node.input) if name == switch and output is not None), 1)

    def predicate(self, switch):
        """The name of what a `Switch` decides by, wherever that is."""
        name = split(switch.input[1])[0]
        while name in self.nodes and self.nodes[name].op in RECEIVES | SENDS | {"Identity"}:
            names = list(self.sources(self.nodes[name]))
            if not names:
                break
            name = names[0]
        return name

    def is_loop(self, switch):
        predicate = self.nodes.get(self.predicate(switch))
        return predicate is not None and predicate.op == "LoopCond"

    # Shapes -----------------------------------------------------------------------------------------------------

    def variable(self, name, depth=0):
        """The argument that a handle of a variable comes from."""
        node = self.nodes.get(name)
        while node is not None and depth < 100:
            if node.op in ARGUMENTS:
                return node
            names = list(self.sources(node))
            node = self.nodes.get(names[0]) if names else None
            depth += 1
        return None

    def infer_shapes(self, arguments):
        """The shape of each output, as far as TensorFlow can tell them from the arguments'."""
        merged, numbers = graph_pb2.GraphDef(), {name: "n%d" % i for i, name in enumerate(self.nodes)}
        # Before version 24 a placeholder's scalar was of an unknown shape.
        merged.versions.producer = versions.GRAPH_DEF_VERSION
        for name, node in self.nodes.items():
            if node.op in SENDS | RESULTS:
                continue
            copy = merged.node.add()
            copy.name = numbers[name]
            argument = None
            if node.op in ARGUMENTS:
                argument = arguments[node.attr["index"].i]
                shape = argument.shape
            elif node.op == "ReadVariableOp" and self.variable(name) is not None:
                argument = arguments[self.variable(name).attr["index"].i]
                handle = getattr(argument, "_handle_data", None)
                shape = handle.shape_and_type[0].shape if handle is not None and handle.shape_and_type else None
            if argument is not None:
                copy.op = "Placeholder"
                copy.attr["dtype"].type = node.attr["dtype" if node.op == "ReadVariableOp" else "T"].type
                # A scalar's shape is an empty message.
                copy.attr["shape"].shape.SetInParent()
                if shape is not None:
                    copy.attr["shape"].shape.CopyFrom(shape if hasattr(shape, "unknown_rank") else shape.as_proto())
                else:
                    copy.attr["shape"].shape.unknown_rank = True
                continue
            if node.op == "Enter" or node.op == "Merge" and any(self.op_of(tensor) == "NextIteration" for tensor in node.input):
                # A loop without its way back: its variables keep their shapes, which these ops forget.
                copy.op = "Identity"
                copy.attr["T"].CopyFrom(node.attr["T"])
                inputs = [tensor for tensor in node.input if self.op_of(tensor) != "NextIteration"][:1]
            elif node.op in RECEIVES:
                send = self.sends.get(node.attr["tensor_name"].s)
                if send is None:
                    return {}
                copy.op = "Identity"
                copy.attr["T"].type = send.attr["T"].type
                inputs = send.input
            else:
                copy.op = node.op
                inputs = node.input
                for key, value in node.attr.items():
                    if not key.startswith("_"):
                        copy.attr[key].CopyFrom(value)
            for tensor in inputs:
                source, output = split(tensor)
                if output is not None:
                    copy.input.append("%s:%d" % (numbers[source], output) if output else numbers[source])
        try:
            with ops.Graph().as_default() as graph:
                importer.import_graph_def(merged, name="")
                return {
                    (name, output.value_index): (output.shape, output.dtype)
                    for name, number in numbers.items()
                    if self.nodes[name].op not in SENDS | RESULTS
                    for output in graph.get_operation_by_name(number).outputs
                }
        except Exception:  # Of many kinds; then the sizes are not known.
            return {}

    def op_of(self, tensor):
        node = self.nodes.get(split(tensor)[0])
        return node.op if node is not None else ""

    def size(self, tensor):
        shape, dtype = self.shapes.get(tensor, (None, None))
        return size_of(shape, dtype) if shape is not None else None

    # Copies -----------------------------------------------------------------------------------------------------

    def copies(self, device):
        """Each copy between the device and the host that one call makes."""
        copies = list(self.copies_between(device)) + list(self.copies_within(device))
        # Empty tensors stand for control edges, and are not copied.
        return [copy for copy in copies if copy.size != 0]

    def copies_between(self, device):
        for receive in self.nodes.values():
            send = self.sends.get(receive.attr["tensor_name"].s) if receive.op in RECEIVES else None
            if send is None or not any(split(tensor)[1] is not None for tensor in send.input):
                continue
            on_device = [
                device_type(send.device) == device and send.op == "_Send",
                device_type(receive.device) == device and receive.op == "_Recv",
            ]
            if on_device[0] == on_device[1]:
                continue
            source = split(next(tensor for tensor in send.input if not tensor.startswith("^")))
            users = self.users[receive.name, 0]
            if on_device[0]:
                yield self.copy("from", users[0] if users else receive, source, receive)
            else:
                yield self.copy("to", self.nodes[source[0]], source, receive)

    def copies_within(self, device):
        """Between host memory and device memory of nodes on the device, once a tensor."""
        seen = set()
        for node in self.nodes.values():
            if device_type(node.device) != device:
                continue
            into = self.host_memory(node, inputs=True)
            tensors = [split(tensor) for tensor in node.input if not tensor.startswith("^")]
            for position, tensor in enumerate(tensors):
                source = self.nodes.get(tensor[0])
                if source is None or device_type(source.device) != device:
                    continue
                from_host = tensor[1] in self.host_memory(source, inputs=False)
                to_host = position in into
                if from_host == to_host or (tensor, to_host) in seen:
                    continue
                seen.add((tensor, to_host))
                yield self.copy("from" if to_host else "to", node if to_host else source, tensor, node)

    def copy(self, direction, node, tensor, where):
        inexact = where.name in self.inexact
        owner = None if node.op in PLUMBING else node.name
        return Copy(direction, owner, self.size(tensor), inexact)

    def host_memory(self, node, inputs):
        """The positions of a node's inputs or outputs that are in host memory."""
        if node.op in {"_HostSend", "_HostRecv"}:
            return {0}
        definition = op_def(node.op)
        if definition is None:
            return set()
        names = self.kernels.memory(node.op, self.types[node.name])
        positions, position = set(), 0
        arguments = definition.input_arg if inputs else definition.output_arg
        for name, count in lengths(definition, lambda attr: node.attr[attr], arguments):
            if name in names:
                positions.update(range(position, position + count))
            position += count
        return positions
