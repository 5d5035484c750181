"""Programs as users write them, on the device and on the CPU; a step for each argument.

    text         a decoder trains, and generates with a cache of keys and values: the likeliest token, and one of the likeliest
    diffusion    a U-Net learns to remove noise, and removes it
    agent        a policy acts, and learns by clipped ratios from a shuffled batch; another one learns values from a random one
    speech       a recurrent model trains with the CTC loss on spectrograms, and decodes
    recommender  embeddings that sparse features choose are averaged and trained, also by a product with a sparse matrix

Results and changes of variables are the CPU's. What of the functions is on the CPU is listed in ON_THE_CPU.
TF_PLUGIN_DEVICE_TYPE is the type of the device. Writes a line with both counts, and `ok STEP`.
"""
import sys

import numpy as np
import tensorflow as tf
import keras

from placement import CPU, DEVICE, counted

layers, ops = keras.layers, keras.ops
ON_THE_CPU = {
    # A gather of int32, and the loop's own state.
    "text": {"GatherV2", "Enter", "Merge", "Switch", "NextIteration"},
    "diffusion": set(),
    "agent": {"GatherV2"},
    "speech": {"CTCGreedyDecoder"},
    # Their sizes depend on values.
    "recommender": {"Where", "SparseReshape"},
}
random = np.random.default_rng(4)


def floats(*shape):
    return random.normal(size=shape).astype("float32")


def learn(loss, variables, rate=0.1):
    """The loss, and the variables behind a step."""
    with tf.GradientTape() as tape:
        value = loss()
    for variable, slope in zip(variables, tape.gradient(value, variables)):
        if isinstance(slope, tf.IndexedSlices):
            variable.scatter_sub(tf.IndexedSlices(rate * slope.values, slope.indices))
        else:
            variable.assign_sub(rate * slope)
    return [value] + [variable.read_value() for variable in variables]


def values_of(model):
    return [variable.value for variable in model.trainable_variables]


class Decoder(keras.Model):
    """An attention with a residual, on tokens."""

    def __init__(self):
        super().__init__()
        self.embedding, self.places, self.normal = layers.Embedding(20, 16), layers.Embedding(8, 16), layers.LayerNormalization()
        self.parts, self.out = [layers.Dense(16) for _ in range(3)], layers.Dense(20)

    def call(self, tokens, cache=None, at=None):
        places = ops.arange(8) if at is None else ops.reshape(at, (1,))
        x = self.embedding(tokens) + self.places(places)
        query, key, value = (part(self.normal(x)) for part in self.parts)
        seen = places[:, None] >= ops.arange(8)
        if cache is not None:
            key, value = (ops.slice_update(old, [0, at, 0], new) for old, new in zip(ops.unstack(cache), (key, value)))
            cache = ops.stack([key, value])
        scores = ops.where(seen, ops.matmul(query, ops.transpose(key, (0, 2, 1))) / 4.0, -1e9)
        return self.out(x + ops.matmul(ops.softmax(scores), value)), cache


def text():
    model, tokens = Decoder(), tf.constant(random.integers(0, 20, (2, 8)), "int32")
    model(tokens)
    seeds = keras.random.SeedGenerator(1)

    def next_token(logits, is_random):
        if not is_random:
            return ops.argmax(logits, axis=-1)
        best, tokens = ops.top_k(ops.softmax(logits / 0.7), k=5)
        chosen = keras.random.categorical(ops.log(best), 1, seed=seeds, dtype="int32")
        return ops.squeeze(ops.take_along_axis(tokens, chosen, axis=-1), -1)

    @tf.function
    def generate(tokens, is_random):
        def grow(tokens, cache, at):
            logits, cache = model(ops.slice(tokens, (0, at), (2, 1)), cache, at)
            token = ops.cast(next_token(logits[:, 0], is_random), "int32")
            return ops.slice_update(tokens, [0, at + 1], token[:, None]), cache, at + 1

        state = tokens, ops.zeros((2, 2, 8, 16)), 0
        return ops.while_loop(lambda tokens, cache, at: at < 7, grow, state)[0]

    @tf.function
    def train(tokens):
        loss = lambda: tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(tokens[:, 1:], model(tokens)[0][:, :-1], from_logits=True))
        return learn(loss, values_of(model))

    return lambda: [train(tokens), generate(tokens, False), generate(tokens, True)]


def diffusion():
    images, time = keras.Input((8, 8, 4)), keras.Input((1,))
    waves = time * ops.exp(ops.linspace(0.0, 3.0, 4))
    code = layers.Dense(8, activation="swish")(layers.Concatenate()([ops.sin(waves), ops.cos(waves)]))
    x = layers.Conv2D(8, 3, padding="same")(images)
    y = layers.Conv2D(8, 3, padding="same")(layers.Activation("swish")(layers.GroupNormalization(4)(x)))
    x = x + y + layers.Reshape((1, 1, 8))(code)
    low = layers.Reshape((16, 8))(layers.Conv2D(8, 3, strides=2, padding="same")(x))
    low = layers.Reshape((4, 4, 8))(low + layers.MultiHeadAttention(2, 4)(low, low))
    x = layers.Concatenate()([layers.UpSampling2D()(low), x])
    model = keras.Model([images, time], layers.Conv2D(4, 3, padding="same")(x))
    kept, seeds, clean = tf.math.cumprod(1.0 - tf.linspace(1e-3, 0.1, 50)), keras.random.SeedGenerator(1), tf.constant(floats(2, 8, 8, 4))

    @tf.function
    def train(clean):
        times = keras.random.randint((2,), 0, 50, seed=seeds)
        noise, part = keras.random.normal((2, 8, 8, 4), seed=seeds), tf.reshape(tf.gather(kept, times), (2, 1, 1, 1))
        noisy = tf.sqrt(part) * clean + tf.sqrt(1.0 - part) * noise
        loss = lambda: tf.reduce_mean((model([noisy, tf.cast(times[:, None], "float32")], training=True) - noise) ** 2)
        return learn(loss, values_of(model), 0.01)

    @tf.function
    def remove(x):
        for at in range(3, 0, -1):
            part = kept[at]
            x = (x - (1.0 - part) / tf.sqrt(1.0 - part) * model([x, tf.fill((2, 1), float(at))])) / tf.sqrt(part)
        return tf.clip_by_value(x, -1.0, 1.0)

    return lambda: [train(clean), remove(clean)]


