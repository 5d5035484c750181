"""Keras trains a dense model on the device, with the losses that it has on the CPU."""

import numpy as np
import tensorflow as tf

DEVICE = "/device:TEMPLATE_PLUGIN:0"
# Keras of TensorFlow 2.22 requests XLA for the whole step, which plugin devices do not support.
OPTIONS = {"jit_compile": False} if int(tf.__version__.split(".")[1]) >= 22 else {}

random = np.random.default_rng(1)
inputs = random.normal(size=(68, 8)).astype("float32")
targets = inputs.sum(axis=1, keepdims=True)


def losses(device, optimizer):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    with tf.device(device):
        model = tf.keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(1)])
        model.compile(optimizer=optimizer, loss="mse", **OPTIONS)
        # An op without a kernel on the device runs on the CPU.
        history = model.fit(inputs, targets, batch_size=17, epochs=5, shuffle=False, verbose=0)
    weights = [getattr(weight, "value", weight) for weight in model.trainable_variables]
    weights = [weight() if callable(weight) else weight for weight in weights]
    assert all(weight.device.endswith(device) for weight in weights), [weight.device for weight in weights]
    return np.array(history.history["loss"])


for optimizer in ("sgd", "adam"):
    found, expected = losses(DEVICE, optimizer), losses("/device:CPU:0", optimizer)
    assert np.allclose(found, expected, rtol=1e-4), (optimizer, found, expected)
    assert found[-1] < found[0], (optimizer, found)
