"""Ends the interpreter in the ways that programs do, with files of a plugin in use.

    python leaving.py WAY ROOT      WAY is one of the functions below; the plugin is loaded at import

The exit status must be 0. What ends up on standard error comes from TensorFlow and the plugin.
"""
import atexit
import gc
import multiprocessing
import os
import sys
import threading
import time

import tensorflow as tf

gfile = tf.io.gfile

# At the end Python takes everything apart, in a fork of `fork_server.py` too.
gc.unfreeze()
gc.set_threshold(700, 10, 10)
atexit.unregister(gc.freeze)


def check(actual, expected, what):
    if actual != expected:
        # Threads may be running that do not end.
        print("%s is %r, expected %r" % (what, actual, expected), file=sys.stderr, flush=True)
        os._exit(1)


def write(path, content):
    with gfile.GFile(path, "wb") as file:
        file.write(content)


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


KEPT = []


def with_open_files(root):
    """Files in every state stay open until Python takes its modules apart."""
    path = root + "/file"
    write(path, b"content\n" * 10000)
    reader = gfile.GFile(path, "rb")
    check(reader.read(7), b"content", "the beginning")
    never_closed = gfile.GFile(root + "/never-closed", "wb")
    never_closed.write(b"some bytes")
    never_flushed = gfile.GFile(root + "/appended", "ab")
    never_flushed.write(b"more bytes")
    records = tf.io.TFRecordWriter(root + "/records")
    records.write(b"record")
    lines = iter(tf.data.TextLineDataset([path] * 8).interleave(
        lambda line: tf.data.TextLineDataset([path]), cycle_length=8, num_parallel_calls=8).prefetch(100))
    check(next(lines).numpy(), b"content", "a line")
    # Not closed, not dropped: what refers to them is the module itself and a cycle.
    cycle = [reader, never_closed, never_flushed, records, lines]
    cycle.append(cycle)
    KEPT.append(cycle)
    summaries = tf.summary.create_file_writer(root + "/summaries")
    with summaries.as_default():
        tf.summary.write("x", 1.0, step=1)
    KEPT.append(summaries)


def with_tensorflow_threads(root):
    """TensorFlow's own threads go on with reading while the interpreter ends."""
    for number in range(8):
        write("%s/%d" % (root, number), b"x" * 300000)
    names = tf.data.Dataset.list_files(root + "/*").repeat()
    contents = iter(names.map(tf.io.read_file, num_parallel_calls=16).prefetch(1000))
    records = iter(names.interleave(
        lambda name: tf.data.FixedLengthRecordDataset(name, 1000), cycle_length=8, num_parallel_calls=8).prefetch(100000))
    for _ in range(20):
        check(len(next(contents).numpy()), 300000, "the length")
        check(next(records).numpy(), b"x" * 1000, "a record")
    KEPT.extend([contents, records])


def with_python_threads(root):
    """Threads that nobody waits for go on with reading, writing and listing while the interpreter ends."""
    path = root + "/file"
    write(path, b"x" * 1000000)
    rounds = [0] * 6

    def work(number):
        mine = "%s/thread-%d" % (root, number)
        while True:
            check(len(read(path)), 1000000, "the length")
            write(mine, b"y" * 1000)
            gfile.listdir(root)
            gfile.glob(root + "/*")
            rounds[number] += 1

    for number in range(len(rounds)):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    limit = time.monotonic() + 60
    while min(rounds) < 3:
        check(time.monotonic() < limit, True, "the threads' progress %r in time" % rounds)
        time.sleep(0.01)


def in_child(root, number):
    path = "%s/child-%d" % (root, number)
    check(read(root + "/parent"), b"from the parent", "the parent's file")
    write(path, b"from a child")
    check(read(path), b"from a child", "the child's file")
    check("child-%d" % number in gfile.listdir(root), True, "the child's file in the listing")
    gfile.rename(path, path + "-renamed")
    check(gfile.exists(path), False, "exists after the renaming")
    return number


def wait_for(child):
    """The exit status of a child, which must end in time."""
    limit = time.monotonic() + 60
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        check(time.monotonic() < limit, True, "the child's end in time")
        time.sleep(0.01)


def with_forks(root):
    """Children of a process that has used the plugin use it too, with open files of the parent."""
    write(root + "/parent", b"from the parent")
    inherited = gfile.GFile(root + "/parent", "rb")
    check(inherited.read(4), b"from", "the beginning")
    half_written = gfile.GFile(root + "/half-written", "wb")
    half_written.write(b"parent ")
    # As with every buffered file: what is in the buffer now, each child would write too.
    half_written.flush()
    for number in range(4):
        child = os.fork()
        if child == 0:
            in_child(root, number)
            check(inherited.read(), b" the parent", "the rest, in the child")
            # Half of them without taking the interpreter apart.
            if number % 2:
                os._exit(0)
            sys.exit(0)
        check(wait_for(child), 0, "the child's exit status")
    check(inherited.read(), b" the parent", "the rest, in the parent")
    half_written.write(b"again")
    half_written.close()
    check(read(root + "/half-written"), b"parent again", "what the parent wrote before and after")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        check(pool.starmap(in_child, [(root, number) for number in range(10, 20)]), list(range(10, 20)), "the answers")
    check(read(root + "/parent"), b"from the parent", "the parent's file")


def in_new_process(root):
    # Files in memory do not exist in another process; the scheme does.
    gfile.makedirs(root)
    write(root + "/parent", b"from the parent")
    return in_child(root, 1)


def with_spawned_processes(root):
    """New processes load the plugin themselves, as the environment tells them."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        check(pool.apply(in_new_process, (root,)), 1, "the answer")


def at_once(root):
    """Nothing was done with the plugin but loading it."""


if __name__ == "__main__":
    way, root = sys.argv[1:]
    if way != "at_once":
        gfile.makedirs(root)
    globals()[way](root)
    print("ok " + way, flush=True)
