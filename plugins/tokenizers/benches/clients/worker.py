"""Tokenizes the lines of a file in `tf.data`, by one of the contestants: see `benches/python/bench_worker.py`.

    python worker.py ops | py_function | bert | fast_bert | sentencepiece --files DIRECTORY
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../benches/python"))
import bench_worker  # noqa: E402


def ops(tf, path):
    from tensorflow_tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path + ".json")
    return lambda texts: tokenizer.tokenize(texts, add_special_tokens=False)


def py_function(tf, path):
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path + ".json")
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts):
        texts = [text.decode(errors="replace") for text in texts.numpy()]
        # The fastest of its methods: many texts, without offsets.
        rows = [row.ids for row in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        values = np.fromiter((id for row in rows for id in row), np.int32)
        return values, np.fromiter(map(len, rows), np.int64)

    def tokenize(texts):
        values, lengths = tf.py_function(encode, [texts], [tf.int32, tf.int64])
        return tf.RaggedTensor.from_row_lengths(tf.ensure_shape(values, [None]), tf.ensure_shape(lengths, [None]), validate=False)

    return tokenize


def bert(tf, path):
    import tensorflow_text

    tokenizer = tensorflow_text.BertTokenizer(path + ".txt", lower_case=True, token_out_type=tf.int32)
    return lambda texts: tokenizer.tokenize(texts).merge_dims(-2, -1)


def fast_bert(tf, path):
    import tensorflow_text

    with open(path + ".txt") as file:
        tokens = file.read().splitlines()
    tokenizer = tensorflow_text.FastBertTokenizer(tokens, lower_case_nfd_strip_accents=True, token_out_type=tf.int32)
    return tokenizer.tokenize


def sentencepiece(tf, path):
    import tensorflow_text

    with open(path + ".model", "rb") as file:
        tokenizer = tensorflow_text.SentencepieceTokenizer(file.read())
    return tokenizer.tokenize


class Client:
    def __init__(self, arguments):
        import tensorflow as tf

        self.tf = tf
        self.directory = arguments.files
        self.make = globals()[arguments.contestant]
        self.known = {}
        self.VERSION = "TensorFlow " + tf.__version__

    def prepare(self, tokenizer, file, batch, lines=-1):
        """Builds the graph that `tokenize` runs."""
        tf = self.tf
        if tokenizer not in self.known:
            self.known[tokenizer] = self.make(tf, os.path.join(self.directory, tokenizer))
        dataset = tf.data.TextLineDataset(os.path.join(self.directory, file)).take(lines).batch(batch)
        dataset = dataset.map(self.known[tokenizer], num_parallel_calls=tf.data.AUTOTUNE)

        def count():
            first = tf.constant(0, tf.int64)
            return dataset.reduce(first, lambda count, ids: count + tf.shape(ids.flat_values, tf.int64)[0])

        self.count = tf.function(count).get_concrete_function()

    def tokenize(self):
        """Tokenizes lines of a file, and returns the number of ids."""
        return int(self.count())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant", choices=["ops", "py_function", "bert", "fast_bert", "sentencepiece"])
    parser.add_argument("--files", required=True)
    arguments = parser.parse_args()
    bench_worker.serve(lambda: Client(arguments))


main()
