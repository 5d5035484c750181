"""Prints, behind a mark, what TensorFlow has after its import.

The arguments are how many seconds there are until the end of the process, the plugin's library, and `register` if it is
to be registered as a filesystem.
"""
import ctypes
import faulthandler
import gc
import json
import signal
import sys

if sys.platform == "linux":
    # Ctrl-C does not reach this process group: PR_SET_PDEATHSIG.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
# Says where it hangs; the one who waits ends it.
faulthandler.dump_traceback_later(float(sys.argv[1]))

# Nothing of an import is garbage: looking for it takes a fifth of the time, and once more at the end.
gc.disable()
import tensorflow as tf  # noqa: E402

gc.freeze()
gc.enable()

library = sys.argv[2]
if sys.argv[3:]:
    tf.experimental.register_filesystem_plugin(library)
# A setting may choose another type than the library's note names.
ask = getattr(ctypes.CDLL(library), "tf_plugin_device_type", None)
own = None
if ask:
    ask.restype = ctypes.c_char_p
    own = ask()
# The ops of the library that are not registered, or those of another one.
describe = getattr(ctypes.CDLL(library), "tf_plugin_ops", None)
lacks = []
if describe:
    from tensorflow.python.framework import op_def_registry

    describe.restype = ctypes.c_char_p
    for op in json.loads(describe() or b"{}").get("ops", ()):
        if op.get("error") or op_def_registry.get(op["name"]) is None:
            lacks.append(op["name"])
# On a separate line, whatever else writes; and at once, because the end of the process may hang.
print("\ntf-plugin-test " + json.dumps({
    "schemes": sorted(tf.io.gfile.get_registered_schemes()),
    "device-types": sorted({device.device_type for device in tf.config.list_physical_devices()}),
    "own-type": own and own.decode(),
    "ops": lacks,
}), flush=True)
