"""Models of `keras.applications` without weights, and others, on the device and on the CPU.

    applications.py MODEL[,POLICY]...

POLICY is one of Keras' for mixed precision, such as `mixed_bfloat16`. A model is trained for a step and predicts; the loss, what the step changes and the predictions are those of the CPU.
TF_PLUGIN_DEVICE_TYPE is the type of the device. Writes a line for each model, with how many operations of the step are on the device
and which are on the CPU, and `ok MODEL`.
"""
import sys

import numpy as np
import tensorflow as tf
import keras

from placement import CPU, DEVICE, counted

SIZE, BATCH, CLASSES = 64, 4, 10


def vit():
    """A small vision transformer, as Keras' examples have it."""
    layers = keras.layers
    images = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(32, 8, strides=8)(images)
    x = layers.Reshape((-1, 32))(x)
    x = x + layers.Embedding(x.shape[1], 32)(np.arange(x.shape[1]))
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = layers.Add()([layers.MultiHeadAttention(2, 16, dropout=0.1)(y, y), x])
        y = layers.Dense(64, activation="gelu")(layers.LayerNormalization(epsilon=1e-6)(x))
        x = layers.Add()([layers.Dropout(0.1)(layers.Dense(32)(y)), x])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(x))
    return keras.Model(images, layers.Dense(CLASSES)(x))


def lstm():
    """A recurrent layer that is a loop on every device, whose gradient adds lists of tensors."""
    layers = keras.layers
    images = keras.Input((SIZE, SIZE, 3))
    x = layers.Reshape((SIZE // 8, -1))(layers.AveragePooling2D(8)(images))
    # The loop's gradient adds to a list only where the layer is not the first one.
    x = layers.Dense(16)(x)
    x = layers.LSTM(16, dropout=0.2, recurrent_dropout=0.2)(x)
    return keras.Model(images, layers.Dense(CLASSES)(x))


OTHERS = {"ViT": vit, "LSTM": lstm}


def model_of(name):
    keras.utils.set_random_seed(1)
    if name in OTHERS:
        return OTHERS[name]()
    return getattr(keras.applications, name)(weights=None, input_shape=(SIZE, SIZE, 3), classes=CLASSES, classifier_activation=None)


def run(name, device, trained=None):
    """The loss of a step, what it changes, the weights behind it, and what the model predicts with those or the given ones."""
    random = np.random.default_rng(0)
    images = random.normal(size=(BATCH, SIZE, SIZE, 3)).astype("float32")
    labels = random.integers(0, CLASSES, BATCH)
    with tf.device(device):
        model = model_of(name)
        for layer in model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                # With the mean and the variance that a new model has, it predicts the same for all images.
                layer.momentum = 0.0
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.001, momentum=0.9), loss, jit_compile=False)
        before = model.get_weights()
        loss, places = counted(lambda: float(np.ravel(model.train_on_batch(images, labels))[0]))
        after = model.get_weights()
        model.set_weights(trained or after)
        predictions = model.predict(images, verbose=0)
    changes = np.concatenate([(new - old).ravel() for new, old in zip(after, before)])
    return loss, changes, after, predictions, places


def difference(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


for argument in sys.argv[1:]:
    name, _, policy = argument.partition(",")
    keras.mixed_precision.set_global_policy(policy or "float32")
    loss, changes, trained, predictions, _ = run(name, CPU)
    if not np.ptp(predictions, axis=0).max() >= 1e-3:
        sys.exit("%s predicts the same for all images: %r" % (name, predictions))
    found = run(name, DEVICE, trained)
    own, others = map(dict, found[4])
    differences = abs(found[0] - loss) / loss, difference(found[1], changes), difference(found[3], predictions)
    print("%s: %d operations on the device, on the CPU %r; loss, changes and predictions differ by %.1e, %.1e, %.1e" % (
        name, sum(own.values()), others, *differences), flush=True)
    # Normalized over few images, errors of rounding grow: the changes of the CPU with and without oneDNN differ by 1e-2.
    # Each rounds at other places: the vision transformer differs by 4e-5, 2e-3 and 6e-4 in float16, by 7e-4, 2e-2 and 1e-2 in bfloat16.
    limits = (5e-3, 1e-1, 5e-2) if policy else (1e-4, 5e-2, 1e-3)
    if not all(of <= limit for of, limit in zip(differences, limits)):
        sys.exit("%s differs" % name)
    if others:
        sys.exit("%s is not on the device alone" % name)
    print("ok " + argument, flush=True)
