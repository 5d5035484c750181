"""Where programs use the ops: graphs, datasets, threads, forks, Keras, SavedModels; and wrong arguments.

usage: uses.py TOKENIZER DIRECTORY
"""

import concurrent.futures
import os
import pathlib
import pickle
import subprocess
import sys

import tensorflow as tf

from tensorflow_tokenizers import Tokenizer, TokenizerLayer

TEXTS = ["hello world", "", "unaffable \0 naïve", "the quick brown fox jumps over the lazy dog"]


def raises(kind, part, function):
    try:
        function()
    except kind as error:
        assert part in str(error), (part, str(error))
        return
    raise AssertionError("%s is expected: %s" % (kind.__name__, part))


def shapes(tok):
    expected = tok.tokenize(TEXTS).to_list()
    assert tok.tokenize(TEXTS[0]).numpy().tolist() == expected[0]
    square = tok.tokenize([TEXTS[:2], TEXTS[2:]])
    assert square.to_list() == [expected[:2], expected[2:]] and square.shape == [2, 2, None]
    ragged = tok.tokenize(tf.ragged.constant([TEXTS[:1], [], TEXTS[1:]]))
    assert ragged.to_list() == [expected[:1], [], expected[1:]]
    assert tok.tokenize(tf.zeros([0], tf.string)).to_list() == []
    assert tok.tokenize(tf.zeros([2, 0], tf.string)).to_list() == [[], []]
    assert tok.encode(tf.zeros([0], tf.string))["input_ids"].shape == [0, 0]
    assert tok.encode(tf.zeros([0], tf.string), max_length=4, padding="max_length")["input_ids"].shape == [0, 4]
    assert tok.detokenize(tf.zeros([0, 3], tf.int32)).shape == [0]
    assert tok.detokenize(tf.zeros([3, 0], tf.int64)).numpy().tolist() == [b""] * 3
    assert tok.encode([TEXTS])["input_ids"].shape[:2] == [1, 4]
    assert tok.tokenize(TEXTS, out_type=tf.int64).dtype == tf.int64
    assert tok.tokenize(["hi you"], out_type=tf.string).to_list() == [[b"[CLS]", b"hi", b"you", b"[SEP]"]]
    assert tok.tokenize_with_offsets([["hi you"]])[1].to_list() == [[[0, 0, 3, 0]]]
    assert [one.numpy().tolist() for one in tok.tokenize_with_offsets("hé", add_special_tokens=False)[1:]] == [[0], [3]]
    text = ["hello world", "the fox"]
    for ids in (tok.tokenize(text), tok.encode(text, pad_id=0)["input_ids"]):
        assert tok.detokenize(ids).numpy().tolist() == [b"hello world", b"the fox"]
    assert tok.detokenize(tok.tokenize([text])).shape[0] == 1
    assert tok.detokenize(tok.tokenize("hello")).numpy() == b"hello"
    assert tok.detokenize([[], []]).numpy().tolist() == [b"", b""]
    assert tok.id_to_token([]).shape == [0]
    assert tok.token_to_id([["[CLS]", "no such token"]]).numpy().tolist() == [[101, -1]]
    left = tok.encode(["a", "a b"], padding_side="left", pad_to_multiple_of=3)
    assert left["attention_mask"].numpy().tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]]


def graphs(tok):
    expected = tok.tokenize(TEXTS).to_list()
    specific = tf.function(tok.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    assert specific(tf.constant(TEXTS)).to_list() == expected

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string)])
    def square(texts):
        return tok.tokenize(texts)

    assert square(tf.constant([TEXTS, TEXTS])).to_list() == [expected, expected]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def static(texts):
        encoded = tok.encode(texts, max_length=8, padding="max_length", pad_to_multiple_of=0)
        assert encoded["input_ids"].shape.as_list() == [None, 8], encoded
        return encoded

    assert static(tf.constant(TEXTS))["input_ids"].shape == [4, 8]
    raises(ValueError, "the rank of text is unknown; say it with tf.ensure_shape", lambda: tf.function(
        tok.tokenize, input_signature=[tf.TensorSpec(None, tf.string)])(tf.constant(TEXTS)))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        ids = tok.tokenize(tf.constant(TEXTS))
        assert session.run(ids).to_list() == expected


