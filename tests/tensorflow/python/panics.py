"""Lets every operation of panicfs panic that Python can reach, and sees what comes of it.

    python panics.py libpanicfs.so fixtures/panicfs/src/lib.rs

A path's component `panic-in-OP` makes the operation OP panic. Writes `ok OP` after each operation, with
`unreachable OP` for those that TensorFlow has no way to call from Python.
"""
import gc
import re
import sys

import tensorflow as tf

gfile = tf.io.gfile
errors = tf.errors

LIBRARY, SOURCE = sys.argv[1:]
with open(SOURCE) as source:
    LINES = source.read().split("\n")

ROOT = "panicfs://box"


def check(actual, expected, what):
    if actual != expected:
        sys.exit("%s is %r, expected %r" % (what, actual, expected))


def bystander():
    """Other files are not touched by a panic, and everything goes on."""
    path = ROOT + "/bystander/file"
    gfile.makedirs(ROOT + "/bystander")
    tf.io.write_file(path, b"content")
    check(tf.io.read_file(path).numpy(), b"content", "the content of another file")
    check(gfile.listdir(ROOT + "/bystander"), ["file"], "another listing")
    with gfile.GFile(path, "ab") as file:
        file.write(b", more")
    check(gfile.stat(path).length, 13, "the length of another file")
    gfile.rmtree(ROOT + "/bystander")
    check(gfile.exists(path), False, "exists after rmtree")


def create(name, content=b"content"):
    path = "%s/%s" % (ROOT, name)
    with gfile.GFile(path, "wb") as file:
        file.write(content)
    return path


def panics(op, function, *arguments, slot=None):
    """`function` must raise INTERNAL with the operation, the message, and the file and line of the call to trip."""
    try:
        result = function(*arguments)
    except errors.InternalError as error:
        text = error.message
    except Exception as error:  # noqa: BLE001: to say what it was instead
        sys.exit("%s: %s instead of an InternalError: %s" % (op, type(error).__name__, error))
    else:
        sys.exit("%s: %r instead of an InternalError" % (op, result))
    found = re.search(r"plugin panicked in `(\w+)` at ([^ :]+):(\d+): (\S+) requested it", text)
    if not found:
        sys.exit("%s: the message is %r" % (op, text))
    check(found[1], slot or op, "the operation in %r" % text)
    check(SOURCE.endswith(found[2]) and found[2].endswith("panicfs/src/lib.rs"), True, "the file in %r" % text)
    line = LINES[int(found[3]) - 1]
    check('trip("%s"' % op in line, True, '%r: trip("%s" in line %s, which is %r' % (text, op, found[3], line))
    check("panic-in-" + op in found[4], True, "%r: the path" % text)


# Reading and writing ------------------------------------------------------------------------------------------


def read(name):
    return tf.io.read_file(create(name)).numpy()


def new_random_access_file(op):
    panics(op, read, "panic-in-" + op)
    with gfile.GFile(ROOT + "/panic-in-" + op, "rb") as file:
        panics(op, file.read)
    panics(op, lambda: list(tf.data.TFRecordDataset(ROOT + "/panic-in-" + op)))


def read_op(op):
    panics(op, read, "panic-in-" + op)
    panics(op, lambda: list(tf.data.TextLineDataset(ROOT + "/panic-in-" + op)))
    with gfile.GFile(ROOT + "/panic-in-" + op, "rb") as file:
        panics(op, file.read)


def new_writable_file(op):
    panics(op, create, "panic-in-" + op)
    panics(op, tf.io.write_file, "%s/panic-in-%s" % (ROOT, op), b"x")
    panics(op, tf.io.TFRecordWriter, "%s/panic-in-%s" % (ROOT, op))


def new_appendable_file(op):
    panics(op, gfile.GFile("%s/panic-in-%s" % (ROOT, op), "ab").write, b"x")


def broken(function, *arguments):
    """After a panic in a writer each operation on it is an error, so that no gap is taken for success."""
    try:
        function(*arguments)
    except errors.InternalError as error:
        check("broken: an earlier operation on it panicked" in error.message, True, repr(error.message))
    else:
        sys.exit("%s succeeded after a panic" % function)


def writer(name):
    file = gfile.GFile("%s/%s" % (ROOT, name), "wb")
    # The file is opened by the first write.
    file.write(b"")
    return file


def append(op):
    file = gfile.GFile(ROOT + "/panic-in-append", "wb")
    panics(op, file.write, b"x")
    broken(file.flush)
    broken(file.close)


def tell(op):
    file = writer("panic-in-tell")
    panics(op, file.tell)
    broken(file.close)


def flush(op):
    file = writer("panic-in-flush")
    panics(op, file.flush)
    broken(file.flush)
    broken(file.close)


def close(op):
    file = writer("panic-in-close")
    panics(op, file.close)
    broken(file.close)


def sync(op):
    # Only summaries sync, the first time when their file is made.
    panics(op, tf.summary.create_file_writer, "%s/panic-in-%s" % (ROOT, op))


# Memory regions -----------------------------------------------------------------------------------------------


def constant(name):
    path = create(name, b"\0" * 4096)
    return tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[1024], memory_region_name=path).numpy()


