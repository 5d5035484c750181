"""@summary@

`import tensorflow` loads the plugin by itself, so that this module need not be imported.
"""

from ._plugin import DEVICE_TYPES, OPS, SCHEMES, __version__, device_types, plugin_path, register
