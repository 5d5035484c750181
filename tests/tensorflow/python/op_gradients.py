"""Gradients of the ops that conformance cases run on, as a wheel's package registers them. OP_LIBRARY names the library."""
import os

import tensorflow as tf

ops = tf.load_op_library(os.environ["OP_LIBRARY"])

if hasattr(ops, "text_dampen_grad"):

    @tf.RegisterGradient("TextDampen")
    def _dampen(op, grad):
        return ops.text_dampen_grad(op.inputs[0], grad, scale=op.get_attr("scale"))


if hasattr(ops, "broken_scale_grad"):

    @tf.RegisterGradient("BrokenScale")
    def _scale(op, grad):
        return ops.broken_scale_grad(grad, factor=op.get_attr("factor"))
