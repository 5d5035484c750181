"""The work of the demos of devices: ordinary Keras, which names a device and knows of no plugin.

    python job.py DIGITS.npz --model convolutional --device RUST_REF
    python job.py DIGITS.npz --model convolutional --device CPU
    python job.py TEXT --model transformer --device GPU
    python job.py --device GPU

Prints the loss of each step and the accuracy on what was held out, as one line of JSON; without data, the devices.
"""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# The CPU's own fused operations round in another way.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

SEED = 7
BATCH = 64
HELD_OUT = 360
# A piece of text, in characters, of so many.
PIECE = 32
ALPHABET = 128


def digits(path):
    """Images between 0 and 1 with their labels: those to learn from and those to be asked about."""
    import numpy as np

    data = np.load(path)
    images = (data["images"] / 16).astype(np.float32)[..., None]
    labels = data["labels"].astype(np.int32)
    order = np.random.default_rng(SEED).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def text(path):
    """Pieces of a text in ASCII, and the same a character later: those to learn from and those to be asked about."""
    import numpy as np

    with open(path, "rb") as file:
        codes = np.frombuffer(file.read(), np.uint8).astype(np.int32) % ALPHABET
    pieces = (len(codes) - 1) // PIECE
    order = np.random.default_rng(SEED).permutation(pieces)
    now, later = (codes[start : start + pieces * PIECE].reshape(pieces, PIECE)[order] for start in (0, 1))
    held_out = pieces // 5
    return (now[held_out:], later[held_out:]), (now[:held_out], later[:held_out])


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


def transformer():
    import keras

    width = 32

    class Block(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.attention = keras.layers.MultiHeadAttention(2, width // 2)
            self.norms = [keras.layers.LayerNormalization() for _ in range(2)]
            self.wide, self.narrow = keras.layers.Dense(4 * width, activation="gelu"), keras.layers.Dense(width)

        def call(self, values):
            values = self.norms[0](values + self.attention(values, values, use_causal_mask=True))
            return self.norms[1](values + self.narrow(self.wide(values)))

    layers = [keras.layers.Embedding(ALPHABET, width), Block(), keras.layers.Dense(ALPHABET)]
    return layers, keras.optimizers.Adam(5e-3)


# What a model learns, the shape of an example and how often it sees each.
MODELS = dict(dense=(dense, digits, (8, 8, 1), 12), convolutional=(convolutional, digits, (8, 8, 1), 12),
              transformer=(transformer, text, (PIECE,), 16))


def make_model(name):
    import keras

    keras.utils.set_random_seed(SEED)
    make, _, shape, _ = MODELS[name]
    layers, optimizer = make()
    model = keras.Sequential([keras.Input(shape), *layers])
    # Keras of TensorFlow 2.22 requests XLA, which no plugin's device has.
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=False)
    return model


def place(variable):
    """The device of a variable of Keras 2 or 3."""
    variable = variable.value if hasattr(variable.value, "device") else variable
    return variable.device.rpartition("/")[2]


def train(arguments):
    import keras
    import tensorflow as tf

    devices = [device.name for device in tf.config.list_physical_devices(arguments.device)]
    if arguments.data is None:
        print(json.dumps(dict(version=tf.__version__, devices=devices)), flush=True)
        return
    _, load, _, epochs = MODELS[arguments.model]
    train, test = load(arguments.data)
    if arguments.steps:
        train, epochs = [part[: arguments.steps * BATCH] for part in train], 1

    class EachStep(keras.callbacks.Callback):
        """The loss of each step alone; Keras tells the mean of the epoch so far."""

        losses, ends = [], []

        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()

        def on_train_batch_end(self, batch, logs=None):
            self.losses.append(float(logs["loss"]))
            self.ends.append(time.monotonic())

    with tf.device("/device:%s:0" % arguments.device):
        model = make_model(arguments.model)
        steps = EachStep()
        model.fit(*train, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0, callbacks=[steps])
        answers = model.predict(test[0], batch_size=HELD_OUT, verbose=0).argmax(axis=-1)
    half = len(steps.ends) // 2
    result = dict(
        version=tf.__version__,
        devices=devices,
        examples=len(train[1]),
        held_out=len(test[1]),
        parameters=model.count_params(),
        variables=sorted({place(variable) for variable in model.trainable_variables}),
        losses=steps.losses,
        # Of the second half: the first steps compile.
        steps_per_second=(len(steps.ends) - half) / (steps.ends[-1] - steps.ends[half - 1]),
        accuracy=float((answers == test[1]).mean()),
    )
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", help="what digits.py has saved, or a text")
    parser.add_argument("--model", choices=sorted(MODELS), default="dense")
    parser.add_argument("--steps", type=int, default=0, help="end after so many, or after all examples; 0: no limit")
    parser.add_argument("--device", required=True, help="a device type of TensorFlow's, such as CPU")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
