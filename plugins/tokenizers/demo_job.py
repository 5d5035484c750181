"""The programs of the demo: ordinary TensorFlow, with the wheel installed.

    python demo_job.py train TEXTS TOKENIZER DIRECTORY   trains a classifier from raw text, and exports it
    python demo_job.py serve TEXTS MODEL                 a SavedModel on raw text, with `import tensorflow` alone
    python demo_job.py keras TEXTS MODEL                 a `.keras` file on raw text
"""
import json
import pathlib
import sys
import time

import tensorflow as tf

MAX_LENGTH = 64
BATCH = 256
EPOCHS = 6


def read(path, part):
    texts = json.loads(pathlib.Path(path).read_text())
    lines, labels = zip(*texts[part])
    return texts["languages"], tf.constant(lines), tf.constant(labels)


def train(texts, path, directory):
    from tensorflow_tokenizers import Tokenizer

    keras = tf.keras
    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer.from_file(path)
    languages, lines, labels = read(texts, "train")
    _, test_lines, test_labels = read(texts, "test")

    def ids(text, label):
        return tokenizer.encode(text, max_length=MAX_LENGTH, padding="max_length")["input_ids"], label

    dataset = tf.data.Dataset.from_tensor_slices((lines, labels)).shuffle(len(lines), seed=0).batch(BATCH)
    dataset = dataset.map(ids, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    network = keras.Sequential(
        [
            keras.layers.Embedding(tokenizer.vocab_size(), 64, mask_zero=True),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(len(languages), activation="softmax"),
        ]
    )
    network.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = network.fit(dataset, epochs=EPOCHS, verbose=0).history

    started = time.perf_counter()
    for _ in range(5):
        dataset.reduce(0, lambda count, batch: count + tf.shape(batch[0])[0])
    speed = 5 * len(lines) / (time.perf_counter() - started)

    # The same network behind the tokenizer: it takes raw text.
    model = keras.Sequential([keras.Input(shape=(), dtype="string"), tokenizer.layer(max_length=MAX_LENGTH), network])
    predicted = model.predict(test_lines, batch_size=BATCH, verbose=0)
    directory = pathlib.Path(directory)
    model.save(directory / "model.keras")
    if hasattr(keras, "Operation"):
        model.export(directory / "exported")
    else:
        # Keras 2.
        model.save(directory / "exported", save_format="tf")
    encoded = tokenizer.encode(test_lines, max_length=MAX_LENGTH, padding="max_length")["input_ids"]
    (directory / "ids.json").write_text(json.dumps(encoded.numpy().tolist()))
    return {
        "version": tf.__version__,
        "losses": history["loss"],
        "steps": EPOCHS * len(dataset),
        "accuracy": accuracy(predicted, test_labels),
        "texts_per_second": speed,
        "answers": answers(predicted),
    }


def accuracy(predicted, labels):
    return float(tf.reduce_mean(tf.cast(tf.argmax(predicted, 1, tf.int32) == labels, tf.float64)))


def answers(predicted):
    return tf.argmax(predicted, 1).numpy().tolist()


def result(predicted, labels, **more):
    return {"answers": answers(predicted), "accuracy": accuracy(predicted, labels), **more}


def serve(texts, path):
    _, lines, labels = read(texts, "test")
    model = tf.saved_model.load(path)
    function = model.serve if hasattr(model, "serve") else model.signatures["serving_default"]

    def predict(lines):
        found = function(lines)
        return list(found.values())[0] if isinstance(found, dict) else found

    predict(lines[:BATCH])
    started = time.perf_counter()
    predicted = tf.concat([predict(lines[at:at + BATCH]) for at in range(0, len(lines), BATCH)], 0)
    speed = len(lines) / (time.perf_counter() - started)
    return result(predicted, labels, imported="tensorflow_tokenizers" in sys.modules, texts_per_second=speed)


def load_keras(texts, path):
    import tensorflow_tokenizers  # noqa: F401: it registers the layer

    _, lines, labels = read(texts, "test")
    return result(tf.keras.models.load_model(path).predict(lines, batch_size=BATCH, verbose=0), labels)


def main(command, *arguments):
    print(json.dumps({"train": train, "serve": serve, "keras": load_keras}[command](*arguments)))


main(*sys.argv[1:])
