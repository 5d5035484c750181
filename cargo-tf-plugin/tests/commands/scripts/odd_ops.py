"""Uses the package with the ops in `ODD` of ops.rs."""

import tensorflow as tf
import odd_ops
assert odd_ops.BY_HAND == 'by hand' and odd_ops.ops.__all__
rows = tf.ragged.constant([[1.0, 2.0], [], [4.0]])
result = odd_ops.odd_row_sums(rows)
assert type(result).__name__ == 'OddRowSumsOutput' and result._fields == ('sums', 'lengths'), result
assert result.sums.numpy().tolist() == [3, 0, 4] and result.lengths.numpy().tolist() == [2, 0, 1]
# Lists and tensors are rows, too.
assert odd_ops.odd_row_sums([[1.0], [2.0, 3.0]]).sums.numpy().tolist() == [1, 5]
assert odd_ops.odd_row_sums(tf.ones([2, 3])).sums.numpy().tolist() == [3, 3]
try:
    odd_ops.odd_row_sums(tf.ragged.constant([[[1.0]], []]))
except ValueError as error:
    assert '2 ragged dimensions' in str(error), error
else:
    raise AssertionError('two ragged dimensions')
def gradient(values):
    with tf.GradientTape() as tape:
        tape.watch(values)
        rows = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])
        sums = odd_ops.odd_row_sums(rows).sums * [1.0, 5.0, 7.0]
    return tape.gradient(sums, values)
for compute in (gradient, tf.function(gradient)):
    assert compute(tf.ones([3])).numpy().tolist() == [1, 1, 7]
x = tf.constant([3.0])
with tf.GradientTape() as tape:
    tape.watch(x)
    square = odd_ops.odd_square(lambda_=x)
assert tape.gradient(square, x).numpy().tolist() == [6]
assert odd_ops.odd_zeros(['a', 'b'], T=tf.int64).dtype == tf.int64
# The first type is the default, also of an empty list.
assert odd_ops.odd_zeros(['a', 'b']).dtype == tf.float32
# Lists become the types that the op has, also lists without values.
for xs, rows in (([], [[1, 2], []]), ([[1.5], [2.0]], [[1.5], [2]]), ([tf.constant(1, tf.int64)], [[], []])):
    for count in (odd_ops.odd_count, tf.function(odd_ops.odd_count)):
        assert count(xs, rows).numpy().tolist() == [len(xs), 2]
for rows, sums in (([[1, 2], [3]], [3, 3]), ([[], []], [0, 0]), ([], [])):
    assert odd_ops.odd_row_sums(rows).sums.numpy().tolist() == sums
def gradients(bias):
    x = tf.ones([3])
    with tf.GradientTape() as tape:
        tape.watch([x, bias])
        y = odd_ops.odd_bias(x, bias) + odd_ops.odd_bias(x)
    return tape.gradient(y, [x, bias])
for compute in (gradients, tf.function(gradients)):
    assert [one.numpy().tolist() for one in compute(tf.constant(2.0))] == [[2, 2, 2], 3]
# An output that may be missing.
for largest in (odd_ops.odd_largest, tf.function(odd_ops.odd_largest)):
    assert largest([1.0, 3.0, 2.0]).numpy() == 3
    assert largest([1.0], num_largest=0) is None
    x = tf.constant([1.0, 3.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        double = 2.0 * largest(x)
    assert tape.gradient(double, x).numpy().tolist() == [0, 2, 0]
assert 'A tensor of float32 with the shape [], or None.' in odd_ops.odd_largest.__doc__
try:
    odd_ops.odd_largest(tf.zeros([0]))
except tf.errors.InternalError as error:
    assert 'output `largest`: the op returned none, and the node has one tensor' in str(error), error
else:
    raise AssertionError('an output is missing')
assert odd_ops.odd_add([1.0], limit=1.5).numpy().tolist() == [1.5]
assert odd_ops.odd_add([1.0], step=7).numpy().tolist() == [8]
if hasattr(tf.keras, 'Operation'):
    start = tf.keras.Input((2,))
    model = tf.keras.Model(start, odd_ops.odd_add(start, step=3))
    assert model(tf.zeros([1, 2])).numpy().tolist() == [[3, 3]]
assert '"quoted", and with a \\' in odd_ops.odd_row_sums.__doc__
print('the odd ones work in', tf.__version__)
