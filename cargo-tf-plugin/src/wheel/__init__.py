"""@summary@

`import tensorflow` loads the plugin by itself, so that this module need not be imported.
"""

import os

__version__ = @version@

#: What the plugin brings.
SCHEMES = @schemes@
DEVICE_TYPES = @device_types@

#: The plugin's shared library.
plugin_path = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tensorflow-plugins", @library@
)


def register():
    """Loads the plugin where `import tensorflow` has not: elsewhere than in site-packages, or switched off.

    Any number of calls do what one does.
    """
    import tensorflow as tf
    from tensorflow.python.framework import load_library

    devices = {device.device_type for device in tf.config.list_physical_devices()}
    if not devices.issuperset(DEVICE_TYPES):
        load_library.load_pluggable_device_library(plugin_path)
    if not set(tf.io.gfile.get_registered_schemes()).issuperset(SCHEMES):
        tf.experimental.register_filesystem_plugin(plugin_path)
