"""Keras' layers, losses, optimizers and metrics on the device: each against the CPU, and what of it stays there.

    keras_layers.py [NAME...]

A layer runs forward and backward in a function. Its results and gradients are the CPU's, and all of it is on the device except for
what ON_THE_CPU says. TF_PLUGIN_DEVICE_TYPE is the type of the device, TF_PLUGIN_SWEEP_SAMPLE=5 runs one of five. Writes a line for each,
and `ok NAME`.
"""
import os
import sys

import numpy as np
import tensorflow as tf
import keras

from placement import CPU, DEVICE, counted

SAMPLE = int(os.environ.get("TF_PLUGIN_SWEEP_SAMPLE", "1"))
TOLERANCE = 1e-4
# Sums of lists of tensors, in the gradient of a loop: TensorFlow 2.19 to 2.21 let no plugin have them.
LISTS = {"AddN", "ZerosLike", "Enter", "Merge", "Switch", "NextIteration"}
# Operations without a kernel on the device, by the layers that have them.
ON_THE_CPU = {
    **dict.fromkeys(["SimpleRNN", "SimpleRNN with dropout", "SimpleRNN both ways", "SimpleRNN of cells", "LSTM with dropout", "LSTM of cells", "GRU with dropout",
                     "GRU of cells", "ConvLSTM2D"], LISTS),
    # A mask is a list of bool, which TensorFlow has on no device of a plugin.
    "SimpleRNN masked": LISTS | {"TensorListFromTensor", "TensorListGetItem", "TensorListPopBack"},
    **dict.fromkeys(["RandomRotation", "RandomZoom", "RandomTranslation", "RandomShear"], {"MatrixInverse"}),
    "CutMix": {"GatherV2"},
}
layers, losses, optimizers, metrics = keras.layers, keras.losses, keras.optimizers, keras.metrics

random = np.random.default_rng(0)


def normal(*shape):
    return random.normal(size=shape).astype("float32")


VECTORS, SEQUENCES, IMAGES, VOLUMES = normal(4, 8), normal(2, 10, 4), normal(2, 16, 16, 4), normal(2, 8, 8, 8, 4)
PIXELS = np.clip(np.abs(IMAGES[..., :3]) * 40, 0, 255)
WORDS = random.integers(1, 10, (3, 5)).astype("int32")
LABELS = random.integers(0, 8, 4)
ONE_HOT = np.eye(8, dtype="float32")[LABELS]
PROBABILITIES = np.abs(VECTORS) + 0.1
PROBABILITIES /= PROBABILITIES.sum(-1, keepdims=True)

# By name: what makes the layer, and its input.
CASES = {}


def case(name, make, inputs):
    CASES[name] = (make, inputs)


def each(names, make, inputs):
    """A case for each of these classes of `keras.layers`, those that this Keras has."""
    for name in names.split():
        if hasattr(layers, name):
            case(name, lambda name=name: make(getattr(layers, name)), inputs)


TWICE = object()


def called(layer, *arguments, **options):
    """A layer that is called with its input in the place of each `...`, and with two of it for TWICE."""
    model = lambda x: layer(*[x if argument is ... else [x, x] if argument is TWICE else argument for argument in arguments], **options)
    model.layer = layer
    return model


