"""The filesystem in TensorFlow; `cargo tf-plugin test` runs this with the plugin loaded."""

import tensorflow as tf

ROOT = "templateplugin://box/python"

tf.io.gfile.makedirs(ROOT)
tf.io.write_file(ROOT + "/hello.txt", b"hello")
assert tf.io.read_file(ROOT + "/hello.txt").numpy() == b"hello"
assert tf.io.gfile.listdir(ROOT) == ["hello.txt"]

with tf.io.TFRecordWriter(ROOT + "/records") as writer:
    for number in range(100):
        writer.write(str(number).encode())
records = tf.data.TFRecordDataset(ROOT + "/records")
assert [int(record.numpy()) for record in records] == list(range(100))

tf.io.gfile.rename(ROOT + "/hello.txt", ROOT + "/renamed.txt")
assert tf.io.gfile.glob(ROOT + "/*.txt") == [ROOT + "/renamed.txt"]
tf.io.gfile.rmtree(ROOT)
assert not tf.io.gfile.exists(ROOT)