def new_read_only_memory_region_from_file(op):
    panics(op, constant, "panic-in-" + op)


def content(op):
    panics(op, constant, "panic-in-" + op, slot="new_read_only_memory_region_from_file")


# Everything that takes paths ----------------------------------------------------------------------------------


def path(function):
    return lambda op: panics(op, function, "%s/panic-in-%s" % (ROOT, op))


def file(function):
    return lambda op: panics(op, function, create("panic-in-" + op))


def two_paths(function):
    return lambda op: panics(op, function, create("panic-in-" + op), ROOT + "/target", True)


def get_file_size(op):
    # To know where the footer begins.
    dataset = tf.data.FixedLengthRecordDataset(create("panic-in-" + op), 7)
    panics(op, lambda: list(dataset))


def is_directory(op):
    name = "%s/panic-in-%s" % (ROOT, op)
    gfile.mkdir(name)
    # Python takes any error for a no.
    check(gfile.isdir(name), False, "isdir")
    try:
        gfile.listdir(name)
    except errors.NotFoundError:
        pass
    else:
        sys.exit("listdir of what is not a directory")


def delete_dir(op):
    # Saving a checkpoint deletes its temporary directory, and goes on when that fails.
    prefix = "%s/panic-in-%s" % (ROOT, op)
    gfile.mkdir(prefix)
    gfile.mkdir(prefix + "/parts")
    tf.raw_ops.SaveV2(prefix=prefix + "/parts/p", tensor_names=["x"], shape_and_slices=[""], tensors=[tf.constant(1.0)])
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[prefix + "/parts/p"], destination_prefix=prefix + "/merged", delete_old_dirs=True
    )
    check(gfile.exists(prefix + "/merged.index"), True, "exists of the merged checkpoint")
    check(gfile.isdir(prefix + "/parts"), True, "isdir of what could not be deleted")


def translate_name(op):
    # It cannot fail: a name that it panics about stays as it is.
    path = create("panic-in-" + op)
    check(tf.io.read_file(path).numpy(), b"content", "the content")
    check(gfile.exists(path), True, "exists")
    check(gfile.exists(ROOT + "/./panic-in-" + op), False, "exists of another spelling")
    gfile.remove(path)


# Not operations, but the author's code all the same -----------------------------------------------------------


def drop(op):
    # A destructor has nobody to tell.
    path = create("panic-in-drop")
    check(tf.io.read_file(path).numpy(), b"content", "the content")
    check(constant("panic-in-drop").sum(), 0, "the constant")
    reader = gfile.GFile(path, "rb")
    reader.read(1)
    unclosed = gfile.GFile(path, "ab")
    unclosed.write(b"x")
    del reader, unclosed
    gc.collect()
    check(gfile.exists(path), True, "exists")


def payload(op):
    # A payload that is not text, and panics when it is dropped.
    try:
        tf.io.read_file(create("panic-oddly-in-read"))
    except errors.InternalError as error:
        check("plugin panicked in `read` at " in error.message, True, repr(error.message))
        check("(no text)" in error.message, True, repr(error.message))
    else:
        sys.exit("no error")


def display(op):
    # The text of an error is the author's code.
    try:
        gfile.stat(ROOT + "/unprintable")
    except errors.UnavailableError as error:
        check("no text today" in error.message and "its text is lost" in error.message, True, repr(error.message))
    else:
        sys.exit("no error")


REACHABLE = {
    "new_random_access_file": new_random_access_file,
    "new_writable_file": new_writable_file,
    "new_appendable_file": new_appendable_file,
    "new_read_only_memory_region_from_file": new_read_only_memory_region_from_file,
    "create_dir": path(gfile.mkdir),
    "recursively_create_dir": path(gfile.makedirs),
    "delete_file": file(gfile.remove),
    "delete_dir": delete_dir,
    "delete_recursively": path(gfile.rmtree),
    "rename_file": two_paths(gfile.rename),
    "copy_file": two_paths(gfile.copy),
    "path_exists": path(gfile.exists),
    "stat": path(gfile.stat),
    "is_directory": is_directory,
    "get_file_size": get_file_size,
    "translate_name": translate_name,
    "get_children": lambda op: (gfile.mkdir(ROOT + "/panic-in-" + op), path(gfile.listdir)(op)),
    "get_matching_paths": path(gfile.glob),
    "read": read_op,
    "append": append,
    "tell": tell,
    "flush": flush,
    "sync": sync,
    "close": close,
    "content": content,
    "drop": drop,
    "payload": payload,
    "display": display,
}

# TensorFlow calls these from C++ only, or not at all.
UNREACHABLE = [
    "paths_exist",
    "flush_caches",
    "start_transaction",
    "end_transaction",
    "add_to_transaction",
    "get_transaction_for_path",
    "get_or_start_transaction_for_path",
    "decode_transaction_token",
    "get_filesystem_configuration",
    "set_filesystem_configuration",
    "get_filesystem_configuration_option",
    "set_filesystem_configuration_option",
    "get_filesystem_configuration_keys",
]

tf.experimental.register_filesystem_plugin(LIBRARY)
bystander()
for name, function in REACHABLE.items():
    function(name)
    bystander()
    print("ok " + name, flush=True)
for name in UNREACHABLE:
    print("unreachable " + name)
