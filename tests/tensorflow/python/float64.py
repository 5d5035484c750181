"""Float64 on a GPU, with the CPU's results.

    keras       dense layers are trained with Adam, SGD and Keras' loop; no op of a training step is on the CPU
    physics     a network for a differential equation, by gradients of gradients, in a `tf.function`; no op is on the CPU
    random      weights that are drawn on the device are those of the CPU
    cpu         the device does not compute with float64: the CPU does, and moves what the device has

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf

GPU, CPU = "/device:GPU:0", "/device:CPU:0"
ACTIVATIONS = ["tanh", "sigmoid", "softplus", "relu", "swish", "gelu", "elu", "selu", "leaky_relu"]


def check(condition, what):
    if not condition:
        sys.exit(what)


def near(found, expected, what):
    found, expected = np.asarray(found), np.asarray(expected)
    check(found.dtype == expected.dtype == np.float64, "%s: %s, %s" % (what, found.dtype, expected.dtype))
    check(np.all(np.abs(found - expected) <= 1e-12 * np.maximum(1.0, np.abs(expected))), "%s: %r, %r" % (what, found, expected))


def model():
    layers = [tf.keras.layers.Dense(8, activation=activation) for activation in ACTIVATIONS]
    return tf.keras.Sequential([tf.keras.Input((3,))] + layers + [tf.keras.layers.Dense(2)])


def losses_of(device, optimizer, weights):
    """The losses of steps that say where they are to run, and what the model predicts then."""
    random = np.random.default_rng(3)
    x = random.normal(size=(64, 3))
    y = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1)
    with tf.device(device):
        network, optimizer = model(), optimizer()
        network.set_weights(weights)

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.math.squared_difference(network(x), y))
            optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))
            return loss

        x, y = tf.constant(x), tf.constant(y)
        losses = [step(x, y).numpy() for _ in range(12)]
        return losses, network(x).numpy()


def fitted(device, optimizer, weights):
    random = np.random.default_rng(4)
    x = random.normal(size=(70, 3))
    with tf.device(device):
        network = model()
        network.set_weights(weights)
        network.compile(optimizer(), "mse", metrics=["mae"])
        history = network.fit(x, x[:, :2] ** 2, batch_size=16, epochs=3, shuffle=False, verbose=0).history
        return history["loss"] + history["mae"] + list(network.evaluate(x, x[:, :2], verbose=0))


def keras():
    weights = model().get_weights()
    for optimizer in (lambda: tf.keras.optimizers.Adam(0.01), lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)):
        # Without soft placement an op that has no kernel on the device is an error.
        tf.config.set_soft_device_placement(False)
        found = losses_of(GPU, optimizer, weights)
        tf.config.set_soft_device_placement(True)
        expected = losses_of(CPU, optimizer, weights)
        check(found[0][-1] < found[0][0], "the losses are %r" % found[0])
        for of, what in zip(zip(found, expected), ("losses", "predictions")):
            near(*of, what)
        near(*[np.float64(fitted(device, optimizer, weights)) for device in (GPU, CPU)], "losses of fit")


def physics_of(device, weights):
    """u'' = -u, with u(0) = 0 and u'(0) = 1."""
    with tf.device(device):
        network = tf.keras.Sequential([tf.keras.Input((1,))] + [tf.keras.layers.Dense(16, activation="tanh") for _ in range(2)] + [
            tf.keras.layers.Dense(1)])
        if weights is not None:
            network.set_weights(weights)
        optimizer = tf.keras.optimizers.Adam(0.01)
        points = tf.reshape(tf.range(0.0, 2.0, 0.1, dtype=tf.float64), [-1, 1])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                with tf.GradientTape() as outer:
                    outer.watch(points)
                    with tf.GradientTape() as inner:
                        inner.watch(points)
                        u = network(points)
                    slope = inner.gradient(u, points)
                curve = outer.gradient(slope, points)
                loss = tf.reduce_mean(tf.square(curve + u)) + tf.square(u[0, 0]) + tf.square(slope[0, 0] - 1.0)
            optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))
            return loss

        weights = network.get_weights()
        return weights, [step().numpy() for _ in range(20)]


def physics():
    weights, expected = physics_of(CPU, None)
    tf.config.set_soft_device_placement(False)
    _, found = physics_of(GPU, weights)
    tf.config.set_soft_device_placement(True)
    check(found[-1] < found[0], "the losses are %r" % found)
    near(found, expected, "losses")


def random():
    def drawn(device):
        with tf.device(device):
            tf.random.set_seed(5)
            tf.keras.utils.set_random_seed(7)
            return [tf.random.normal([37], dtype=tf.float64), tf.random.uniform([37], dtype=tf.float64), tf.random.truncated_normal([37], dtype=tf.float64),
                    tf.random.stateless_normal([5, 7], [1, 2], dtype=tf.float64), *model().get_weights()]

    for found, expected in zip(drawn(GPU), drawn(CPU)):
        near(found, expected, "random numbers")


def cpu():
    with tf.device(GPU):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float64)
        moved = tf.transpose(x)
        product = tf.matmul(x, moved) + tf.tanh(x)
    check("GPU" in moved.device, "the elements are moved on %s" % moved.device)
    check("CPU" in product.device, "the product is on %s" % product.device)
    near(product, np.float64([[5, 11], [11, 25]]) + np.tanh([[1.0, 2.0], [3.0, 4.0]]), "the product")
    weights, expected = physics_of(CPU, None)
    near(physics_of(GPU, weights)[1], expected, "losses")
    tf.config.set_soft_device_placement(False)
    try:
        with tf.device(GPU):
            tf.tanh(x)
    except tf.errors.InvalidArgumentError as error:
        check("Could not satisfy device" in str(error), str(error))
    else:
        sys.exit("the device has a kernel for float64")


tf.keras.backend.set_floatx("float64")
for name in sys.argv[1:]:
    globals()[name]()
    print("ok", name, flush=True)
