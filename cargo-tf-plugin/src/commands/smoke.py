"""Prints, behind a mark, what TensorFlow has after its import, and after registering the libraries named.

The first argument is how many seconds there are until the end of the process.
"""
import ctypes
import faulthandler
import json
import signal
import sys

if sys.platform == "linux":
    # Ctrl-C does not reach this process group: PR_SET_PDEATHSIG.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
# Says where it hangs; the one who waits ends it.
faulthandler.dump_traceback_later(float(sys.argv[1]))

import tensorflow as tf

for library in sys.argv[2:]:
    tf.experimental.register_filesystem_plugin(library)
# A line of its own, whatever else writes; and at once, as the end of the process may hang.
print("\ntf-plugin-test " + json.dumps({
    "schemes": sorted(tf.io.gfile.get_registered_schemes()),
    "device-types": sorted({device.device_type for device in tf.config.list_physical_devices()}),
}), flush=True)