def layers_cases():
    for name in ("relu sigmoid tanh elu selu gelu softplus softsign swish mish exponential hard_sigmoid hard_silu leaky_relu log_sigmoid log_softmax relu6 "
                 "celu glu tanh_shrink hard_tanh hard_shrink soft_shrink squareplus sparse_plus softmax sparsemax sparse_sigmoid").split():
        if hasattr(keras.activations, name):
            case("activation=" + name, lambda name=name: layers.Activation(name), VECTORS)
    case("Dense", lambda: layers.Dense(5, kernel_regularizer="l1l2"), VECTORS)
    case("EinsumDense", lambda: layers.EinsumDense("abc,cd->abd", output_shape=(None, 6)), SEQUENCES)
    case("Embedding", lambda: layers.Embedding(10, 4), WORDS)
    case("Embedding masked", lambda: keras.Sequential([layers.Embedding(10, 4, mask_zero=True), layers.GlobalAveragePooling1D()]), WORDS)
    for axes, inputs in ((1, SEQUENCES), (2, IMAGES), (3, VOLUMES)):
        each("Conv%dD Conv%dDTranspose DepthwiseConv%dD" % (axes, axes, axes), lambda kind: kind(**dict({} if "Depth" in kind.__name__ else {"filters": 5}), kernel_size=3), inputs)
        case("Conv%dD with strides" % axes, lambda axes=axes: getattr(layers, "Conv%dD" % axes)(5, 3, strides=2, padding="same"), inputs)
        each("SeparableConv%dD" % axes, lambda kind: kind(5, 3), inputs)
        each("MaxPooling%dD AveragePooling%dD" % (axes, axes), lambda kind: kind(2), inputs)
        each("AdaptiveMaxPooling%dD AdaptiveAveragePooling%dD" % (axes, axes), lambda kind: kind(3), inputs)
        each("GlobalMaxPooling%dD GlobalAveragePooling%dD" % (axes, axes), lambda kind: kind(), inputs)
        each("ZeroPadding%dD Cropping%dD" % (axes, axes), lambda kind: kind(1), inputs)
        each("UpSampling%dD" % axes, lambda kind: kind(2), inputs)
    case("Conv1D causal", lambda: layers.Conv1D(5, 3, padding="causal", dilation_rate=2), SEQUENCES)
    case("Conv2D dilated", lambda: layers.Conv2D(5, 3, dilation_rate=2), IMAGES)
    for way in ("bilinear", "nearest"):
        case("Resizing " + way, lambda way=way: layers.Resizing(9, 21, interpolation=way), IMAGES)
    case("UpSampling2D bilinear", lambda: layers.UpSampling2D(2, interpolation="bilinear"), IMAGES)
    each("BatchNormalization LayerNormalization GroupNormalization UnitNormalization", lambda kind: kind(**{"groups": 2} if "Group" in kind.__name__ else {}), IMAGES)
    each("RMSNormalization PReLU", lambda kind: kind(), VECTORS)
    case("SpectralNormalization", lambda: layers.SpectralNormalization(layers.Dense(4)), VECTORS)
    each("Dropout GaussianDropout AlphaDropout GaussianNoise", lambda kind: kind(0.3, seed=1), VECTORS)
    each("SpatialDropout2D", lambda kind: kind(0.3, seed=1), IMAGES)
    each("Add Subtract Multiply Average Maximum Minimum Concatenate", lambda kind: called(kind(), TWICE), SEQUENCES)
    case("Dot", lambda: called(layers.Dot(axes=2), TWICE), SEQUENCES)
    each("MultiHeadAttention", lambda kind: called(kind(2, 4, dropout=0.1, seed=1), ..., ..., use_causal_mask=True), SEQUENCES)
    each("GroupQueryAttention", lambda kind: called(kind(4, 2, 2), ..., ...), SEQUENCES)
    each("Attention AdditiveAttention", lambda kind: called(kind(), TWICE), SEQUENCES)
    for name in ("SimpleRNN", "LSTM", "GRU"):
        kind, cell = getattr(layers, name), getattr(layers, name + "Cell")
        case(name, lambda kind=kind: kind(6), SEQUENCES)
        case(name + " with dropout", lambda kind=kind: kind(6, dropout=0.2, recurrent_dropout=0.2, seed=1), SEQUENCES)
        case(name + " masked", lambda kind=kind: keras.Sequential([layers.Masking(), kind(6)]), SEQUENCES)
        case(name + " both ways", lambda kind=kind: layers.Bidirectional(kind(6)), SEQUENCES)
        case(name + " of cells", lambda cell=cell: layers.RNN(cell(6), return_sequences=True), SEQUENCES)
    case("ConvLSTM2D", lambda: layers.ConvLSTM2D(3, 3), normal(2, 4, 8, 8, 4))
    case("TimeDistributed", lambda: layers.TimeDistributed(layers.Dense(3)), SEQUENCES)
    case("Reshape, Permute, RepeatVector, Flatten",
         lambda: keras.Sequential([layers.Reshape((16, 64)), layers.Permute((2, 1)), layers.Flatten(), layers.RepeatVector(2)]), IMAGES)
    each("RandomFlip RandomGrayscale RandomInvert RandomErasing RandomGaussianBlur Solarization MixUp CutMix", lambda kind: kind(seed=1), PIXELS)
    each("AutoContrast", lambda kind: kind(), PIXELS)
    each("RandomContrast RandomBrightness RandomRotation RandomZoom RandomHue RandomSaturation RandomSharpness", lambda kind: kind(0.2, seed=1), PIXELS)
    each("RandomTranslation RandomShear", lambda kind: kind(0.2, 0.2, seed=1), PIXELS)
    each("RandomCrop", lambda kind: kind(8, 8, seed=1), PIXELS)
    case("Rescaling, CenterCrop", lambda: keras.Sequential([layers.Rescaling(1 / 255), layers.CenterCrop(8, 8)]), PIXELS)


def losses_cases():
    for name in ("MeanSquaredError MeanAbsoluteError MeanSquaredLogarithmicError CosineSimilarity Huber LogCosh KLDivergence Poisson BinaryCrossentropy "
                 "BinaryFocalCrossentropy CategoricalCrossentropy CategoricalFocalCrossentropy Hinge SquaredHinge CategoricalHinge Dice Tversky").split():
        if hasattr(losses, name):
            case(name, lambda name=name: called(getattr(losses, name)(), ONE_HOT, ...), PROBABILITIES)
    case("SparseCategoricalCrossentropy", lambda: called(losses.SparseCategoricalCrossentropy(from_logits=True), LABELS, ...), VECTORS)
    if hasattr(losses, "CTC"):
        case("CTC", lambda: called(losses.CTC(), np.array([[1, 2, 3], [2, 1, 1]]), ...), normal(2, 10, 8))


