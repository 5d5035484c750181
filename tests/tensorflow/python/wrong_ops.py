"""Steps with the ops of the fixture wrongops; one an argument, in their order.

    load=SO        loads the library; the ops that TensorFlow would abort on are refused
    twice          an output that exists is not set again, in eager mode and in functions
    kept           a tensor of another run is a tensor and not an input
    shapes         an output that is not as declared is an error
    panics         that of a part of the work names the op

Writes `ok STEP` after each step; the first that fails ends the process.
"""
import ctypes
import json

import tensorflow as tf

from steps import check, fails, same, take

ops = None


def load(path):
    global ops
    ops = tf.load_op_library(path)
    describe = ctypes.CDLL(path).tf_plugin_ops
    describe.restype = ctypes.c_char_p
    errors = {op["name"]: op["error"] or "" for op in json.loads(describe())["ops"]}
    for op, text in [
        ("WrongNamedHalf", "attribute `half` has the name of a type"),
        ("WrongNamedReference", "attribute `float_ref` has the name of a type"),
        ("WrongNamedParameter", "attribute `double` has the name of a type"),
        ("WrongNamedCount", "attribute `variant` has the name of a type"),
        ("WrongNegativeMinimum", "attribute `numbers` is a list with a negative minimum"),
    ]:
        check(text in errors.pop(op), "%s: %s" % (op, errors))
    same(set(errors.values()), {""}, "the errors of the others")


def twice():
    internal = tf.errors.InternalError
    x = tf.constant([1.0, 2.0])
    for other in ("own", "input", "reuse"):
        for change in (False, True):
            for call in (ops.wrong_twice, tf.function(ops.wrong_twice)):
                text = "output 0 exists already; return the tensor that `reuse` has made of it"
                fails(internal, text, call, x, x + 1.0, other=other, fails=change)


def kept():
    x = tf.constant([1.0, 2.0])
    for doubles in (False, True):
        # The second input of an op with two, for an op with one.
        ops.wrong_keep(5.0, x)
        taken = ops.wrong_take(x, doubles=doubles)
        same(taken.numpy().tolist(), [2.0, 4.0] if doubles else [1.0, 2.0], "what was kept")
        fails(tf.errors.InternalError, "the output is kept", ops.wrong_keep, 5.0, x, output=True)
        taken = ops.wrong_take(x, doubles=doubles)
        same(taken.numpy().tolist(), [2.0, 4.0] if doubles else [1.0, 2.0], "the output that was kept")
    same(x.numpy().tolist(), [1.0, 2.0], "the input")


def shapes():
    x = tf.constant([1.0, 2.0])
    same([len(one) for one in ops.wrong_shape(x)], [2, 1, 2], "the lengths")
    for call in (ops.wrong_shape, tf.function(ops.wrong_shape)):
        text = "output `y` has the shape [3]; it should be [n], where `n` is 2 in `x`"
        fails(tf.errors.InternalError, text, call, x, more=1)
        text = "output `k` has the shape [3]; it should be [k], where `k` is 2 in `z`"
        fails(tf.errors.InternalError, text, call, x, columns=1)


def panics():
    text = "plugin panicked in `wrongops::outputs::Part` at "
    fails(tf.errors.InternalError, text, ops.wrong_part, tf.zeros([100]))


take(load, twice, kept, shapes, panics)
