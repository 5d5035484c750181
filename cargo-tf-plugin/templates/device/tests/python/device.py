"""The device in TensorFlow; `cargo tf-plugin test` runs this with the plugin loaded."""

import tensorflow as tf

# An op without a kernel on the device is an error, instead of running on the CPU.
tf.config.set_soft_device_placement(False)

with tf.device("/device:TEMPLATE_PLUGIN:0"):
    total = tf.constant([1.0, 2.0]) + tf.constant([3.0, 4.0])
    rows = tf.constant([[1.0], [2.0]]) + tf.constant([3.0, 4.0])
assert total.device.endswith("/device:TEMPLATE_PLUGIN:0"), total.device
assert total.numpy().tolist() == [4.0, 6.0]
assert rows.numpy().tolist() == [[4.0, 5.0], [5.0, 6.0]]


@tf.function
def total_of(a, b, c):
    with tf.device("/device:TEMPLATE_PLUGIN:0"):
        return a + b + c + c


numbers = [tf.fill([1000], float(number)) for number in (1, 2, 3)]
assert total_of(*numbers).numpy().tolist() == [9.0] * 1000

try:
    with tf.device("/device:TEMPLATE_PLUGIN:0"):
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])
except tf.errors.InvalidArgumentError as error:
    assert "Incompatible shapes: [2] vs. [3]" in error.message, error.message
else:
    raise AssertionError("shapes that differ are added")
