"""Reads files by http:// as TensorFlow's own consumers do.

    python https.py      the plugin is loaded from the variable TF_PLUGIN_LIBRARY

Two servers: Python's own, which knows no ranges, and the same with ranges and ETags.
"""
import functools
import http.server
import multiprocessing
import os
import re
import sys
import tempfile
import threading

import numpy as np
import tensorflow as tf

gfile = tf.io.gfile


class Whole(http.server.SimpleHTTPRequestHandler):
    requests = []

    def log_message(self, *_):
        self.requests.append((self.command, self.path, self.headers.get("Range")))


class Ranges(Whole):
    requests = []

    def do_GET(self):
        path = self.translate_path(self.path)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted or not os.path.isfile(path):
            return super().do_GET()
        with open(path, "rb") as file:
            content = file.read()
        etag = '"%x"' % hash((path, content))
        first, last = (int(text) for text in wanted.groups())
        last = min(last, len(content) - 1)
        if self.headers.get("If-Match", etag) != etag:
            return self.send_error(412)
        if first > last:
            self.send_response(416)
            self.send_header("Content-Range", "bytes */%d" % len(content))
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(206)
        self.send_header("ETag", etag)
        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(content)))
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(content[first : last + 1])


def serve(handler, directory):
    handler = functools.partial(handler, directory=directory)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_port


def fails(error, text, call):
    try:
        call()
    except error as e:
        assert text in str(e), str(e)
        return
    raise AssertionError("it succeeded")


def in_child(url, queue):
    queue.put(tf.io.read_file(url).numpy())


def use(root, local):
    def records(place, compression=""):
        names = ["%s/records-%d%s" % (place, n, compression) for n in range(4)]
        dataset = tf.data.Dataset.from_tensor_slices(names).interleave(
            lambda name: tf.data.TFRecordDataset(name, compression_type=compression, buffer_size=1 << 20),
            cycle_length=4,
            num_parallel_calls=4,
            deterministic=True,
        )
        return [record.numpy() for record in dataset]

    for compression in ["", "GZIP"]:
        assert records(root, compression) == records(local, compression)
    lines = list(tf.data.TextLineDataset(root + "/text").as_numpy_iterator())
    assert lines == [b"line %d" % n for n in range(1000)], lines[:3]
    assert tf.io.read_file(root + "/large").numpy() == open(local + "/large", "rb").read()
    images = tf.data.Dataset.from_tensor_slices([root + "/image.png"]).map(
        lambda name: tf.io.decode_png(tf.io.read_file(name))
    )
    assert (next(iter(images)).numpy() == np.arange(12, dtype=np.uint8).reshape(2, 2, 3)).all()
    with gfile.GFile(root + "/large", "rb") as file:
        assert file.size() == 5_000_000
        file.seek(4_000_000)
        assert file.read(10) == open(local + "/large", "rb").read()[4_000_000:4_000_010]
    with gfile.GFile(root + "/text") as file:
        assert file.readline() == "line 0\n"
    model = tf.keras.models.load_model(root + "/model.keras")
    assert model.predict(np.ones((1, 3)), verbose=0).shape == (1, 2)
    with gfile.GFile(root + "/array.npy", "rb") as file:
        assert (np.load(file) == np.arange(1000)).all()

    assert gfile.exists(root + "/text") and not gfile.exists(root + "/missing")
    assert gfile.stat(root + "/large").length == 5_000_000
    assert not gfile.isdir(root + "/text")
    assert gfile.glob(root + "/text") == [root + "/text"]
    copied = local + "/copied"
    gfile.copy(root + "/large", copied, overwrite=True)
    assert open(copied, "rb").read() == open(local + "/large", "rb").read()

    errors = tf.errors
    fails(errors.NotFoundError, "missing", lambda: tf.io.read_file(root + "/missing"))
    fails(errors.UnimplementedError, "name each file", lambda: gfile.glob(root + "/*"))
    # TensorFlow itself says so, of whatever is not a directory.
    fails(errors.NotFoundError, "Could not find directory", lambda: gfile.listdir(root))
    fails(errors.UnimplementedError, "reading only", lambda: tf.io.write_file(root + "/new", "x"))
    fails(errors.UnimplementedError, "reading only", lambda: gfile.remove(root + "/text"))
    fails(errors.UnimplementedError, "reading only", lambda: gfile.copy(local + "/text", root + "/new"))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(root + "/text", queue))
    child.start()
    assert queue.get(timeout=60) == open(local + "/text", "rb").read()
    child.join(60)
    assert child.exitcode == 0


def main():
    tf.experimental.register_filesystem_plugin(os.environ["TF_PLUGIN_LIBRARY"])
    with tempfile.TemporaryDirectory() as local:
        for compression in ["", "GZIP"]:
            for n in range(4):
                with tf.io.TFRecordWriter("%s/records-%d%s" % (local, n, compression), compression) as writer:
                    for i in range(500):
                        writer.write(b"%d-%d" % (n, i) * 100)
        with open(local + "/text", "w") as file:
            file.writelines("line %d\n" % n for n in range(1000))
        with open(local + "/large", "wb") as file:
            file.write(np.random.default_rng(0).bytes(5_000_000))
        image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
        tf.io.write_file(local + "/image.png", tf.io.encode_png(image))
        np.save(local + "/array.npy", np.arange(1000))
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        model.save(local + "/model.keras")
        use(serve(Ranges, local), local)
        use(serve(Whole, local), local)
    assert any(wanted for _, _, wanted in Ranges.requests)
    print("ok")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
