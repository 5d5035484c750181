"""Calls ops of two libraries that do the same, and `tf.py_function`, in one process.

    python ops.py --rust libbenchops.so --cpp libops.so [--rounds 21] [--quick]

Each row is run in rounds, in which the contestants take turns, each round in another order. On standard output: one
JSON object, {"rows": [{"name", "kind", CONTESTANT...}]}, with the seconds of one call for each round.
"""
import argparse
import gc
import itertools
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

CONTESTANTS = ["Rust", "C++", "py_function"]
# A turn takes about so many seconds, if that is at least one call.
TURN = 0.004
MOST_CALLS = 400
FACTOR = 1.5
BOUNDARIES = [0.75, 0.125, 0.5, 0.25, 0.875, 0.375, 0.625]


# What a user writes instead of an op: a function of a tensor, with the types of its results.


def py_words(text):
    rows = [line.split() for line in text.numpy()]
    values = [word for row in rows for word in row]
    return np.array(values, object), np.cumsum([0] + [len(row) for row in rows])


def py_codes(text):
    lines = text.numpy()
    codes = np.frombuffer(b"".join(lines), np.uint8).astype(np.int32)
    return codes, np.cumsum([0] + [len(line) for line in lines])


FUNCTIONS = {
    "scale": (lambda x: x.numpy() * np.float32(FACTOR), tf.float32),
    "scale_reuse": (lambda x: x.numpy() * np.float32(FACTOR), tf.float32),
    "buckets": (lambda x: np.searchsorted(sorted(BOUNDARIES), x.numpy(), side="right"), tf.int64),
    "logistic": (lambda x: 1 / (1 + np.exp(-x.numpy())), tf.float32),
    "upper": (lambda text: np.array([line.upper() for line in text.numpy()], object), tf.string),
    "words": (py_words, [tf.string, tf.int64]),
    "codes": (py_codes, [tf.int32, tf.int64]),
}
ATTRIBUTES = {"scale": dict(factor=FACTOR), "scale_reuse": dict(factor=FACTOR), "buckets": dict(boundaries=BOUNDARIES)}


def floats(count):
    return np.random.default_rng(41).random(count, np.float32)


def strings(count, size):
    """Lines of words: of `size` bytes on average, and of the same if that is short."""
    words = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "nobler", "suffer", "outrageous"]
    random, lines = np.random.default_rng(41), []
    for _ in range(count):
        line = " ".join(words[at] for at in random.integers(len(words), size=1 + size // 4))
        length = size if size < 23 else size + int(random.integers(-10, 11))
        lines.append(line[:length].ljust(length, "."))
    return np.array(lines, object)


def rows(quick):
    """The kind, the name, the op, its input, and how many calls are one after the other in a graph: 0 is an eager call."""
    million, lines = (1000, 100) if quick else (1_000_000, 100_000)
    large = floats(million)
    short, long = strings(lines, 12), strings(lines, 60)
    return [
        ("small", "4 floats, eager", "scale", floats(4), 0),
        ("small", "4 floats, in a graph", "scale", floats(4), 100),
        ("small", "4 floats, attribute and state, eager", "buckets", floats(4), 0),
        ("small", "one string of 12 bytes, eager", "upper", short[:1], 0),
        ("small", "one string of 12 bytes, in a graph", "upper", short[:1], 100),
        ("small", "one string of 60 bytes to words, eager", "words", long[:1], 0),
        ("numbers", "10⁶ floats, eager", "scale", large, 0),
        ("numbers", "10⁷ floats, eager", "scale", floats(10 * million), 0),
        ("numbers", "10⁶ floats, in place, in a graph", "scale_reuse", large, 10),
        ("numbers", "10⁷ floats, in place, in a graph", "scale_reuse", floats(10 * million), 4),
        ("numbers", "10⁶ floats, not in place, eager", "scale_reuse", large, 0),
        ("numbers", "10⁶ floats, attribute and state, eager", "buckets", large, 0),
        ("numbers", "4·10⁶ floats, several threads, eager", "logistic", floats(4 * million), 0),
        ("numbers", "10⁵ strings of 60 bytes to ragged numbers, eager", "codes", long, 0),
        ("strings", "10⁵ strings of 12 bytes, eager", "upper", short, 0),
        ("strings", "10⁶ strings of 12 bytes, eager", "upper", np.tile(short, 10), 0),
        ("strings", "10⁵ strings of 60 bytes, eager", "upper", long, 0),
        ("strings", "10⁵ strings of 60 bytes to ragged words, eager", "words", long, 0),
    ]


class Contestant:
    """An op with its input, ready to be called."""

    def __init__(self, module, prefix, op, tensor, chained):
        if module is None:
            function, types = FUNCTIONS[op]

            def call(x):
                return tf.py_function(function, [x], types)
        else:
            wrapper, attributes = getattr(module, prefix + op), ATTRIBUTES.get(op, {})

            def call(x):
                return wrapper(x, **attributes)

        self.tensor, self.calls, self.chained = tensor, 1, max(1, chained)
        self.call = call
        if chained:

            @tf.function
            def graph(x):
                for _ in range(chained):
                    x = call(x)
                return x

            self.call = graph
        # Later calls have nothing left to prepare.
        self.seconds()
        self.calls = int(min(MOST_CALLS, max(1, TURN / (self.seconds() * self.chained))))

    def result(self):
        return [np.asarray(one) for one in tf.nest.flatten(self.call(self.tensor))]

    def seconds(self):
        call, tensor = self.call, self.tensor
        # Not after what another contestant has left in the caches and the allocator.
        call(tensor)
        start = time.perf_counter()
        for _ in range(self.calls):
            call(tensor)
        return (time.perf_counter() - start) / self.calls / self.chained


def measure(row, libraries, rounds):
    kind, name, op, values, chained = row
    print("timing: " + name, file=sys.stderr, flush=True)
    tensor = tf.constant(values)
    contestants = [Contestant(*library, op, tensor, chained) for library in libraries]
    expected, *others = [contestant.result() for contestant in contestants]
    for other, result in zip(CONTESTANTS[1:], others):
        for ours, theirs in zip(expected, result):
            exact = ours.dtype != np.float32
            if not (np.array_equal(ours, theirs) if exact else np.allclose(ours, theirs, rtol=1e-5)):
                sys.exit("%s: Rust returned %r, %s %r" % (name, ours, other, theirs))
    taken = {contestant: [] for contestant in CONTESTANTS}
    orders = list(itertools.permutations(range(len(CONTESTANTS))))
    # The first round warms up.
    for number in range(rounds + 1):
        for index in orders[number % len(orders)]:
            seconds = contestants[index].seconds()
            if number:
                taken[CONTESTANTS[index]].append(seconds)
    return dict(name=name, kind=kind, **taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rust", required=True)
    parser.add_argument("--cpp", required=True)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rust, cpp = (tf.load_op_library(os.path.abspath(library)) for library in (arguments.rust, arguments.cpp))
    libraries = [(rust, "rust_"), (cpp, "cpp_"), (None, "")]
    # Equal calls stay several.
    tf.config.optimizer.set_experimental_options(dict(disable_meta_optimizer=True))
    gc.disable()
    wanted = [row for row in rows(arguments.quick) if arguments.only in row[1]]
    print(json.dumps(dict(rows=[measure(row, libraries, arguments.rounds) for row in wanted])))


if __name__ == "__main__":
    main()
