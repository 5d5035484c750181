"""The work of the demo: ordinary Keras, which names a device and knows of no plugin.

    python demo_job.py DIGITS.npz --model convolutional --device RUST_REF
    python demo_job.py DIGITS.npz --model convolutional --device CPU

Prints the loss of each step and the accuracy on the digits that were held out, as one line of JSON.
"""
import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# The CPU's own fused operations round in another way.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

SEED = 7
BATCH = 64
EPOCHS = 12
HELD_OUT = 360


def load(path):
    """Images between 0 and 1 with their labels: those to learn from and those to be asked about."""
    import numpy as np

    data = np.load(path)
    images = (data["images"] / 16).astype(np.float32)[..., None]
    labels = data["labels"].astype(np.int32)
    order = np.random.default_rng(SEED).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def dense():
    import keras

    layers = [keras.layers.Flatten(), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)]
    return layers, keras.optimizers.Adam(2e-3)


def convolutional():
    import keras

    layers = [
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ]
    # Momentum or Adam would make the last bit of a pooled value, which may be rounded either way, grow from step to
    # step: two CPUs then differ by a thousandth after 250 steps.
    return layers, keras.optimizers.SGD(0.1)


MODELS = dict(dense=dense, convolutional=convolutional)


def make_model(name):
    import keras

    keras.utils.set_random_seed(SEED)
    layers, optimizer = MODELS[name]()
    model = keras.Sequential([keras.Input((8, 8, 1)), *layers])
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def place(variable):
    """The device of a variable of Keras 2 or 3."""
    variable = variable.value if hasattr(variable.value, "device") else variable
    return variable.device.rpartition("/")[2]


def train(arguments):
    import keras
    import tensorflow as tf

    devices = [device.name for device in tf.config.list_physical_devices(arguments.device)]
    train, test = load(arguments.digits)

    class EachStep(keras.callbacks.Callback):
        """The loss of each step alone; Keras tells the mean of the epoch so far."""

        losses = []

        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()

        def on_train_batch_end(self, batch, logs=None):
            self.losses.append(float(logs["loss"]))

    with tf.device("/device:%s:0" % arguments.device):
        model = make_model(arguments.model)
        steps = EachStep()
        model.fit(*train, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[steps])
        answers = model.predict(test[0], batch_size=HELD_OUT, verbose=0).argmax(axis=1)
    result = dict(
        version=tf.__version__,
        devices=devices,
        examples=len(train[1]),
        held_out=len(test[1]),
        parameters=model.count_params(),
        variables=sorted({place(variable) for variable in model.trainable_variables}),
        losses=steps.losses,
        accuracy=float((answers == test[1]).mean()),
    )
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("digits", help="what demo_digits.py has saved")
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--device", required=True, help="a device type of TensorFlow's, such as CPU")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
