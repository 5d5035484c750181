"""Uses the two GPUs of a machine; a step for each argument.

    list      TensorFlow lists both, and each computes and has memory of its own
    copies    tensors go from one to the other and back, small and large, eagerly and in a function
    order     a result on one GPU waits for the work of the other, again and again
    train     a model trains on the second GPU with the CPU's losses
    mirrored  a model trains on both with the losses of one at twice the batch, by each way to sum gradients
    hide      `set_visible_devices` leaves one of them
    full      the second GPU has no memory left, the first one works meanwhile, and the second one afterwards
    lost      the GPU whose loss the environment brings about is an error, and the other one works

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import sys

import numpy as np
import tensorflow as tf

FIRST, SECOND, CPU = "/device:GPU:0", "/device:GPU:1", "/device:CPU:0"


def check(condition, what):
    if not condition:
        sys.exit(what)


def list_():
    found = [device.name for device in tf.config.list_physical_devices("GPU")]
    check(len(found) == 2, "TensorFlow lists %s" % found)
    for device in FIRST, SECOND:
        with tf.device(device):
            y = tf.matmul(tf.ones([8, 8]), tf.ones([8, 8]))
        check(y.device.endswith(device), "the result is on %s, not %s" % (y.device, device))
        check((y.numpy() == 8).all(), "the product is %s" % y)
        memory = tf.config.experimental.get_memory_info(device[len("/device:"):])
        check(memory["current"] > 0, "%s has used %s" % (device, memory))


def copies():
    for count in 1, 3, 1000, 1 << 20, (5 << 20) + 3:
        x = np.arange(count, dtype="float32")
        for there, back in (FIRST, SECOND), (SECOND, FIRST):
            with tf.device(there):
                a = tf.constant(x) + 1.0
            with tf.device(back):
                b = tf.identity(a) * 2.0
            with tf.device(there):
                c = tf.identity(b) - 2.0
            check(np.array_equal(c.numpy(), 2 * x), "%d numbers from %s to %s and back are others" % (count, there, back))

    @tf.function
    def across(x):
        for _ in range(4):
            with tf.device(FIRST):
                x = x + 1.0
            with tf.device(SECOND):
                x = x * 2.0
        return x

    check(np.array_equal(across(tf.ones([1000])).numpy(), np.full(1000, 46.0, "float32")), "a function computes something else")


def order():
    numbers = np.random.default_rng(1).random((256, 256), dtype="float32") / 128
    with tf.device(CPU):
        expected = tf.constant(numbers)
        for _ in range(20):
            expected = tf.matmul(expected, numbers) + 0.5
    with tf.device(FIRST):
        x = tf.constant(numbers)
    for step in range(20):
        # Work before and after, which a copy must wait for, and which must wait for it.
        with tf.device((FIRST, SECOND)[step % 2]):
            x = tf.matmul(tf.identity(x), numbers) + 0.5
    check(np.allclose(x.numpy(), expected.numpy(), 1e-5), "the results differ by %g" % np.abs(x.numpy() - expected.numpy()).max())


def model():
    tf.keras.utils.set_random_seed(3)
    return tf.keras.Sequential([
        tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])


def data():
    numbers = np.random.default_rng(2)
    x = numbers.random((64, 8), dtype="float32")
    return x, x.sum(1, keepdims=True)


def losses(scope):
    x, y = data()
    with scope:
        trained = model()
        trained.compile(tf.keras.optimizers.SGD(0.05), "mse", jit_compile=False)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    return [loss for loss in trained.fit(dataset, epochs=3, verbose=0, shuffle=False).history["loss"]]


def compare(found, expected, what):
    check(np.allclose(found, expected, 1e-4), "%s: the losses are %s, not %s" % (what, found, expected))
    check(expected[-1] < expected[0], "the losses are %s" % expected)


def train():
    compare(losses(tf.device(SECOND)), losses(tf.device(CPU)), "on the second GPU")


def mirrored():
    expected = losses(tf.device(CPU))
    # The first is the default.
    for reduce in None, tf.distribute.HierarchicalCopyAllReduce(), tf.distribute.ReductionToOneDevice():
        strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=reduce)
        check(strategy.num_replicas_in_sync == 2, "there are %d replicas" % strategy.num_replicas_in_sync)
        compare(losses(strategy.scope()), expected, type(reduce).__name__)


def hide():
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[1:], "GPU")
    logical = tf.config.list_logical_devices("GPU")
    check(len(logical) == 1, "TensorFlow has %s" % logical)
    with tf.device(FIRST):
        check((tf.ones([4]) + 1.0).numpy().sum() == 8, "the visible GPU")


def full():
    kept, error = [], None
    with tf.device(SECOND):
        while error is None and len(kept) < 1000:
            try:
                kept.append(tf.ones([1 << 20]) * float(len(kept)))
                kept[-1][:4].numpy()
            except tf.errors.ResourceExhaustedError as raised:
                error = raised
    check(error and "GPU:1" in str(error), "the second GPU is not full: %s" % error)
    check(len(kept) > 2, "only %d tensors fit" % len(kept))
    compare(losses(tf.device(FIRST)), losses(tf.device(CPU)), "while the other GPU is full")
    # What the second one has is still there, and it computes once memory is free.
    check([x[7].numpy() for x in kept] == list(range(len(kept))), "the tensors of the full GPU are others")
    kept.clear()
    compare(losses(tf.device(SECOND)), losses(tf.device(CPU)), "on the GPU that was full")


def lost():
    with tf.device(FIRST):
        kept = tf.ones([16]) * 3.0
        check(kept.numpy().sum() == 48, "the first GPU")
    error = None
    for size in range(1, 100):
        try:
            with tf.device(SECOND):
                (tf.ones([size, 16]) * 2.0).numpy()
        except tf.errors.OpError as raised:
            error = raised
            break
    check(error, "the second GPU is not lost")
    print("lost: %s" % error)
    with tf.device(FIRST):
        check((kept + 1.0).numpy().sum() == 64, "the first GPU after the loss")
        check(tf.matmul(tf.ones([8, 8]), tf.ones([8, 8])).numpy()[0, 0] == 8, "a product after the loss")


for step in sys.argv[1:]:
    {"list": list_, "copies": copies, "order": order, "train": train, "mirrored": mirrored, "hide": hide, "full": full, "lost": lost}[step]()
    print("ok " + step, flush=True)
