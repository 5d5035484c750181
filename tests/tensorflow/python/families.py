"""Where the operations of a training step of `keras.applications` are, on a device that computes nothing: `tests/support/dry-gpu`.

    families.py MODEL...

Without weights, on two images of the smallest size that the model takes. Writes a line with how many operations are on the device and which
are on the CPU, and `ok MODEL` if there are none of these. TF_PLUGIN_DEVICE_TYPE is the type of the device.
"""
import sys

import numpy as np
import tensorflow as tf
import keras

from placement import DEVICE, counted

# The smallest sizes; 32 by default.
SIZES = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}


def placed(name):
    size = SIZES.get(name, 32)
    with tf.device(DEVICE):
        model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)
        model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy", jit_compile=False)
        images, labels = np.zeros((2, size, size, 3), "float32"), np.array([1, 3])
        return counted(lambda: model.train_on_batch(images, labels))[1]


problems = []
for name in sys.argv[1:]:
    own, others = placed(name)
    keras.backend.clear_session()
    print("%s: %d operations on the device, on the CPU %r" % (name, sum(own.values()), dict(others)), flush=True)
    if others or not own:
        problems.append(name)
    else:
        print("ok " + name, flush=True)
sys.exit("not on the device alone: " + ", ".join(problems) if problems else 0)
