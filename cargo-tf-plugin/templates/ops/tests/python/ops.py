"""The op in TensorFlow; `cargo tf-plugin test` runs this with the library and its Python module."""

import subprocess
import sys
import tempfile

import tensorflow as tf

import template_plugin

texts = tf.constant([["short", "a longer text"]])
short = template_plugin.template_op_shorten(texts, length=5)
assert short.numpy().tolist() == [[b"short", b"a lon"]]
assert "How many characters" in template_plugin.template_op_shorten.__doc__

# In the input pipeline, by several threads.
lines = tf.data.Dataset.from_tensor_slices(["one", "twenty-seven"]).batch(2)
lines = lines.map(template_plugin.template_op_shorten, num_parallel_calls=tf.data.AUTOTUNE)
assert [batch.tolist() for batch in lines.as_numpy_iterator()] == [[b"one", b"twenty-s"]]

# Wrong values name the argument.
try:
    template_plugin.template_op_shorten("text", length=0)
except tf.errors.InvalidArgumentError as error:
    assert "length" in str(error), error
else:
    raise AssertionError("the minimum of `length` is 1")


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, text):
        return template_plugin.template_op_shorten(text)


# The process that loads a SavedModel needs the library, and no Python module.
with tempfile.TemporaryDirectory() as directory:
    tf.saved_model.save(Model(), directory)
    serve = "import sys, tensorflow as tf; print(tf.saved_model.load(sys.argv[1])(tf.constant(['from a model'])).numpy())"
    served = subprocess.run([sys.executable, "-c", serve, directory], check=True, stdout=subprocess.PIPE)
    assert b"from a m" in served.stdout, served.stdout
