"""Trains models by one library: see `benches/python/bench_worker.py`.

    python contestant.py tensorflow [--plugin libgpu.so] | torch | jax | plain

`torch` and `jax` are Keras on PyTorch and on JAX, `plain` is PyTorch with torchvision's models and its own transformer layer.
"""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../python")]
import bench_worker  # noqa: E402
import numpy as np  # noqa: E402

CLASSES = 1000


def batch_of(model, batch, size):
    random = np.random.default_rng(1)
    shape = (batch, size, size) if model == "Transformer" else (batch, size, size, 3)
    return random.random(shape, dtype=np.float32), random.integers(0, CLASSES, batch).astype("int64")


class Keras:
    """The same script for each of Keras' backends."""

    def __init__(self, arguments):
        os.environ["KERAS_BACKEND"] = arguments.library
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        # A process that takes all memory leaves none to the other contestants.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        # Else the last line of an error is a remark about its traceback.
        os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")
        if arguments.plugin:
            os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = arguments.plugin
        import keras

        self.keras = keras
        self.trained = {}
        self.VERSION = "%s, Keras %s on %s" % (getattr(self, "set_" + arguments.library)(arguments), keras.__version__, self.device)

    def set_tensorflow(self, arguments):
        import tensorflow as tf

        gpus = tf.config.list_physical_devices("GPU")
        if arguments.plugin and not gpus:
            raise RuntimeError("%s has registered no GPU" % arguments.plugin)
        self.device = "the plugin's " + gpus[0].name if gpus else "the CPU"
        return "TensorFlow " + tf.__version__

    def set_torch(self, arguments):
        import torch

        if not arguments.tf32:
            without_tf32(torch)
        self.device = device_of(torch)
        return "PyTorch " + torch.__version__

    def set_jax(self, arguments):
        import jax

        if not arguments.tf32:
            jax.config.update("jax_default_matmul_precision", "highest")
        self.device = "%s" % jax.devices()[0]
        return "JAX " + jax.__version__

    def model(self, name, size):
        keras = self.keras
        if name != "Transformer":
            return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=CLASSES)
        layers = keras.layers
        x = inputs = layers.Input((size, size))
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, max(1, size // 8))(x, x))
        hidden = layers.Dense(size)(layers.Dense(4 * size, "gelu")(x))
        x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x + hidden))
        return keras.Model(inputs, layers.Dense(CLASSES, "softmax", dtype="float32")(x))

    def prepare(self, model, precision, batch, size, steps):
        """Builds the model and trains it once, which compiles what the library compiles."""
        keras = self.keras
        keras.mixed_precision.set_global_policy(precision)
        keras.utils.set_random_seed(1)
        built = self.model(model, size)
        optimizers = keras.optimizers
        optimizer = optimizers.Adam(1e-4) if model == "Transformer" else optimizers.SGD(0.001, momentum=0.9)
        jit = {"jit_compile": False} if keras.config.backend() == "tensorflow" else {}
        built.compile(optimizer, "sparse_categorical_crossentropy", **jit)
        x, y = batch_of(model, batch, size)

        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return steps

            def __getitem__(self, index):
                return x, y

        self.trained = {(model, precision): lambda: built.fit(Batches(), verbose=0, shuffle=False).history["loss"][-1]}
        self.train(model, precision)

    def train(self, model, precision):
        return millionths(self.trained[model, precision]())


def without_tf32(torch):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def device_of(torch):
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "the CPU"


def millionths(loss):
    if not np.isfinite(loss):
        raise RuntimeError("the loss is %r" % loss)
    return int(loss * 1e6)


class Plain:
    """PyTorch as its own users write it."""

    def __init__(self, arguments):
        import torch

        self.torch = torch
        if not arguments.tf32:
            without_tf32(torch)
        self.place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.VERSION = "PyTorch %s on %s" % (torch.__version__, device_of(torch))
        self.trained = {}

    def model(self, name, size):
        nn = self.torch.nn
        if name == "Transformer":
            layer = nn.TransformerEncoderLayer(size, 8, 4 * size, 0.0, "gelu", batch_first=True)
            return nn.Sequential(layer, nn.AdaptiveAvgPool2d((1, size)), nn.Flatten(), nn.Linear(size, CLASSES))
        import torchvision

        make = {"ResNet50": torchvision.models.resnet50, "MobileNetV2": torchvision.models.mobilenet_v2}[name]
        return make(num_classes=CLASSES).to(memory_format=self.torch.channels_last)

    def prepare(self, model, precision, batch, size, steps):
        torch, place = self.torch, self.place
        torch.manual_seed(1)
        built = self.model(model, size).to(place).train()
        parameters = built.parameters()
        optimizer = torch.optim.Adam(parameters, 1e-4) if model == "Transformer" else torch.optim.SGD(parameters, 0.001, 0.9)
        is_mixed = precision != "float32"
        scaler = torch.amp.GradScaler(place.type, enabled=is_mixed)
        x, y = batch_of(model, batch, size)
        if model != "Transformer":
            x = np.moveaxis(x, 3, 1)
        loss_of = torch.nn.CrossEntropyLoss()

        def run():
            for _ in range(steps):
                # The host's arrays are copied in each step, as Keras does.
                inputs, labels = torch.from_numpy(x).to(place), torch.from_numpy(y).to(place)
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast(place.type, torch.float16, enabled=is_mixed):
                    loss = loss_of(built(inputs), labels)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            return loss.item()

        self.trained = {(model, precision): run}
        self.train(model, precision)

    train = Keras.train


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["tensorflow", "torch", "jax", "plain"])
    parser.add_argument("--plugin")
    parser.add_argument("--tf32", action="store_true")
    arguments = parser.parse_args()
    bench_worker.serve(lambda: (Plain if arguments.library == "plain" else Keras)(arguments))


if __name__ == "__main__":
    main()
