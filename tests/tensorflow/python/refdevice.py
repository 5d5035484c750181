"""Steps with the reference device, or with one of the type TF_PLUGIN_DEVICE_TYPE; one an argument, in their order.

    train=MODEL,OPTIMIZER          Keras trains on the device as it does on the CPU: MODEL is dense, convolutional or recurrent;
                                   with `,long` 52 steps, of which no loss differs by more than 1e-4
    constants                      those of a new function leave alone what work that is still to run has to read
    devices=COUNT                  there are COUNT devices, with separate memory and kernels
    memory                         what needs more memory than the device has raises an error, and the next fits
    trace                          TensorBoard's trace viewer shows the kernels, a line for each stream
    eager                          Keras' eager steps train, or say what to do where they cannot
    fails                          the device cannot convolve groups of channels
    transformer                    a small transformer trains as on the CPU; between two lines `--- the device` on stderr TensorFlow says
                                   where each operation of it is placed
    refused                        there is no device, and the CPU trains

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import ctypes
import glob
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

from steps import check, take

TYPE = os.environ.get("TF_PLUGIN_DEVICE_TYPE", "RUST_REF")
DEVICE = "/device:%s:0" % TYPE
# How much the losses of a step may differ, relative to the larger; the demo compares more strictly, with models
# that do not make a rounding error grow.
TOLERANCE = 1e-3
# In small recurrent layers errors do not grow, and a wrong gradient changes little.
TOLERANCES = {"recurrent": 5e-6}


def listed():
    return tf.config.list_physical_devices(TYPE)


def model_of(name, optimizer):
    import keras

    layers = keras.layers
    keras.utils.set_random_seed(1)
    if name == "dense":
        stack = [layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dropout(0.0), layers.Dense(10)]
    elif name == "recurrent":
        # Rows are steps in time; the first layer has a mask, the last none.
        stack = [
            layers.Reshape((8, 8)),
            layers.Masking(),
            layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
            layers.GRU(5),
            layers.RepeatVector(3),
            layers.GRU(4, return_sequences=True, go_backwards=True),
            layers.LSTM(7),
            layers.Dense(10),
        ]
    else:
        stack = [
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(10),
        ]
    optimizers = {
        "sgd": lambda: keras.optimizers.SGD(0.05),
        "momentum": lambda: keras.optimizers.SGD(0.02, momentum=0.9),
        "adam": lambda: keras.optimizers.Adam(0.005),
        # It updates in a branch. By a power of 2, so that the gradients are the same.
        "scaled": lambda: keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(0.005)),
    }
    model = keras.Sequential([keras.Input((8, 8, 1)), *stack])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return model, dict(optimizer=optimizers[optimizer](), loss=loss, metrics=["accuracy"])


def losses_on(device, name, optimizer, options, epochs=3):
    """The losses of each step; everything but the device is the same."""
    import keras

    random = np.random.default_rng(0)
    images = random.normal(size=(256, 8, 8, 1)).astype("float32")
    labels = (images.reshape(256, 64) @ random.normal(size=(64, 10))).argmax(1).astype("int32")
    if name == "recurrent":
        # Sequences that end early.
        images[::3, 5:] = 0
    losses = []

    class EachStep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    with tf.device(device):
        model, how = model_of(name, optimizer)
        model.compile(**how, **options)
        model.fit(images, labels, batch_size=64, epochs=epochs, shuffle=False, verbose=0, callbacks=[EachStep()])
    variables = [getattr(variable, "value", variable) for variable in model.trainable_variables]
    places = {(variable() if callable(variable) else variable).device.rpartition("/")[2] for variable in variables}
    return np.array(losses), places


def train(what):
    name, optimizer, *rest = what.split(",")
    options = dict(run_eagerly=True) if rest == ["eager"] else {}
    epochs, tolerance = (13, 1e-4) if rest == ["long"] else (3, TOLERANCES.get(name, TOLERANCE))
    if int(tf.__version__.split(".")[1]) >= 22:
        # Its Keras calls functions for XLA where no graph is around them that a pass could change.
        options["jit_compile"] = False
    expected, _ = losses_on("/device:CPU:0", name, optimizer, options, epochs)
    found, places = losses_on(DEVICE, name, optimizer, options, epochs)
    check(places == {"device:%s:0" % TYPE}, "variables are on %r" % places)
    check(len(found) == 4 * epochs and found[-1] < found[0], "the losses are %r" % found)
    worst = float(np.max(np.abs(found - expected) / np.abs(expected)))
    print("the losses differ by %g" % worst)
    check(worst <= tolerance, "the losses differ by %g: %r on the device, %r on the CPU" % (worst, found, expected))


def constants():
    with tf.device(DEVICE):
        two = tf.fill([3], 2.0)
        for turn in range(3):
            results = []
            for _ in range(10):
                source = two + two
                results.append(source * two)
                # Its memory can be used again, though the product is still to be computed.
                del source
            new = tf.function(lambda x: (x + tf.constant([-7.0, -8.0, -9.0])) * tf.constant([-5.0, -6.0, -4.0]))
            answer = new(two)
            found = [result.numpy().tolist() for result in results]
            check(found == [[8.0] * 3] * 10, "%d: the products are %r" % (turn, found))
            check(answer.numpy().tolist() == [25.0, 36.0, 28.0], "%d: the function answers %r" % (turn, answer))


def devices(count):
    check(len(listed()) == int(count), "%r devices" % len(listed()))
    tensors = []
    for ordinal in range(int(count)):
        with tf.device("/device:%s:%d" % (TYPE, ordinal)):
            tensors.append(tf.add(tf.constant([1.0, 2.0]), float(ordinal)))
    for ordinal, tensor in enumerate(tensors):
        check(tensor.device.endswith("%s:%d" % (TYPE, ordinal)), tensor.device)
        # From this device to the next.
        with tf.device("/device:%s:%d" % (TYPE, (ordinal + 1) % int(count))):
            moved = tf.multiply(tensor, 2.0)
        check(moved.numpy().tolist() == [2.0 + 2 * ordinal, 4.0 + 2 * ordinal], "%r" % moved)


def memory():
    with tf.device(DEVICE):
        try:
            tf.zeros([64 << 20]).numpy()
        except tf.errors.ResourceExhaustedError as error:
            check(TYPE in str(error), "the error is %s" % error)
        else:
            sys.exit("256 MiB fit into the device's memory")
        check(float(tf.reduce_sum(tf.ones([1 << 20]))) == 1 << 20, "the device does not go on")


def trace():
    from tensorflow.tsl.profiler.protobuf import trace_events_pb2

    try:
        from tensorflow.python.profiler.internal import _pywrap_profiler_plugin as converter
    except ImportError:  # Until 2.18.
        from tensorflow.python.profiler.internal import _pywrap_profiler as converter
    with tf.device(DEVICE):
        matrix = tf.random.stateless_uniform([64, 64], [1, 2]) + 0.0
        tf.matmul(matrix, matrix).numpy()
        with tempfile.TemporaryDirectory() as directory:
            tf.profiler.experimental.start(directory)
            for _ in range(5):
                product = tf.matmul(matrix, matrix)
            product.numpy()
            tf.profiler.experimental.stop()
            paths = glob.glob(os.path.join(directory, "**", "*.xplane.pb"), recursive=True)
            converted, succeeded = converter.xspace_to_tools_data(paths, "trace_viewer")
    check(succeeded, "the profile cannot be converted: %r" % converted)
    shown = trace_events_pb2.Trace.FromString(converted)
    [(number, device)] = [(id, device) for id, device in shown.devices.items() if "%s:0" % TYPE in device.name]
    products = [event for event in shown.trace_events if event.device_id == number and event.name == "MatMul"]
    check(len(products) == 5, "the trace has %d products" % len(products))
    for event in products:
        line = device.resources[event.resource_id].name
        check(line.startswith("Stream "), "a product is on %r" % line)
        check(0 < event.duration_ps < 1e12, "a product takes %d ps" % event.duration_ps)


def eager():
    try:
        train("dense,adam,eager")
    except tf.errors.UnimplementedError as error:
        check("write `v.assign(v + d)`" in str(error) and "run_eagerly" in str(error), "the error is %s" % error)
        check(tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 19), "this release has what it takes")


def fails():
    """Keras convolves groups of channels in a function for XLA, which TensorFlow does not inline."""
    import keras

    layers = keras.layers
    with tf.device(DEVICE):
        model = keras.Sequential([keras.Input((5, 5, 4)), layers.Conv2D(4, 3, groups=2), layers.Flatten(), layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
        try:
            model.fit(np.ones((2, 5, 5, 4)), np.ones((2, 1)), verbose=0)
        except (tf.errors.CancelledError, tf.errors.UnimplementedError):
            return
    sys.exit("the device convolves groups of channels")


def transformer_losses(device):
    import keras

    layers = keras.layers
    random = np.random.default_rng(0)
    text = random.integers(0, 20, (8, 13)).astype("int32")
    text[:, 1::2] = text[:, :-1:2]
    keras.utils.set_random_seed(1)
    with tf.device(device):
        tokens = keras.Input((12,), dtype="int32")
        x = layers.Embedding(20, 16)(tokens)
        for _ in range(2):
            y = layers.LayerNormalization(epsilon=1e-6)(x)
            x = layers.Add()([x, layers.MultiHeadAttention(2, 8)(y, y, use_causal_mask=True)])
            y = layers.LayerNormalization(epsilon=1e-6)(x)
            x = layers.Add()([x, layers.Dense(16)(layers.Dense(32, activation="gelu")(y))])
        model = keras.Model(tokens, layers.Dense(20)(layers.LayerNormalization(epsilon=1e-6)(x)))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(0.01)
        # The old optimizers of 2.12 make their variables in the function.
        getattr(optimizer, "build", lambda _: None)(model.trainable_variables)

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            gradients = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return value

        x, y = tf.constant(text[:, :-1]), tf.constant(text[:, 1:])
        print("--- the device" if device == DEVICE else "---", file=sys.stderr, flush=True)
        losses = [float(step(x, y)) for _ in range(8)]
        print("---", file=sys.stderr, flush=True)
    return np.array(losses)


def transformer():
    tf.debugging.set_log_device_placement(True)
    found, expected = transformer_losses(DEVICE), transformer_losses("/device:CPU:0")
    # TensorFlow says the places on stdout too, through a buffer of C's that may end within a line.
    ctypes.CDLL(None).fflush(None)
    check(found[-1] < 0.9 * found[0], "the losses are %r" % found)
    worst = float(np.max(np.abs(found - expected) / np.abs(expected)))
    check(worst <= TOLERANCE, "the losses differ by %g: %r on the device, %r on the CPU" % (worst, found, expected))


def refused():
    check(listed() == [], "there is a device")
    weights, losses = tf.Variable([[0.5], [-1.0]]), []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul([[1.0, 2.0], [3.0, 4.0]], weights) - 1.0))
        weights.assign_sub(0.02 * tape.gradient(loss, weights))
        losses.append(float(loss))
    check(sorted(losses, reverse=True) == losses and losses[3] < losses[0] / 2, "the losses are %r" % losses)


take(train, constants, devices, memory, trace, eager, fails, transformer, refused)
