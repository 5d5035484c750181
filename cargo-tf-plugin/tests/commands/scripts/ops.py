"""Uses the wheel of examples/textops: python ops.py DIRECTORY"""

import inspect
import pydoc
import subprocess
import sys

import numpy as np
import tensorflow as tf

import textops
from textops import text_dampen, text_distance, text_extract, text_words

saved = sys.argv[1] + "/saved"

# Types and documentation are those of the Rust code.
signature = inspect.signature(text_extract)
assert list(signature.parameters) == ["columns", "fallback", "pattern", "case", "name"], signature
assert signature.parameters["fallback"].default is None
assert signature.parameters["pattern"].kind is inspect.Parameter.KEYWORD_ONLY
assert signature.parameters["pattern"].default is inspect.Parameter.empty
assert signature.parameters["case"].default == "exact"
help_text = pydoc.render_doc(textops, renderer=pydoc.plaintext)
for words in (
    "Splits texts at white space.",
    "lower: Whether to convert the words to lower case. False by default.",
    "case: Whether lower and upper case are the same. One of \"exact\", \"ignore\"; \"exact\" by default.",
    "fallback: A tensor of string with the shape [], or None.",
    "columns: A list of tensors of string with the shape [..s].",
    "words: A ragged tensor of string",
    "counts: A tensor of float32 or float64 with the shape [..s].",
):
    assert words in help_text, (words, help_text)

# Ragged results, lists, optional inputs.
words = text_words(["To  be", "or", ""], lower=True)
assert isinstance(words, tf.RaggedTensor)
assert words.to_list() == [[b"to", b"be"], [b"or"], []], words
columns = text_extract([["a1", "b2"], ["c3", "d4"]], pattern=r"\d")
assert [column.numpy().tolist() for column in columns] == [[b"1", b"2"], [b"3", b"4"]]
[column] = text_extract([["a1", "b"]], "none", pattern=r"\d")
assert column.numpy().tolist() == [b"1", b"none"]
assert text_extract([], pattern="x") == []
try:
    text_extract([["b"]], pattern=r"\d")
except tf.errors.InvalidArgumentError as error:
    assert "pass a `fallback`" in str(error), error
else:
    raise AssertionError("a text without a match")
try:
    text_extract([["b"]], pattern="x", case="no")
except tf.errors.InvalidArgumentError as error:
    assert "case" in str(error), error
else:
    raise AssertionError("a case that is not allowed")

# Graphs and pipelines.
assert tf.function(text_words)(tf.constant(["x y"])).to_list() == [[b"x", b"y"]]
lines = tf.data.Dataset.from_tensor_slices(["a b", "c", "d e f"]).batch(2)
lines = lines.map(text_words, num_parallel_calls=2)
assert [batch.to_list() for batch in lines] == [[[b"a", b"b"], [b"c"]], [[b"d", b"e", b"f"]]]
assert text_distance(["abc"], ["abd"]).numpy().tolist() == [1]


# The gradient, next to finite differences.
def loss(counts):
    return tf.reduce_sum(tf.square(text_dampen(counts, scale=2.0)))


def gradient(counts):
    with tf.GradientTape() as tape:
        tape.watch(counts)
        total = loss(counts)
    return tape.gradient(total, counts)


counts = np.array([0.5, 1.5, 3.0])
steps = np.eye(3) * 1e-6
differences = [float(loss(counts + step) - loss(counts - step)) / 2e-6 for step in steps]
for compute in (gradient, tf.function(gradient)):
    computed = compute(tf.constant(counts)).numpy()
    assert np.allclose(computed, differences), (computed, differences)

# Keras: placeholders, training, a file.
keras = tf.keras
start = keras.Input((3,), dtype="float32")
model = keras.Model(start, keras.layers.Dense(1)(text_dampen(start, scale=3.0)))
model.compile("sgd", "mse")
model.fit(np.ones((4, 3), "float32"), np.ones((4, 1), "float32"), verbose=0)
model.save(sys.argv[1] + "/model.keras")
again = keras.models.load_model(sys.argv[1] + "/model.keras")
one = np.ones((1, 3), "float32")
assert np.allclose(again(one), model(one))

if hasattr(keras, "Operation"):
    # Keras 3, in another process: the package registers what the file names. `import tensorflow` has imported Keras.
    load = """
import sys
import textops
import numpy as np
import tensorflow as tf
model = tf.keras.models.load_model(sys.argv[1])
print("loaded", float(model(np.ones((1, 3), "float32"))[0, 0]))
"""
    loaded = subprocess.run([sys.executable, "-c", load, sys.argv[1] + "/model.keras"], check=True, stdout=subprocess.PIPE)
    value = float(loaded.stdout.split(b"loaded ")[1])
    assert np.isclose(value, float(model(one)[0, 0])), (value, model(one))


# A SavedModel in a process that imports nothing but TensorFlow.
class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, text):
        return text_words(text, lower=True).to_tensor()


tf.saved_model.save(Model(), saved)
serve = """
import sys
import tensorflow as tf
print(tf.saved_model.load(sys.argv[1])(tf.constant(["A b", "c"])).numpy().tolist())
assert "textops" not in sys.modules
"""
served = subprocess.run([sys.executable, "-c", serve, saved], check=True, stdout=subprocess.PIPE)
assert b"[[b'a', b'b'], [b'c', b'']]" in served.stdout, served.stdout

# It is one library for TensorFlow, wherever it was loaded from.
with open("/proc/self/maps") as maps:
    mapped = {line.split(None, 5)[5].strip() for line in maps if "libtextops" in line}
assert mapped == {textops.plugin_path}, mapped
print("all of it works in", tf.__version__)
