"""Imports TensorFlow and prints, behind a mark, what there is then."""
import json

import tensorflow as tf

print("\ntf-plugin-doctor " + json.dumps({
    "schemes": sorted(tf.io.gfile.get_registered_schemes()),
    "devices": [device.name for device in tf.config.list_physical_devices()],
}))
