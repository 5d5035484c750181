"""Hugging Face's tokenizers as TensorFlow ops.

    tok = Tokenizer.from_file("tokenizer.json")
    dataset.batch(1024).map(tok.tokenize, num_parallel_calls=tf.data.AUTOTUNE)
    keras.Sequential([tok.layer(max_length=128), ...])

`import tensorflow` loads the ops by itself: a SavedModel that holds them needs no other import.
"""

from ._layer import TokenizerLayer
from ._plugin import __version__, plugin_path
from ._tokenizer import Tokenizer

__all__ = ["Tokenizer", "TokenizerLayer", "__version__", "plugin_path"]
