"""Steps with the ops of examples/textops; one an argument, in their order.

    load=SO        loads the library, for the steps after it
    eager          each op computes, from scalars to three dimensions
    gradient       that of TextDampen is its slope
    graph          functions know the shapes that are declared, and in-place results leave inputs alone
    data           tf.data runs ops in parallel, on batches and on elements
    empty          of nothing come empty results
    errors         they name the input or the attribute, and what to do
    threads        16 threads get the results of one
    forks          a child computes as its parent, with threads
    save=DIR       saves a model with all ops
    restore=DIR    that model computes, in a process that only has the library

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import concurrent.futures
import os

import numpy as np
import tensorflow as tf

from steps import check, fails, same, take

ops = None
TEXTS = ["To be", "", "  or  not ", "\u00c4hre \U0001f4d6", "nul\0 in"]
WORDS = [["to", "be"], [], ["or", "not"], ["\u00e4hre", "\U0001f4d6"], ["nul\0", "in"]]


def words(text, lower=False):
    values, row_splits = ops.text_words(text, lower=lower)
    return tf.RaggedTensor.from_row_splits(values, row_splits)


def texts_of(ragged):
    return [[word.decode() for word in row] for row in ragged.to_list()]


def lists(tensors):
    return [np.asarray(tensor).tolist() for tensor in tensors]


def load(path):
    global ops
    ops = tf.load_op_library(path)

    @tf.RegisterGradient("TextDampen")
    def _(op, grad):
        return ops.text_dampen_grad(op.inputs[0], grad, scale=op.get_attr("scale"))


def eager():
    same(texts_of(words(TEXTS, lower=True)), WORDS, "the words")
    same(texts_of(words(["A b"])), [["A", "b"]], "the default")
    for dtype in (tf.float32, tf.float64):
        for shape in ([], [4], [2, 0, 3], [2, 3, 4]):
            counts = np.arange(np.prod(shape, dtype=int)).reshape(shape)
            dampened = ops.text_dampen(tf.constant(counts, dtype), scale=2.0)
            same(dampened.dtype, dtype, "the type")
            check(np.allclose(dampened, np.log1p(counts / 2)), "%s %s: %s" % (dtype, shape, dampened))
    arguments = dict(pattern="n=([0-9]+)", case="ignore")
    columns = ops.text_extract([["n=1", "N=22"], ["-", "a n=3"]], fallback=["0"], **arguments)
    same(lists(columns), [[b"1", b"22"], [b"0", b"3"]], "the matches")
    same(lists(ops.text_extract(["n=1"], fallback=[], **arguments)), [b"1"], "without a fallback")
    same(lists(ops.text_extract([[b"\xff n=7 \0"]], fallback=[], **arguments)), [[b"7"]], "odd bytes")
    same(ops.text_distance("kitten", "sitting").numpy(), 3, "the distance of scalars")
    pairs = ops.text_distance([["kitten", ""]], [["sitting", "\u00fcber"]])
    same(pairs.numpy().tolist(), [[3, 4]], "the distances")


def gradient():
    counts = tf.constant([0.0, 1.0, 7.0], tf.float64)
    theory, numbers = tf.test.compute_gradient(lambda counts: ops.text_dampen(counts, scale=2.0), [counts])
    check(np.allclose(theory, numbers, atol=1e-6), "%s %s" % (theory, numbers))


def graph():
    spec = tf.TensorSpec([None, 3], tf.float32)

    @tf.function(input_signature=[spec])
    def function(counts):
        kept = counts * 2.0
        dampened = ops.text_dampen(kept)
        same(dampened.shape.as_list(), [None, 3], "the shape of a result")
        # An inner value that nothing else uses: TensorFlow lets the op have its memory.
        alone = ops.text_dampen(counts * 2.0 + 0.0)
        return kept, dampened, alone

    counts = tf.constant([[0.0, 1.0, 2.0]])
    kept, dampened, alone = function(counts)
    same(counts.numpy().tolist(), [[0.0, 1.0, 2.0]], "the argument")
    same(kept.numpy().tolist(), [[0.0, 2.0, 4.0]], "the input, which is used twice")
    check(np.allclose(dampened, np.log1p([[0, 2, 4]])), "%s" % dampened)
    same(alone.numpy().tolist(), dampened.numpy().tolist(), "the result in place")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def texts(a, b):
        distances = ops.text_distance(a, b)
        same(distances.shape.as_list(), [None], "the shape of distances")
        split = words(a)
        same(split.shape.as_list(), [None, None], "the shape of words")
        return distances, split

    distances, split = texts(tf.constant(["a b", ""]), tf.constant(["a", "xy"]))
    same(distances.numpy().tolist(), [2, 2], "the distances")
    same(texts_of(split), [["a", "b"], []], "the words")


def data():
    count = 1000
    lines = ["%d line of %d" % (at, at % 7) for at in range(count)]
    dataset = tf.data.Dataset.from_tensor_slices(lines)
    for size in (1, 7, 64):
        batches = dataset.batch(size).map(words, num_parallel_calls=4)
        rows = [row for batch in batches for row in texts_of(batch)]
        same(rows, [line.split() for line in lines], "batches of %d" % size)
    distances = dataset.map(lambda line: ops.text_distance(line, "line of"), num_parallel_calls=4)
    same(list(distances.as_numpy_iterator()), [len(line) - 7 for line in lines], "elements")
    unbatched = dataset.batch(8).map(lambda texts: ops.text_words(texts)[0]).unbatch().batch(100)
    same(sum(len(batch) for batch in unbatched), 4 * count, "words that were taken apart")


def empty():
    same(texts_of(words(tf.constant([], tf.string))), [], "words of no text")
    same(texts_of(words(["", " "])), [[], []], "words of empty texts")
    same(ops.text_dampen(tf.zeros([0, 3])).shape, (0, 3), "no counts")
    nothing = tf.zeros([2, 0], tf.string)
    same(ops.text_distance(nothing, nothing).shape, (2, 0), "no pairs")
    (column,) = ops.text_extract([nothing], fallback=[], pattern="a")
    same(column.shape, (2, 0), "no texts")
    same(ops.text_extract([], fallback=[], pattern="a"), [], "no columns")


def errors():
    invalid = tf.errors.InvalidArgumentError
    fails(invalid, "input `text` has the shape [1, 1]; it should be [n]", ops.text_words, [["a"]])
    fails(invalid, "string 1 of input `text` is not UTF-8 at byte 2", ops.text_words, [b"a", b"a \xff"])
    text = "input `b` has the shape [2]; it should be [..s], where `s` is [1] in `a`"
    fails(invalid, text, ops.text_distance, ["a"], ["a", "b"])
    text = 'columns[1]: text 0, "abc", does not match "[0-9]"; pass a `fallback`'
    fails(invalid, text, ops.text_extract, [["1"], ["abc"]], fallback=[], pattern="[0-9]")
    text = "attribute `pattern`: regex parse error"
    fails(invalid, text, ops.text_extract, [["abc"]], fallback=[], pattern="(")
    text = "is not in the list of allowed values"
    fails(invalid, text, ops.text_extract, [["abc"]], fallback=[], pattern="a", case="other")
    text = "input `fallback`: expected none or one tensor, got 2"
    fails(invalid, text, ops.text_extract, [["abc"]], fallback=["a", "b"], pattern="a")

    # A graph is not built of shapes that do not fit.
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.string)])
    def function(text):
        return ops.text_words(text)

    text = "input `text` has the shape [-1, 2]; it should be [n]"
    fails(ValueError, text, function.get_concrete_function)
    # Everything goes on.
    eager()


def threads():
    texts = ["%d and %s" % (at, "x" * (at % 50)) for at in range(2000)]
    turned = texts[::-1]
    expected = [ops.text_distance(texts, turned).numpy().tolist(), texts_of(words(texts))]

    def work(_):
        for _ in range(5):
            results = [ops.text_distance(texts, turned).numpy().tolist(), texts_of(words(texts))]
            same(results, expected, "the results of a thread")

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))


def forks():
    texts = ["%d" % at for at in range(5000)]
    expected = ops.text_distance(texts, texts[::-1]).numpy().tolist()
    # The child calls the op in its own thread: those of TensorFlow stay with the parent.
    child = os.fork()
    if child == 0:
        ok = ops.text_distance(texts, texts[::-1]).numpy().tolist() == expected
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    same(status, 0, "the status of the child")


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, text):
        (numbers,) = ops.text_extract([text], fallback=["0"], pattern="[0-9]+")
        counts = tf.strings.to_number(numbers)
        return {
            "words": words(text, lower=True).values,
            "lengths": words(text).row_lengths(),
            "dampened": ops.text_dampen(counts),
            "distances": ops.text_distance(text, numbers),
        }


def save(directory):
    tf.saved_model.save(Model(), directory)


def restore(directory):
    model = tf.saved_model.load(directory)
    results = model(tf.constant(["To 3", "be"]))
    same(results["words"].numpy().tolist(), [b"to", b"3", b"be"], "the words")
    same(results["lengths"].numpy().tolist(), [2, 1], "the lengths")
    check(np.allclose(results["dampened"], np.log1p([3, 0])), "%s" % results["dampened"])
    same(results["distances"].numpy().tolist(), [3, 2], "the distances")


take(load, eager, gradient, graph, data, empty, errors, threads, forks, save, restore)