def datasets(tok):
    lines = TEXTS * 256
    expected = [row for row in tok.tokenize(TEXTS).to_list()] * 256
    for size in (1, 32, 1000):
        dataset = tf.data.Dataset.from_tensor_slices(lines).batch(size).map(tok.tokenize, num_parallel_calls=4)
        assert [row for batch in dataset for row in batch.to_list()] == expected, size
    dataset = tf.data.Dataset.from_tensor_slices(lines).map(tok.tokenize, num_parallel_calls=4)
    assert [row.numpy().tolist() for row in dataset] == expected


    # The rank of ids is known in graphs.
    padded = tf.data.Dataset.from_tensor_slices(TEXTS).map(tok.tokenize).padded_batch(4)
    assert [len(row) for row in next(iter(padded))] == [max(map(len, expected[:4]))] * 4
    offsets = tf.data.Dataset.from_tensor_slices(TEXTS).map(tok.tokenize_with_offsets).padded_batch(4)
    assert len({tuple(one.shape) for one in next(iter(offsets))}) == 1


def threads(tok):
    # More tokenizers than a kernel remembers, and new ones in between.
    others = [Tokenizer(tok.to_str() + " " * n) for n in range(5)]
    expected = tok.tokenize(TEXTS).to_list()

    def work(n):
        return all(others[(n + i) % 5].tokenize(TEXTS).to_list() == expected for i in range(50))

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    assert pickle.loads(pickle.dumps(tok)).tokenize(TEXTS).to_list() == expected


def forks(tok):
    expected = tok.tokenize(TEXTS * 200).to_list()
    child = os.fork()
    if child == 0:
        try:
            # Also a JSON that the parent has not read.
            right = tok.tokenize(TEXTS * 200).to_list() == expected
            right = right and Tokenizer(tok.to_str() + "\n").tokenize(TEXTS * 200).to_list() == expected
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0


def wrong(tok):
    invalid = tf.errors.InvalidArgumentError
    raises(invalid, 'tokenizer.json has no key "model", its keys are [a]', lambda: Tokenizer('{"a": 1}'))
    raises(invalid, "this plugin reads \"1.0\"", lambda: Tokenizer(tok.to_str().replace('"1.0"', '"3.0"', 1)))
    raises(invalid, "tokenizer.json is not a JSON object", lambda: Tokenizer(b"hello"))
    raises(invalid, "tokenizer.json has 100000000 bytes, the limit is 67108864", lambda: Tokenizer(b" " * 100_000_000))
    raises(TypeError, "expected the content of a tokenizer.json", lambda: Tokenizer(None))
    raises(invalid, "id 30522 at index 2 is not in the vocabulary, which has 30522", lambda: tok.detokenize([[1, 2], [30522, 3]]))
    raises(invalid, "id -1 at index 0", lambda: tok.id_to_token([-1]))
    assert tok.detokenize([-1, 7592, 10**9], errors="ignore").numpy() == b"hello"
    assert tok.id_to_token([-1], errors="ignore").numpy().tolist() == [b""]
    raises(invalid, "should be [..s], where `s` is [1] in `text`", lambda: tok.tokenize(["a"], ["b", "c"]))
    raises(invalid, "the tokenizer adds 2 special tokens; set max_length to at least 2", lambda: tok.tokenize(["a"], max_length=1))
    raises(invalid, "\"only_second\" needs a second text", lambda: tok.tokenize(["a b"], max_length=3, truncation="only_second"))
    raises(invalid, "set max_length", lambda: tok.encode(["a"], padding="max_length"))
    short = dict(padding="max_length", max_length=4, truncation=False)
    assert tok.encode(["hello"], **short)["attention_mask"].numpy().tolist() == [[1, 1, 1, 0]]
    raises(invalid, "a row has 5 ids, and rows are padded to 4; set padding", lambda: tok.encode(["a b c"], **short))
    raises(invalid, "truncation needs a length", lambda: tok.tokenize(["a"], truncation="only_first"))
    raises(ValueError, "set it to 1 or more", lambda: tok.tokenize(["a"], max_length=0))
    raises(ValueError, "detokenize needs rows of ids", lambda: tok.detokenize(5))
    first, second = tf.ragged.constant([["a", "b"], ["c"]]), tf.ragged.constant([["a"], ["b", "c"]])
    for tokenize in (tok.tokenize, tf.function(tok.tokenize)):
        raises(invalid, "rows of different lengths", lambda: tokenize(first, second))
        assert tokenize(first, first).shape[0] == 2
    deeper = tf.ragged.constant([[["a"], ["b"]], [["c"]]])
    raises(ValueError, "rows of different lengths", lambda: tok.tokenize(first, deeper))
    uniform = tf.RaggedTensor.from_row_splits(tf.zeros([3, 2], tf.int32), [0, 1, 3])
    raises(ValueError, "detokenize needs ids whose last dimension is ragged", lambda: tok.detokenize(uniform))
    raises(ValueError, "encode returns rectangles, and text is ragged", lambda: tok.encode(tf.ragged.constant([["a"], []])))
    raises(tf.errors.ResourceExhaustedError, "no memory for int32 of the shape [1, 1125899906842624]", lambda: tok.encode(["a"], max_length=2**50, padding="max_length"))
    raises(ValueError, "text is ragged, and pair is not", lambda: tok.tokenize(tf.ragged.constant([["a"]]), ["b"]))
    # The program goes on.
    assert tok.tokenize(["hello"]).to_list() == [[101, 7592, 102]]


