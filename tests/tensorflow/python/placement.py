"""Which operations of a function ran on the device, and which on the CPU."""
import collections
import os

import tensorflow as tf
from tensorflow.python.eager import context

TYPE = os.environ["TF_PLUGIN_DEVICE_TYPE"]
DEVICE, CPU = "/device:%s:0" % TYPE, "/device:CPU:0"
# What is in host memory on every device, or brings something there.
HOST = {"_Arg", "_DeviceArg", "_Retval", "_DeviceRetval", "_Send", "_Recv", "_HostSend", "_HostRecv", "Const", "NoOp", "Identity", "IteratorGetNext"}
# Of these types are shapes, axes and the seeds of random numbers.
HOST_TYPES = {dtype.as_datatype_enum for dtype in (tf.int32, tf.int64, tf.uint32)}


def counted(run):
    """What `run` returns, and how often each operation of its graphs is on the device, and on the CPU."""
    context.context().enable_run_metadata()
    try:
        result = run()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    counts = collections.Counter(), collections.Counter()
    for function in metadata.function_graphs:
        nodes = [node for graph in function.partition_graphs for node in graph.node]
        if any(TYPE in node.device for node in nodes):
            for node in nodes:
                is_of_host = node.op in HOST or any(node.attr[name].type in HOST_TYPES for name in ("T", "dtype") if name in node.attr)
                if TYPE in node.device or not is_of_host:
                    counts[TYPE not in node.device][node.op] += 1
    return result, counts
