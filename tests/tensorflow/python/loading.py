"""Steps to take right after `import tensorflow`, one an argument, in their order.

    works=URI             files can be written, listed, read and deleted below the URI
    absent=SCHEME         the scheme is not registered
    content=URI=TEXT      the file has this content
    exists=URI            the path exists
    register=SO           tf.experimental.register_filesystem_plugin succeeds
    refused=SO=CODE=TEXT  it fails with this code of tf_status.h and this text
    load-again=SO         TensorFlow loads the library twice more, as two names of one directory make it do
    mapped=SO             prints the SHA-256 of the file of this name in the process's memory, once a mapped file
    site-packages=COUNT   number of names under which TensorFlow's site-packages are on sys.path

Writes `ok STEP` after each step; the first that fails ends the process. What appears on standard error comes from
TensorFlow and the plugins.
"""
import hashlib
import os
import site
import sys

import tensorflow as tf
from tensorflow.python.framework import load_library

from steps import same, take

gfile = tf.io.gfile


def works(root):
    directory = root + "/loading"
    path = directory + "/file"
    gfile.makedirs(directory)
    tf.io.write_file(path, b"written after the import alone")
    same(tf.io.read_file(path).numpy(), b"written after the import alone", "the content")
    same(gfile.listdir(directory), ["file"], "the listing")
    records = [b"one", b"two"]
    with tf.io.TFRecordWriter(directory + "/records") as writer:
        for record in records:
            writer.write(record)
    same([record.numpy() for record in tf.data.TFRecordDataset(directory + "/records")], records, "the records")
    gfile.rmtree(directory)
    same(gfile.exists(path), False, "exists after rmtree")


def absent(scheme):
    try:
        gfile.exists(scheme + "://box/x")
    except tf.errors.UnimplementedError as error:
        same("scheme '%s' not implemented" % scheme in error.message, True, "'not implemented' in %r" % error.message)
    else:
        sys.exit("%s:// is registered, though it should not be" % scheme)


def content(what):
    uri, text = what.split("=")
    same(tf.io.read_file(uri).numpy().decode(), text, "the content of " + uri)


def exists(uri):
    same(gfile.exists(uri), True, "exists of " + uri)


def refused(what):
    library, code, text = what.split("=")
    try:
        tf.experimental.register_filesystem_plugin(library)
    except tf.errors.OpError as error:
        same(error.error_code, int(code), "the code")
        same(text in error.message, True, "%r in %r" % (text, error.message))
    else:
        sys.exit("%s was registered" % library)


def load_again(library):
    load_library.load_library(os.path.dirname(library))
    load_library.load_pluggable_device_library(library)
    load_library.load_pluggable_device_library(library)


def mapped(library):
    name = os.path.basename(library)
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in maps if line.count(" ") >= 5 and "/" in line}
    for path in sorted(paths):
        if os.path.basename(path) == name:
            with open(path, "rb") as file:
                print("sha256 %s" % hashlib.sha256(file.read()).hexdigest())


def site_packages(count):
    here = os.path.dirname(os.path.dirname(tf.__file__))
    names = {path for path in sys.path + site.getsitepackages() if os.path.isdir(path) and os.path.samefile(path, here)}
    same(len(names), int(count), "the number of names of %s (%s)" % (here, sorted(names)))


def register(library):
    tf.experimental.register_filesystem_plugin(library)


take(works, absent, content, exists, register, refused, load_again, mapped, site_packages)
