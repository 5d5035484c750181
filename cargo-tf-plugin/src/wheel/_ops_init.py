"""@summary@

`import tensorflow` loads the library by itself: a SavedModel with its ops needs no other import. This module has the
functions for Python, and registers the gradients.
"""

import sys

from ._plugin import DEVICE_TYPES, OPS, SCHEMES, __version__, device_types, plugin_path, register

__all__ = ["DEVICE_TYPES", "OPS", "SCHEMES", "__version__", "device_types", "plugin_path", "register"]

try:
    from . import ops
    from .ops import *
    __all__ += ops.__all__
except Exception as error:
    # `python -m @module@ doctor` says why, and begins with this file.
    if sys.argv[:1] != ["-m"]:
        raise
    _problem = error

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError("@module@ has no %s: %s" % (name, _problem)) from _problem
