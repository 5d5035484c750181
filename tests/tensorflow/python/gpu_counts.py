"""Counts what a training step of Keras sends to the GPU, on a device that computes nothing: `tests/support/dry-gpu`.

    gpu_counts.py MODEL[,POLICY]

MODEL is one of `keras.applications`, trained on 32 images of 224 x 224 with SGD and momentum, `transformer`, that of `examples/device_demo` with Adam,
`attention`, a causal layer of 8 heads of 64 on 8 sequences of 512 with SGD, or `unet`, two residual blocks of a diffusion model with group
normalization on 8 images of 64 x 64 with 64 channels, with SGD. POLICY is one of Keras' for mixed precision. RUST_GPU_COUNTERS is the file of the counters. Writes the launches of the third step by op, and their
bytes, as one line of JSON; lines around that step on stderr tell which copies it has. Results are zeros or garbage, and not looked at.
"""
import json
import os
import sys

import numpy as np
import tensorflow as tf
import keras

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/device_demo"))

DEVICE = "/device:%s:0" % os.environ["TF_PLUGIN_DEVICE_TYPE"]
BATCH, SIZE, CLASSES = 32, 224, 1000


def transformer():
    import job

    random = np.random.default_rng(0)
    x, y = random.integers(0, job.ALPHABET, (2, job.BATCH, job.PIECE)).astype("int32")
    # As in `fit`, which does not tell the graph the size of a batch.
    return job.make_model("transformer"), tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(job.BATCH)


def attention():
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    x = keras.Input((512, 512))
    model = keras.Model(x, keras.layers.MultiHeadAttention(8, 64)(x, x, use_causal_mask=True))
    model.compile(keras.optimizers.SGD(0.001), "mse", jit_compile=False)
    examples = random.random((8, 512, 512), "float32")
    return model, tf.data.Dataset.from_tensors((examples, examples)).repeat()


def unet():
    keras.utils.set_random_seed(1)
    layers, random = keras.layers, np.random.default_rng(0)
    x = y = keras.Input((64, 64, 64))
    for _ in range(2):
        before = y
        for _ in range(2):
            y = layers.Conv2D(64, 3, padding="same")(keras.activations.silu(layers.GroupNormalization(32)(y)))
        y = layers.Add()([before, y])
    model = keras.Model(x, y)
    model.compile(keras.optimizers.SGD(0.001), "mse", jit_compile=False)
    examples = random.random((8, 64, 64, 64), "float32")
    return model, tf.data.Dataset.from_tensors((examples, examples)).repeat()


def application(name):
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    model = getattr(keras.applications, name)(weights=None, input_shape=(SIZE, SIZE, 3), classes=CLASSES)
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy", jit_compile=False)
    examples = random.random((BATCH, SIZE, SIZE, 3), "float32"), random.integers(0, CLASSES, BATCH)
    return model, tf.data.Dataset.from_tensors(examples).repeat()


def counters():
    """What was counted until something was last copied to the host."""
    with open(os.environ["RUST_GPU_COUNTERS"]) as file:
        counts = json.load(file)
    by_op = {op: count for op, count in counts.items() if isinstance(count, int)}
    return by_op, counts["bytes"]


def run(what):
    name, *policy = what.split(",")
    if policy:
        keras.mixed_precision.set_global_policy(policy[0])
    with tf.device(DEVICE):
        models = dict(transformer=transformer, attention=attention, unet=unet)
        model, dataset = models[name]() if name in models else application(name)
        with tf.device("/CPU:0"):
            data = iter(dataset)
        function = model.make_train_function() or model.train_function

        def step():
            for value in tf.nest.flatten(function(data)):
                value.numpy()

        step()
        step()
        before = counters()
        print("--- a step", file=sys.stderr, flush=True)
        step()
        print("---", file=sys.stderr, flush=True)
        after = counters()
    launches, moved = ({op: count - old.get(op, 0) for op, count in new.items() if count > old.get(op, 0)} for new, old in zip(after, before))
    print("counts " + json.dumps(dict(launches=launches, bytes=moved)), flush=True)
    print("ok " + what, flush=True)


for argument in sys.argv[1:]:
    run(argument)