def signals_cases():
    ops, waves = keras.ops, normal(2, 640)
    case("spectrum", lambda: lambda x: ops.stack(ops.rfft(x)), waves)
    case("spectra of images", lambda: lambda x: ops.stack(ops.fft2(ops.fft((x, x * x)))), normal(2, 3, 8, 6))
    case("IFFT2", lambda: lambda x: ops.stack(ops.ifft2((x, ops.cos(x)))), normal(2, 3, 8, 6))
    case("IRFFT", lambda: lambda x: ops.irfft((x, ops.cos(x))), waves)
    case("STFT", lambda: lambda x: ops.stack(ops.stft(x, 64, 32, 100)), waves)
    case("ISTFT", lambda: lambda x: ops.istft((x, ops.sin(x)), 64, 32, 64), normal(2, 12, 33))
    case("size and angle", lambda: lambda x: tf.abs(tf.complex(x, x * x)) + tf.math.angle(tf.complex(x, x * x)), VECTORS)
    each("MelSpectrogram", lambda kind: kind(fft_length=64, sequence_stride=32, sampling_rate=640, num_mel_bins=8, max_freq=320, min_freq=20), waves)


def variables_of(model):
    layer = getattr(model, "layer", model)
    return [variable.value for variable in getattr(layer, "trainable_variables", [])]


def gradients(name, device):
    """The output and the gradients of a layer, and where its operations were."""
    make, inputs = CASES[name]
    keras.utils.set_random_seed(1)
    with tf.device(device):
        model, inputs = make(), tf.constant(inputs)
        call = (lambda x: model(x, training=True)) if isinstance(model, layers.Layer) else model
        # Makes the variables.
        call(inputs)

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                if x.dtype.is_floating:
                    tape.watch(x)
                out = tf.nest.flatten(call(x))[0]
                loss = tf.reduce_sum(out * tf.cos(out))
            slopes = tape.gradient(loss, [x] * x.dtype.is_floating + variables_of(model))
            return [out] + [tf.convert_to_tensor(slope) for slope in slopes if slope is not None]

        return counted(lambda: [np.asarray(tensor) for tensor in step(inputs)])


OPTIMIZERS = {
    **{name: lambda name=name: getattr(optimizers, name)(0.01) for name in (
        "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Lamb", "Adafactor", "Muon") if hasattr(optimizers, name)},
    "SGD with momentum": lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    "RMSprop centered": lambda: optimizers.RMSprop(0.01, momentum=0.9, centered=True),
    "Adam with a schedule, clipped": lambda: optimizers.Adam(optimizers.schedules.CosineDecay(0.01, 10), global_clipnorm=0.1, amsgrad=True),
    "Adam with averages": lambda: optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=2),
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.01)),
}
METRICS = ["accuracy", "sparse_top_k_categorical_accuracy", "sparse_categorical_crossentropy"]


def trained(name, device):
    """The weights and metrics after four steps."""
    keras.utils.set_random_seed(1)
    with tf.device(device):
        model = keras.Sequential([keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(8, "softmax")])
        model.compile(OPTIMIZERS[name](), "sparse_categorical_crossentropy", metrics=METRICS, jit_compile=False)
        history, places = counted(lambda: model.fit(np.tile(VECTORS, (4, 1)), np.tile(LABELS, 4), batch_size=4, shuffle=False, verbose=0).history)
        return model.get_weights() + [np.asarray(value, "float32") for value in history.values()], places


def differ(found, expected):
    scale = max([1.0] + [float(np.abs(one).max()) for one in expected if one.size])
    pairs = [np.abs(a.astype("float64") - b).max() if a.shape == b.shape and a.size else float(a.shape != b.shape) for a, b in zip(found, expected)]
    return max(pairs) / scale if len(found) == len(expected) else float("inf")


def main(names):
    layers_cases()
    losses_cases()
    signals_cases()
    runs, problems = [], []
    for kind, each in ("gradients", CASES), ("trained", OPTIMIZERS):
        runs += [(kind, name) for number, name in enumerate(each) if (name in names if names else number % SAMPLE == 0)]
    for kind, name in runs:
        run = gradients if kind == "gradients" else trained
        try:
            expected, found = run(name, CPU)[0], run(name, DEVICE)
        except Exception as error:
            problems.append("%s: %s: %s" % (name, type(error).__name__, error))
            continue
        (found, (own, others)), known = found, ON_THE_CPU.get(name, set())
        difference = differ(found, expected)
        print("%s: %d operations on the device, on the CPU %r; differs by %.1e" % (name, sum(own.values()), dict(others), difference), flush=True)
        if not difference <= TOLERANCE:
            problems.append("%s differs by %.1e" % (name, difference))
        elif set(others) != known:
            problems.append("%s has %r on the CPU, expected were %r" % (name, set(others), known))
        elif not own:
            problems.append("%s has nothing on the device" % name)
        else:
            print("ok " + name)
    sys.exit("\n".join(problems) or 0)


main(sys.argv[1:])
