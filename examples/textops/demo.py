"""Uses each op of this example.

    cargo build -p textops
    python examples/textops/demo.py target/debug/libtextops.so
"""
import sys

import tensorflow as tf

ops = tf.load_op_library(sys.argv[1])


def words(text, lower=False):
    """The wrapper that `cargo tf-plugin wheel` generates joins the two tensors in the same way."""
    values, row_splits = ops.text_words(text, lower=lower)
    return tf.RaggedTensor.from_row_splits(values, row_splits)


@tf.RegisterGradient("TextDampen")
def _(op, grad):
    return ops.text_dampen_grad(op.inputs[0], grad, scale=op.get_attr("scale"))


# A ragged result.
print(words(["To be", "or not to be"], lower=True))

# In tf.data, in parallel, without Python's lock.
lines = tf.data.Dataset.from_tensor_slices(["to be or", "not", "to be"]).batch(2)
for batch in lines.map(words, num_parallel_calls=tf.data.AUTOTUNE):
    print(batch.row_lengths().numpy())

# A gradient, for float32 and float64.
counts = tf.constant([0.0, 1.0, 3.0])
with tf.GradientTape() as tape:
    tape.watch(counts)
    dampened = ops.text_dampen(counts)
print(dampened.numpy(), tape.gradient(dampened, counts).numpy())

# A list of columns, an optional input, a pattern that is compiled once.
columns = ops.text_extract([["n=1", "N=22"], ["-", "n=3"]], fallback=["0"], pattern="n=([0-9]+)", case="ignore")
print([column.numpy().tolist() for column in columns])

# Several threads for one large batch.
texts = tf.strings.as_string(tf.range(100_000))
print(tf.reduce_sum(ops.text_distance(texts, tf.reverse(texts, [0]))).numpy())

# An error of the op is a Python exception.
try:
    ops.text_extract([["abc"]], fallback=[], pattern="[0-9]")
except tf.errors.InvalidArgumentError as error:
    print(error.message)
