"""Writes and reads one file at the URI given, without any import but TensorFlow's."""

import sys

import tensorflow as tf

uri = sys.argv[1]
tf.io.write_file(uri, b"written")
assert tf.io.read_file(uri).numpy() == b"written"
