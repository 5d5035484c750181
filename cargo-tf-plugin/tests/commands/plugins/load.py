"""Lets TensorFlow's own libraries load a plugin, without the Python package: `load.py DIRECTORY FUNCTION PLUGIN FAULT...`.

Prints the fault and what TensorFlow says, one line each.
"""
import ctypes
import os
import sys

directory, function, plugin, *faults = sys.argv[1:]
framework = ctypes.CDLL(os.path.join(directory, "libtensorflow_framework.so.2"), ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(os.path.join(directory, "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL)
framework.TF_NewStatus.restype = ctypes.c_void_p
framework.TF_Message.restype = ctypes.c_char_p
load = getattr(library, function)
for fault in faults:
    os.environ["FAULT"] = fault
    status = ctypes.c_void_p(framework.TF_NewStatus())
    load(plugin.encode(), status)
    print(fault, framework.TF_GetCode(status), framework.TF_Message(status).decode(), sep="|", flush=True)
