"""The ops return what Python's `tokenizers` returns: the files that reference.py has written, through TensorFlow.

usage: parity.py DIRECTORY
"""

import json
import pathlib
import sys
from array import array

import tensorflow as tf

from tensorflow_tokenizers import Tokenizer

BATCH = 512


class Reader:
    def __init__(self, path):
        self.data = path.read_bytes()
        self.at = 0

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data), "the file of Python's results ends early"
        return self.data[self.at - size : self.at]

    def numbers(self, count):
        return list(array("I", self.take(4 * count)))

    def number(self):
        return self.numbers(1)[0]


def texts_of(directory):
    reader = Reader(directory / "texts.bin")
    texts = []
    while reader.at < len(reader.data):
        texts.append(reader.take(reader.number()))
    return texts


def expected_rows(reader, count):
    """Ids, type ids, and offsets in characters and bytes for each text; None where Python fails."""
    rows = []
    for _ in range(count):
        if reader.number() == 1:
            rows.append(None)
            continue
        length = reader.number()
        rows.append([reader.numbers(length) for _ in range(6)])
    return rows


def keywords_of(setting):
    keywords = {"add_special_tokens": setting["add_special_tokens"]}
    if "max_length" in setting:
        keywords.update(
            max_length=setting["max_length"], truncation=setting["strategy"], truncation_side=setting["side"]
        )
    return keywords


def compare(tokenizer, setting, texts, expected, name):
    chosen = [i for i, row in zip(range(0, len(texts), setting["share"]), expected) if row is not None]
    expected = [row for row in expected if row is not None]
    keywords = keywords_of(setting)
    for start in range(0, len(chosen), BATCH):
        numbers, rows = chosen[start : start + BATCH], expected[start : start + BATCH]
        text = tf.constant([texts[i] for i in numbers])
        pair = tf.constant([texts[(i + 1) % len(texts)] for i in numbers]) if setting["pair"] else None
        ids = tokenizer.tokenize(text, pair, **keywords)
        assert ids.to_list() == [row[0] for row in rows], (name, setting)
        for unit, column in (("UTF8_CHAR", 2), ("BYTE", 4)):
            got = tokenizer.tokenize_with_offsets(text, pair, unit=unit, out_type=tf.int64, **keywords)
            assert got[0].to_list() == [row[0] for row in rows], (name, setting)
            assert got[1].to_list() == [row[column] for row in rows], (name, setting, unit)
            assert got[2].to_list() == [row[column + 1] for row in rows], (name, setting, unit)
        encoded = tokenizer.encode(text, pair, pad_id=7, pad_type_id=9, **keywords)
        width = max((len(row[0]) for row in rows), default=0)
        for key, column, pad in (("input_ids", 0, 7), ("token_type_ids", 1, 9)):
            padded = [row[column] + [pad] * (width - len(row[column])) for row in rows]
            assert encoded[key].numpy().tolist() == padded, (name, setting, key)
        mask = [[1] * len(row[0]) + [0] * (width - len(row[0])) for row in rows]
        assert encoded["attention_mask"].numpy().tolist() == mask, (name, setting)


def main(directory):
    texts = texts_of(directory)
    settings = json.loads((directory / "settings.json").read_text())
    for path in sorted(directory.glob("*.bin")):
        if path.stem == "texts":
            continue
        tokenizer = Tokenizer.from_file(path.with_suffix(".json"))
        reader = Reader(path)
        assert tokenizer.vocab_size() == reader.number()
        first = None
        for setting in settings:
            expected = expected_rows(reader, len(range(0, len(texts), setting["share"])))
            compare(tokenizer, setting, texts, expected, path.stem)
            first = first or [row[0] for row in expected]
        decoded = {skip: [] for skip in (True, False)}
        for _ in first:
            for skip in (True, False):
                decoded[skip].append(reader.take(reader.number()))
        assert reader.at == len(reader.data)
        ids = tf.ragged.constant(first, tf.int32)
        for skip, expected in decoded.items():
            got = tokenizer.detokenize(ids, skip_special_tokens=skip)
            assert got.numpy().tolist() == expected, (path.stem, skip)
        used = tf.unique(ids.flat_values).y
        assert tokenizer.token_to_id(tokenizer.id_to_token(used)).numpy().tolist() == used.numpy().tolist()
    print("ok")


main(pathlib.Path(sys.argv[1]))
