"""A tokenizer as a Keras layer."""

import tensorflow as tf

from ._tokenizer import Tokenizer


@tf.keras.utils.register_keras_serializable(package="tensorflow_tokenizers")
class TokenizerLayer(tf.keras.layers.Layer):
    """Texts of the shape `[batch]` or `[batch, n]` to ids with one more dimension.

    With `max_length`, all rows have that length: longer ones are cut, shorter ones padded. An `Embedding` behind it masks
    padding with `mask_zero=True`, if the padding's id is 0; else take `attention_mask` of the output "dict". The
    configuration holds the JSON, so a `.keras` file and a SavedModel need no other file.

    Args:
      tokenizer: a `Tokenizer`, or the text of a tokenizer.json.
      max_length: the length of rows; None for that of the longest text.
      output: "ids" for one tensor, or "dict" for `input_ids`, `attention_mask` and `token_type_ids`.
      keywords: those of `Tokenizer.encode`.
    """

    def __init__(self, tokenizer, max_length=None, output="ids", name=None, trainable=False, dtype="string", **keywords):
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        if output not in ("ids", "dict"):
            raise ValueError('output is %r; set it to "ids" or "dict"' % (output,))
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.from_str(tokenizer)
        self.max_length = max_length
        self.output_kind = output
        self.keywords = keywords
        # No kernel of XLA can call the library.
        self.supports_jit = False
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    def call(self, inputs):
        keywords = dict(self.keywords)
        if self.max_length is not None:
            keywords.setdefault("padding", "max_length")
            keywords.setdefault("pad_to_multiple_of", 0)
        encoded = self.tokenizer.encode(inputs, max_length=self.max_length, **keywords)
        if self.output_kind == "dict":
            return encoded
        return encoded["input_ids"]

    def _length(self):
        """The length of rows, if all batches have the same."""
        multiple = self.keywords.get("pad_to_multiple_of", 0)
        if self.max_length is None or multiple is None or self.keywords.get("padding", "max_length") != "max_length":
            return None
        multiple = max(multiple, 1)
        return -(-self.max_length // multiple) * multiple

    def compute_output_shape(self, input_shape):
        shape = tuple(input_shape) + (self._length(),)
        if self.output_kind == "dict":
            return {key: shape for key in ("input_ids", "attention_mask", "token_type_ids")}
        return shape

    def compute_output_spec(self, inputs):
        # Keras 3 would take the layer's dtype, that of the texts.
        dtype = tf.as_dtype(self.keywords.get("out_type", tf.int32)).name
        shape = self.compute_output_shape(inputs.shape)
        if isinstance(shape, dict):
            return {key: tf.keras.KerasTensor(one, dtype) for key, one in shape.items()}
        return tf.keras.KerasTensor(shape, dtype)

    def get_config(self):
        config = super().get_config()
        config.update(self.keywords)
        config.update(tokenizer=self.tokenizer.to_str(), max_length=self.max_length, output=self.output_kind)
        return config
