"""What the plugin @name@ brings, and where it is."""

import ctypes
import os

__version__ = @version@

#: What the plugin brings. `device_types()` knows the types that its devices have in this process.
SCHEMES = @schemes@
DEVICE_TYPES = @device_types@
OPS = @ops@

#: The plugin's shared library.
plugin_path = @path@


def device_types():
    """The types of the plugin's devices, once TensorFlow has loaded it: a setting may choose others than DEVICE_TYPES."""
    ask = getattr(ctypes.CDLL(plugin_path), "tf_plugin_device_type", None)
    if ask is None:
        return DEVICE_TYPES
    ask.restype = ctypes.c_char_p
    answer = ask()
    return (answer.decode(),) if answer else DEVICE_TYPES


def register():
    """Loads the plugin where `import tensorflow` has not: elsewhere than in site-packages, or switched off.

    Any number of calls do what one does.
    """
    import tensorflow as tf
    from tensorflow.python.framework import load_library

    devices = {device.device_type for device in tf.config.list_physical_devices()}
    if not devices.issuperset(device_types()):
        load_library.load_pluggable_device_library(plugin_path)
    if not set(tf.io.gfile.get_registered_schemes()).issuperset(SCHEMES):
        tf.experimental.register_filesystem_plugin(plugin_path)
    if OPS:
        tf.load_op_library(plugin_path)
