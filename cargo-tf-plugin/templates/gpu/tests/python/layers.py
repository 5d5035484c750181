"""Keras layers on the device, compared with the CPU; `cargo tf-plugin test` runs this with the plugin loaded."""

import numpy as np
import tensorflow as tf

random = np.random.default_rng(1)
images = random.normal(size=(2, 8, 8, 3)).astype("float32")
layers = tf.keras.layers


def results(device):
    tf.keras.utils.set_random_seed(1)
    with tf.device(device):
        model = tf.keras.Sequential(
            [layers.Conv2D(4, 3, activation="relu"), layers.MaxPool2D(), layers.Flatten(), layers.Dense(5, "softmax")]
        )
        return model(images).numpy()


found, expected = results("/device:TEMPLATE_PLUGIN:0"), results("/device:CPU:0")
assert np.allclose(found, expected, atol=1e-5), (found, expected)