def agent():
    policy = keras.Sequential([keras.Input((6,)), layers.Dense(16, activation="tanh"), layers.Dense(4)])
    seen, done, gains = tf.constant(floats(16, 6)), tf.constant(random.integers(0, 4, 16), "int32"), tf.constant(floats(16))
    seeds = keras.random.SeedGenerator(1)

    @tf.function
    def act(seen):
        return tf.random.categorical(policy(seen), 1, seed=3)

    @tf.function
    def ratios(seen, done, gains):
        order = tf.random.shuffle(tf.range(16), seed=5)
        seen, done, gains = (tf.gather(all, order) for all in (seen, done, gains))
        gains = (gains - tf.reduce_mean(gains)) / (tf.math.reduce_std(gains) + 1e-6)

        def loss():
            logs = tf.nn.log_softmax(policy(seen))
            taken = tf.gather(logs, done, batch_dims=1)
            ratio = tf.exp(taken - tf.stop_gradient(taken))
            bounded = tf.clip_by_value(ratio, 0.8, 1.2) * gains
            return 0.01 * tf.reduce_mean(tf.reduce_sum(tf.exp(logs) * logs, -1)) - tf.reduce_mean(tf.minimum(ratio * gains, bounded))

        return learn(loss, values_of(policy))

    @tf.function
    def values(seen, done, gains):
        rows = keras.random.randint((8,), 0, 16, seed=seeds, dtype="int64")
        seen, done, gains = (tf.gather(all, rows) for all in (seen, done, gains))
        wanted = gains + 0.9 * tf.reduce_max(policy(-seen), -1)
        return learn(lambda: tf.reduce_mean(keras.losses.huber(wanted, tf.reduce_sum(policy(seen) * tf.one_hot(done, 4), -1))), values_of(policy))

    return lambda: [act(seen), ratios(seen, done, gains), values(seen, done, gains)]


def speech():
    model = keras.Sequential([keras.Input((19, 33)), layers.Conv1D(16, 3, padding="same", activation="relu"), layers.GRU(8, return_sequences=True), layers.Dense(6)])
    waves, labels = tf.constant(floats(2, 640)), tf.constant([[1, 2, 3], [2, 1, 1]])
    spectrum = lambda waves: tf.math.log(tf.abs(tf.signal.stft(waves, 64, 32)) + 1e-6)

    @tf.function
    def train(waves, labels):
        inputs = spectrum(waves)
        return learn(lambda: tf.reduce_mean(keras.losses.CTC()(labels, model(inputs, training=True))), values_of(model))

    @tf.function
    def decode(waves):
        return ops.ctc_decode(model(spectrum(waves)), tf.constant([19, 19]), strategy="greedy")[0]

    return lambda: [train(waves, labels), decode(waves)]


def recommender():
    table, head = tf.Variable(floats(30, 8)), keras.Sequential([keras.Input((8,)), layers.Dense(8, activation="relu"), layers.Dense(1)])
    encode = layers.CategoryEncoding(30, output_mode="count")
    ids, clicks = tf.constant(random.integers(0, 30, (4, 5))), tf.constant([[1.0], [0.0], [1.0], [0.0]])

    @tf.function
    def train(ids, clicks):
        chosen = tf.sparse.from_dense(ids)

        def loss():
            mean = tf.nn.safe_embedding_lookup_sparse(table, chosen, combiner="mean")
            counts = tf.sparse.from_dense(encode(ids))
            total = tf.sparse.sparse_dense_matmul(counts, table)
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(clicks, head(mean + 0.1 * total)))

        return learn(loss, [table] + values_of(head))

    return lambda: [train(ids, clicks), train(ids, clicks)]


PROGRAMS = {"text": text, "diffusion": diffusion, "agent": agent, "speech": speech, "recommender": recommender}


def run(name, device):
    global random
    random = np.random.default_rng(4)
    keras.utils.set_random_seed(1)
    with tf.device(device):
        program = PROGRAMS[name]()
        return counted(lambda: [np.asarray(tensor) for tensor in tf.nest.flatten(program())])


for name in sys.argv[1:]:
    (expected, _), (found, (own, others)) = run(name, CPU), run(name, DEVICE)
    print("%s: %d operations on the device, on the CPU %r" % (name, sum(own.values()), dict(others)), flush=True)
    for index, (one, other) in enumerate(zip(found, expected)):
        if one.shape != other.shape or not np.allclose(one, other, 1e-3, 1e-4):
            sys.exit("%s, result %d: %s, and on the CPU %s" % (name, index, one.ravel()[:9], other.ravel()[:9]))
    if set(others) != ON_THE_CPU[name]:
        sys.exit("%s has %r on the CPU, expected were %r" % (name, set(others), ON_THE_CPU[name]))
    print("ok " + name, flush=True)
