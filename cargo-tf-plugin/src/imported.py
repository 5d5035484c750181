"""Imports TensorFlow and prints, behind a mark, what there is then."""
import gc
import json

# Nothing of an import is garbage: looking for it takes a fifth of the time, and once more at the end.
gc.disable()
import tensorflow as tf  # noqa: E402

gc.freeze()
gc.enable()

print("\ntf-plugin-doctor " + json.dumps({
    "schemes": sorted(tf.io.gfile.get_registered_schemes()),
    "devices": [device.name for device in tf.config.list_physical_devices()],
}))
