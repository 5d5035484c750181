"""The class Tokenizer: ops of the library, for tensors of any rank and ragged ones."""

import functools
import operator
import os

import tensorflow as tf

from . import ops


class Tokenizer:
    """A tokenizer of Hugging Face's `tokenizers`, as ops.

    Its methods work in eager mode, in `tf.function` and in `tf.data`. The JSON becomes a constant of the graph, so a
    SavedModel holds it, wherever it is moved. Invalid UTF-8 in texts becomes U+FFFD, as `bytes.decode(errors="replace")`
    does.
    """

    def __init__(self, json):
        """Creates a tokenizer from the content of a tokenizer.json, `bytes` or `str`, and checks it."""
        if not isinstance(json, (bytes, bytearray, memoryview, str)):
            raise TypeError("expected the content of a tokenizer.json as bytes or str, got %s" % type(json).__name__)
        self._json = json.encode() if isinstance(json, str) else bytes(json)
        with tf.init_scope(), tf.device("CPU:0"):
            self._constant = tf.constant(self._json) if tf.executing_eagerly() else None
            if self._constant is not None:
                self._vocab_size = int(ops.hf_vocab_size(tokenizer=self._constant))

    @classmethod
    def from_file(cls, path):
        """Reads a tokenizer.json: a local path, or one of a filesystem that TensorFlow has, such as `s3://`."""
        with tf.io.gfile.GFile(os.fspath(path), "rb") as file:
            return cls(file.read())

    @classmethod
    def from_str(cls, json):
        """Creates a tokenizer from the text of a tokenizer.json."""
        return cls(json)

    @classmethod
    def from_buffer(cls, buffer):
        """Creates a tokenizer from the bytes of a tokenizer.json."""
        return cls(buffer)

    def to_str(self):
        """Returns the text of the tokenizer.json."""
        return self._json.decode()

    def __reduce__(self):
        return (type(self), (self._json,))

    def __repr__(self):
        return "<Tokenizer, %d bytes of JSON>" % len(self._json)

    def _tensor(self):
        """The JSON: one tensor for all calls, so that kernels see by its address that they know it."""
        if self._constant is None or not (tf.executing_eagerly() or tf.inside_function()):
            # A graph of TensorFlow 1.
            return tf.constant(self._json)
        return self._constant

    def tokenize(
        self,
        text,
        pair=None,
        *,
        add_special_tokens=True,
        truncation=None,
        max_length=None,
        truncation_side=None,
        out_type=tf.int32,
        name=None,
    ):
        """Splits texts into ids.

        Args:
          text: strings of any rank, also ragged.
          pair: second texts, of the same shape.
          add_special_tokens: whether to add the tokens that a model needs, such as `[CLS]`.
          truncation: "longest_first", "only_first" or "only_second": which text of a pair loses tokens; False: none. By
            default, that of the JSON.
          max_length: the largest number of ids in a row. By default, that of the JSON; without one, any number.
          truncation_side: "left" or "right": where tokens are removed. By default, that of the JSON, or "right".
          out_type: `tf.int32`, `tf.int64`, or `tf.string` for tokens instead of ids.

        Returns:
          A `RaggedTensor` with one more dimension than `text`; of a scalar, a vector.
        """
        keywords = _truncation(truncation, max_length, truncation_side)
        keywords.update(add_special_tokens=add_special_tokens, T=tf.int32 if out_type == tf.string else out_type)

        def flat(text, pair):
            return ops.hf_tokenize(text=text, pair=pair, tokenizer=self._tensor(), name=name, **keywords)

        ids = _rows(flat, text, pair)
        return self.id_to_token(ids) if out_type == tf.string else ids

    def tokenize_with_offsets(
        self,
        text,
        pair=None,
        *,
        add_special_tokens=True,
        truncation=None,
        max_length=None,
        truncation_side=None,
        unit="BYTE",
        out_type=tf.int32,
        name=None,
    ):
        """Splits texts into ids, and says where each token is in its text.

        Args:
          unit: "BYTE" for offsets in bytes of the text, or "UTF8_CHAR" for characters, as Python's `tokenizers` counts.
          The others are those of `tokenize`.

        Returns:
          Three `RaggedTensor`s of the same shape: ids, and int64 begins and ends. A special token that was added has 0
          and 0.
        """
        keywords = _truncation(truncation, max_length, truncation_side)
        keywords.update(add_special_tokens=add_special_tokens, unit=unit)
        keywords.update(T=tf.int32 if out_type == tf.string else out_type)

        def flat(text, pair):
            result = ops.hf_tokenize_with_offsets(text=text, pair=pair, tokenizer=self._tensor(), name=name, **keywords)
            ids, starts, limits = result
            # One ragged tensor for all three, which nesting takes apart again.
            return ids.with_values(tf.stack([tf.cast(ids.values, tf.int64), starts, limits], axis=1))

        rows = _rows(flat, text, pair)
        flat_values = rows.flat_values if isinstance(rows, tf.RaggedTensor) else rows
        parts = [flat_values[:, column] for column in range(3)]
        parts[0] = tf.cast(parts[0], keywords["T"])
        if isinstance(rows, tf.RaggedTensor):
            parts = [rows.with_flat_values(part) for part in parts]
        if out_type == tf.string:
            parts[0] = self.id_to_token(parts[0])
        return tuple(parts)

    def encode(
        self,
        text,
        pair=None,
        *,
        add_special_tokens=True,
        truncation=None,
        max_length=None,
        truncation_side=None,
        padding=None,
        padding_side=None,
        pad_to_multiple_of=None,
        pad_id=None,
        pad_type_id=None,
        out_type=tf.int32,
        name=None,
    ):
        """Splits texts into ids, and fills short rows: the inputs of a model.

        Args:
          padding: "longest" or "max_length": the length of rows. By default, as the JSON says, or "longest".
          padding_side: "left" or "right". By default, as the JSON says, or "right".
          pad_to_multiple_of: what the length of rows is rounded up to.
          pad_id: the id that is added. By default, that of the JSON, or of `[PAD]` or `<pad>`, or 0.
          pad_type_id: the type id that is added. By default, that of the JSON, or 0.
          The others are those of `tokenize`. `text` is not ragged.

        Returns:
          A dict with `input_ids`, `attention_mask` and `token_type_ids`, each with one more dimension than `text`.
        """
        keywords = _truncation(truncation, max_length, truncation_side)
        keywords.update(add_special_tokens=add_special_tokens, T=out_type)
        keywords.update(padding=padding or "file", padding_side=padding_side or "file")
        for key, value in (("pad_to_multiple_of", pad_to_multiple_of), ("pad_id", pad_id), ("pad_type_id", pad_type_id)):
            keywords[key] = -1 if value is None else value
        if isinstance(text, tf.RaggedTensor):
            raise ValueError("encode returns rectangles, and text is ragged; pass text.flat_values, or call tokenize")
        text = tf.convert_to_tensor(text, tf.string)
        pair = None if pair is None else tf.convert_to_tensor(pair, tf.string)
        result = ops.hf_encode(text=text, pair=pair, tokenizer=self._tensor(), name=name, **keywords)
        if padding == "max_length" and max_length and pad_to_multiple_of is not None and not tf.executing_eagerly():
            # Unless the JSON may round up, the length is known when the graph is built.
            multiple = max(pad_to_multiple_of, 1)
            shape = text.shape.concatenate([-(-max_length // multiple) * multiple])
            result = [tf.ensure_shape(one, shape) for one in result]
        return dict(zip(("input_ids", "attention_mask", "token_type_ids"), result))

    def detokenize(self, ids, *, skip_special_tokens=True, errors="strict", name=None):
        """Joins ids to texts.

        Args:
          ids: int32 or int64, of any rank, also ragged.
          skip_special_tokens: whether to leave out tokens such as `[CLS]`.
          errors: what happens with ids that the vocabulary does not have: "strict" for an error, "ignore" for nothing.

        Returns:
          Strings with one dimension less than `ids`.
        """
        ids = _ids(ids)
        if isinstance(ids, tf.RaggedTensor):
            if ids.ragged_rank > 1:
                return ids.with_values(
                    self.detokenize(ids.values, skip_special_tokens=skip_special_tokens, errors=errors, name=name)
                )
            rows = ids
        else:
            rank = ids.shape.rank
            if not rank:
                raise ValueError("detokenize needs rows of ids: a tensor of rank 1 or more, got the shape %s" % ids.shape)
            length = tf.shape(ids, tf.int64)[-1]
            count = tf.reduce_prod(tf.shape(ids, tf.int64)[:-1])
            rows = tf.RaggedTensor.from_uniform_row_length(tf.reshape(ids, [-1]), length, nrows=count, validate=False)
        rows = rows.with_row_splits_dtype(tf.int64)
        if rows.flat_values.shape.rank not in (1, None):
            raise ValueError("detokenize needs ids whose last dimension is ragged, got the shape %s" % ids.shape)
        text = ops.hf_detokenize(
            ids=rows, tokenizer=self._tensor(), skip_special_tokens=skip_special_tokens, errors=errors, name=name
        )
        if isinstance(ids, tf.RaggedTensor):
            return text
        result = tf.reshape(text, tf.shape(ids)[:-1])
        result.set_shape(ids.shape[:-1])
        return result

    def token_to_id(self, token, *, out_type=tf.int32, name=None):
        """Returns the ids of tokens, of any shape; -1 for those that the vocabulary does not have."""
        return _each(
            lambda tokens: ops.hf_token_to_id(tokens=tokens, tokenizer=self._tensor(), T=out_type, name=name),
            _tensor_or_ragged(token, tf.string),
        )

    def id_to_token(self, id, *, errors="strict", name=None):
        """Returns the tokens of ids, of any shape. With errors="ignore", those that do not exist are empty strings."""
        return _each(lambda ids: ops.hf_id_to_token(ids=ids, tokenizer=self._tensor(), errors=errors, name=name), _ids(id))

    def vocab_size(self, name=None):
        """Returns the number of tokens, with the added ones: an int in eager mode, else a tensor."""
        if self._constant is not None:
            return self._vocab_size
        return ops.hf_vocab_size(tokenizer=self._tensor(), name=name)

    def layer(self, max_length=None, **keywords):
        """Returns a Keras layer from texts to ids; see `TokenizerLayer`."""
        from ._layer import TokenizerLayer

        return TokenizerLayer(self, max_length=max_length, **keywords)


def _truncation(truncation, max_length, side):
    if max_length is not None and max_length < 1:
        raise ValueError("max_length is %d; set it to 1 or more, or truncation to False for rows of any length" % max_length)
    if truncation is None or truncation is True:
        truncation = "file"
    return {
        "truncation": "none" if truncation is False else truncation,
        "max_length": max_length or 0,
        "truncation_side": side or "file",
    }


def _tensor_or_ragged(value, dtype):
    if isinstance(value, tf.RaggedTensor):
        return value
    return tf.convert_to_tensor(value, dtype)


def _ids(value):
    """Ids as they are, or int32 for Python's numbers."""
    if isinstance(value, (list, tuple)):
        try:
            ids = tf.convert_to_tensor(value)
        except ValueError:
            # Rows of different length.
            ids = tf.ragged.constant(value)
        flat = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
        # Of no numbers TensorFlow makes floats.
        return tf.cast(ids, tf.int32) if flat.shape.num_elements() == 0 else ids
    return value if isinstance(value, tf.RaggedTensor) else tf.convert_to_tensor(value)


def _each(function, value):
    """Calls a function that keeps the shape on a tensor or the values of a ragged one."""
    if isinstance(value, tf.RaggedTensor):
        return value.with_flat_values(function(value.flat_values))
    return function(value)


def _values_of_same_rows(text, pair):
    """The flat values of `pair`, whose rows have to be as long as those of `text`."""
    problem = "text and pair have rows of different lengths; make both ragged with the same rows"
    if text.ragged_rank != pair.ragged_rank:
        raise ValueError(problem)
    splits = [one.with_row_splits_dtype(tf.int64).nested_row_splits for one in (text, pair)]
    with tf.control_dependencies([tf.debugging.assert_equal(a, b, message=problem) for a, b in zip(*splits)]):
        return tf.identity(pair.flat_values)


def _rows(function, text, pair):
    """Calls a function, which returns a row for each text, and gives the rows the shape of `text`."""
    if isinstance(text, tf.RaggedTensor):
        if pair is not None:
            if not isinstance(pair, tf.RaggedTensor):
                raise ValueError("text is ragged, and pair is not; make both ragged with the same rows")
            pair = _values_of_same_rows(text, pair)
        return text.with_flat_values(_rows(function, text.flat_values, pair))
    text = tf.convert_to_tensor(text, tf.string)
    pair = None if pair is None else tf.convert_to_tensor(pair, tf.string)
    rank = text.shape.rank
    if rank is None:
        raise ValueError("the rank of text is unknown; say it with tf.ensure_shape(text, [None]), as for a batch")
    rows = function(text, pair)
    if rank == 0:
        return rows.values
    if rank == 1:
        return rows
    known = text.shape.as_list()
    lengths = tf.shape(text, tf.int64)
    for axis in range(rank - 1, 0, -1):
        count = tf.reduce_prod(lengths[:axis]) if None in known[:axis] else functools.reduce(operator.mul, known[:axis])
        length = lengths[axis] if known[axis] is None else known[axis]
        rows = tf.RaggedTensor.from_uniform_row_length(rows, length, nrows=count, validate=False)
    return rows