def classifier(tok):
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.Input(shape=(), dtype="string"),
            tok.layer(max_length=16),
            keras.layers.Embedding(tok.vocab_size(), 8, mask_zero=True),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.05), "binary_crossentropy", metrics=["accuracy"])
    good = ["a good film", "good and great", "what a great story", "great fun"]
    bad = ["a bad film", "bad and dull", "what a dull story", "dull work"]
    data = tf.data.Dataset.from_tensor_slices((good + bad, [1.0] * 4 + [0.0] * 4)).batch(4).repeat(30)
    model.fit(data, verbose=0)
    return model


def keras_and_saved_models(tok, directory):
    keras = tf.keras
    model = classifier(tok)
    question = tf.constant(["a great film", "a dull film", ""])
    expected = model.predict(question, verbose=0).ravel().tolist()
    assert expected[0] > 0.6 > 0.4 > expected[1], expected
    assert tok.layer()(question).shape == [3, 5]
    named = tok.layer(max_length=4, output="dict")(question)
    assert sorted(named) == ["attention_mask", "input_ids", "token_type_ids"]

    if hasattr(keras, "KerasTensor"):
        # Keras 3 asks for the shape and the type.
        for arguments, length in (({}, None), ({"max_length": 4}, 4), ({"max_length": 100, "pad_to_multiple_of": 64}, 128)):
            for out_type in (tf.int32, tf.int64):
                layer = tok.layer(out_type=out_type, **arguments)
                symbol = layer(keras.Input((), dtype="string")) + 1
                assert (symbol.dtype, symbol.shape) == (out_type.name, (None, length)), symbol
                assert layer(question).dtype == out_type
                assert length in (None, layer(question).shape[1])
        named = tok.layer(max_length=4, output="dict")(keras.Input((2,), dtype="string"))
        assert {(one.dtype, one.shape) for one in named.values()} == {("int32", (None, 2, 4))}

    model.save(directory / "model.keras")
    again = tf.keras.models.load_model(directory / "model.keras")
    assert again.predict(question, verbose=0).ravel().tolist() == expected
    assert isinstance(again.layers[0], TokenizerLayer)

    if hasattr(tf.keras, "Operation"):
        model.export(directory / "exported")
    else:
        # Keras 2.
        model.save(directory / "exported", save_format="tf")
    os.rename(directory / "exported", directory / "moved")
    serve = (
        "import sys, tensorflow as tf\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "function = model.serve if hasattr(model, 'serve') else model.signatures['serving_default']\n"
        "result = function(tf.constant(['a great film', 'a dull film', '']))\n"
        "result = list(result.values())[0] if isinstance(result, dict) else result\n"
        "assert 'tensorflow_tokenizers' not in sys.modules\n"
        "print('served', *result.numpy().ravel().tolist())\n"
    )
    found = subprocess.run([sys.executable, "-c", serve, str(directory / "moved")], stdout=subprocess.PIPE, text=True, check=True)
    served = [line for line in found.stdout.splitlines() if line.startswith("served ")][0]
    served = [float(number) for number in served.split()[1:]]
    assert all(abs(a - b) < 1e-5 for a, b in zip(served, expected)), (served, expected)


def main(tokenizer, directory):
    tok = Tokenizer.from_file(tokenizer)
    shapes(tok)
    graphs(tok)
    datasets(tok)
    threads(tok)
    wrong(tok)
    keras_and_saved_models(tok, pathlib.Path(directory))
    forks(tok)
    print("ok")


main(*sys.argv[1:])
