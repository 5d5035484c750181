"""Asserts that `import tensorflow` alone makes a plugin's scheme work.

    TF_PLUGGABLE_DEVICE_LIBRARY_PATH=libmemfs.so python autoload.py --root mem://box/autoload
    python autoload.py --root mem://box/autoload          # with the plugin in site-packages/tensorflow-plugins/
    python autoload.py --root mem://box/autoload --absent # the scheme must not be there (auto-loading turned off)

Prints one line that starts with `ok`, or fails with a message and exit status 1.
"""
import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, metavar="URI", help="a directory in the scheme; made if missing")
    parser.add_argument("--absent", action="store_true", help="assert that the scheme is not registered")
    parser.add_argument("--plugin", metavar="SO",
                        help="register this plugin as well, as old code does: it must say that the scheme is taken, "
                             "and the first registration must stay usable")
    arguments = parser.parse_args()
    root = arguments.root.rstrip("/")
    scheme = root.split("://")[0]
    if arguments.absent:
        try:
            tf.io.gfile.exists(root)
        except tf.errors.UnimplementedError as error:
            if "scheme '%s' not implemented" % scheme not in error.message:
                sys.exit("an unexpected message: %s" % error.message)
            print("ok absent %s://" % scheme)
            return
        sys.exit("%s:// is registered, though it should not be" % scheme)

    path = root + "/file"
    try:
        tf.io.gfile.makedirs(root)
        tf.io.write_file(path, b"written after the import alone")
    except tf.errors.UnimplementedError as error:
        sys.exit("%s:// is not there after `import tensorflow`: %s" % (scheme, error.message))
    if arguments.plugin:
        try:
            tf.experimental.register_filesystem_plugin(arguments.plugin)
        except tf.errors.AlreadyExistsError as error:
            if "File system for %s already registered" % scheme not in error.message:
                sys.exit("an unexpected message: %s" % error.message)
        else:
            sys.exit("registering the plugin again gave no AlreadyExistsError")
    content = tf.io.read_file(path).numpy()
    if content != b"written after the import alone":
        sys.exit("read back %r" % content)
    if tf.io.gfile.listdir(root) != ["file"]:
        sys.exit("the listing is %r" % tf.io.gfile.listdir(root))
    records = [b"one", b"two"]
    with tf.io.TFRecordWriter(root + "/records") as writer:
        for record in records:
            writer.write(record)
    if [record.numpy() for record in tf.data.TFRecordDataset(root + "/records")] != records:
        sys.exit("the records differ")
    tf.io.gfile.rmtree(root)
    print("ok autoload %s://" % scheme)


if __name__ == "__main__":
    main()
