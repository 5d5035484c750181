"""What processes do to s3://: fork, spawn, be interrupted, end in the middle.

    python s3_process.py WAY --root s3://bucket/process --control http://127.0.0.1:PORT

WAY is one of the functions in `WAYS`. The plugin is loaded at import, with settings from the environment. The last
line on standard output is `ok WAY`; the exit status then is the one that the way's description says, 0 if none.
"""
import argparse
import atexit
import contextlib
import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

from s3_common import CHILD_LIMIT, MIB, Control, check, fails, wait_for  # noqa: E402

# At the end Python takes everything apart, as in a user's process.
gc.unfreeze()
gc.set_threshold(700, 10, 10)
atexit.unregister(gc.freeze)

gfile = tf.io.gfile
errors = tf.errors
WAYS = {}
KEPT = []


def way(function):
    WAYS[function.__name__] = function
    return function


def write(path, data):
    with gfile.GFile(path, "wb") as file:
        file.write(data)
    return path


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def pattern(size, seed):
    return random.Random(seed).randbytes(size)


def fork(function, *arguments):
    """Runs a function in a forked child and returns the child's number."""
    child = os.fork()
    if child:
        return child
    # Says where it hangs, and ends it. (`faulthandler`'s own timer does not survive a second fork.)
    signal.alarm(CHILD_LIMIT - 2)
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001: whatever it is, this process ends here
        print("in the child: %s: %s" % (type(error).__name__, error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def use(root, number):
    """Everything that a program does, in whatever process."""
    check(read(root + "/common"), pattern(3 * MIB, 1), "the common file")
    mine = "%s/process-%s" % (root, number)
    write(mine, b"%d" % number)
    check(read(mine), b"%d" % number, "the own file")
    check(os.path.basename(mine) in gfile.listdir(root), True, "the own file in the listing")
    gfile.rename(mine, mine + "-renamed")
    check((gfile.exists(mine), gfile.exists(mine + "-renamed")), (False, True), "exists after the renaming")
    gfile.remove(mine + "-renamed")
    return number


# Fork ---------------------------------------------------------------------------------------------------------


@way
def fork_before_use(root, control):
    """The plugin is loaded, nothing more; then parent and children use it."""
    # The common file is made by a child, so that the parent has used nothing.
    check(wait_for(fork(write, root + "/common", pattern(3 * MIB, 1))), 0, "the first child's status")
    for number in range(4):
        check(wait_for(fork(use, root, number)), 0, "the status of child %d" % number)
    use(root, 10)
    check(wait_for(fork(use, root, 11)), 0, "the status of a child after use")


@way
def fork_after_use(root, control):
    write(root + "/common", pattern(3 * MIB, 1))
    use(root, 0)
    children = [fork(use, root, number) for number in range(1, 5)]
    use(root, 5)
    check([wait_for(child) for child in children], [0] * 4, "the statuses")
    # Children of children, as in a launcher that starts loaders.
    check(wait_for(fork(lambda: check(wait_for(fork(use, root, 6)), 0, "the grandchild's status"))), 0, "the status")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        check(pool.starmap(use, [(root, number) for number in range(20, 29)]), list(range(20, 29)), "the answers")
    use(root, 7)


@way
def fork_during_io(root, control):
    """Other threads of the parent are reading and writing at the moment of each fork."""
    size = 24 * MIB
    data = pattern(size, 2)
    write(root + "/common", pattern(3 * MIB, 1))
    write(root + "/large", data)
    # A network as it is: transfers are under way at any moment.
    control.ask("shape", latency_ms=5, connection_mbps=50)
    stop = threading.Event()
    failures = []
    rounds = [0] * 4

    def reading(number):
        # One open file, read again and again: what is in flight is inside of the plugin.
        with gfile.GFile(root + "/large", "rb") as file:
            while not stop.is_set():
                file.seek(0)
                for offset in range(0, size, MIB):
                    check(file.read(MIB) == data[offset:offset + MIB], True, "the bytes at %d" % offset)
                    if stop.is_set():
                        break
                rounds[number] += 1

    def writing(number):
        block = data[:MIB]
        while not stop.is_set():
            with gfile.GFile("%s/written-%d" % (root, number), "wb") as file:
                for _ in range(12):
                    file.write(block)
            rounds[number] += 1

    def guarded(function, number):
        try:
            function(number)
        except BaseException as error:  # noqa: BLE001: to report it in the main thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(function, number))
               for number, function in enumerate((reading, reading, writing, writing))]
    for thread in threads:
        thread.start()
    try:
        for number in range(12):
            time.sleep(random.Random(number).uniform(0.02, 0.2))
            started = time.monotonic()
            check(wait_for(fork(use, root, number)), 0, "the status of child %d" % number)
            check(time.monotonic() - started < 15, True, "the end of child %d within 15 s" % number)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        control.ask("shape")
    if failures:
        raise failures[0]
    check(any(thread.is_alive() for thread in threads), False, "a thread of the parent hangs")
    check(control.uploads("process"), [], "unfinished uploads")
    for number in (2, 3):
        check(len(read("%s/written-%d" % (root, number))), 12 * MIB, "the length of a written file")


@way
def inherited_reader(root, control):
    """A file that the parent has open: the child reads the right bytes, or is told within a second."""
    data = pattern(20 * MIB, 3)
    write(root + "/file", data)
    reader = gfile.GFile(root + "/file", "rb")
    check(reader.read(MIB) == data[:MIB], True, "the beginning")

    def child():
        started = time.monotonic()
        try:
            rest = reader.read(19 * MIB)
        except errors.OpError as error:
            check(bool(error.message), True, "a message")
            check(time.monotonic() - started < 1, True, "the error within a second: %s" % error.message)
        else:
            check(rest == data[MIB:], True, "the rest")
        # A file that the child opens works in any case.
        check(read(root + "/file") == data, True, "the file, opened by the child")

    check(wait_for(fork(child)), 0, "the child's status")
    check(reader.read(19 * MIB) == data[MIB:], True, "the rest, in the parent")


@way
def inherited_writer(root, control):
    """A child can neither publish nor abort what its parent is writing."""
    first, second = pattern(12 * MIB, 4), pattern(3 * MIB, 5)
    large = gfile.GFile(root + "/large", "wb")
    large.write(first)
    small = gfile.GFile(root + "/small", "wb")
    small.write(b"from the parent")

    def child(end):
        for writer in (large, small):
            for function, arguments in ((writer.write, (b"from a child" * MIB,)), (writer.flush, ()), (writer.close, ())):
                started = time.monotonic()
                fails(errors.FailedPreconditionError, ["fork"], function, *arguments)
                check(time.monotonic() - started < 1, True, "the answer of %s within a second" % function.__name__)
        end()

    def drop():
        nonlocal large, small
        del large, small

    check(wait_for(fork(child, lambda: None)), 0, "the status of a child that just ends")
    check(wait_for(fork(child, drop)), 0, "the status of a child that drops its writers")
    number = os.fork()
    if number == 0:
        # Ends as programs do, with all of the interpreter's clean-up.
        sys.exit(0)
    check(wait_for(number), 0, "the status of a child that ends with clean-up")
    large.write(second)
    large.close()
    small.write(b", all of it")
    small.close()
    check(read(root + "/large") == first + second, True, "the large file")
    check(read(root + "/small"), b"from the parent, all of it", "the small file")
    check(control.uploads("process"), [], "unfinished uploads")


def in_new_process(root, number):
    return use(root, number)


@way
def spawned_processes(root, control):
    write(root + "/common", pattern(3 * MIB, 1))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        check(pool.starmap(in_new_process, [(root, 1), (root, 2)]), [1, 2], "the answers")
    check(read(root + "/common"), pattern(3 * MIB, 1), "the common file")


@way
def a_fork_server(root, control):
    write(root + "/common", pattern(3 * MIB, 1))
    context = multiprocessing.get_context("forkserver")
    # Loads the plugin once; each child is a fork of that.
    context.set_forkserver_preload(["tensorflow"])
    with context.Pool(3) as pool:
        check(pool.starmap(in_new_process, [(root, number) for number in range(6)]), list(range(6)), "the answers")


# Ends ---------------------------------------------------------------------------------------------------------


@way
def open_files(root, control):
    """Files in every state stay open until Python takes its modules apart."""
    write(root + "/file", b"content\n" * 1000000)
    reader = gfile.GFile(root + "/file", "rb")
    check(reader.read(7), b"content", "the beginning")
    never_closed = gfile.GFile(root + "/never-closed", "wb")
    never_closed.write(b"some bytes")
    half = gfile.GFile(root + "/half", "wb")
    half.write(b"x" * (20 * MIB))
    appended = gfile.GFile(root + "/file", "ab")
    appended.write(b"more bytes")
    records = tf.io.TFRecordWriter(root + "/records")
    records.write(b"record")
    lines = iter(tf.data.TextLineDataset([root + "/file"] * 4).prefetch(100))
    check(next(lines).numpy(), b"content", "a line")
    cycle = [reader, never_closed, half, appended, records, lines]
    cycle.append(cycle)
    KEPT.append(cycle)


@way
def busy_background(root, control):
    """Parts are on their way in both directions, slowly, when the interpreter ends."""
    write(root + "/file", b"x" * (64 * MIB))
    control.ask("shape", latency_ms=30, connection_mbps=1)
    reader = gfile.GFile(root + "/file", "rb")
    reader.read(1)
    writer = gfile.GFile(root + "/half", "wb")
    writer.write(b"y" * (40 * MIB))
    KEPT.extend([reader, writer])
    contents = iter(tf.data.Dataset.from_tensors(root + "/file").repeat().map(
        tf.io.read_file, num_parallel_calls=4).prefetch(10))
    KEPT.append(contents)


@way
def a_stalled_server(root, control):
    """The server has stopped answering while a thread that nobody waits for reads."""
    write(root + "/file", b"x" * (30 * MIB))
    reader = gfile.GFile(root + "/file", "rb")
    reader.read(1)
    control.fault(what="stall")
    threading.Thread(target=lambda: read(root + "/file"), daemon=True).start()
    time.sleep(0.3)
    KEPT.append(reader)


@way
def interrupted(root, control):
    """SIGINT in the middle of reading and writing: Python's KeyboardInterrupt, once, and everything goes on."""
    # A shell that started this in the background may have ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    data = pattern(8 * MIB, 6)
    write(root + "/file", data)
    for _ in range(5):
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                check(read(root + "/file") == data, True, "the content")
                write(root + "/copy", data)
        except KeyboardInterrupt:
            continue
        raise AssertionError("no KeyboardInterrupt within 20 s")
    check(read(root + "/file") == data, True, "the content after the interrupts")
    check(write(root + "/after", b"x") and read(root + "/after"), b"x", "a file after the interrupts")


@way
def killed_by_sigint(root, control):
    """With the system's own handler SIGINT ends the process (status -2): no thread of the plugin swallows it."""
    data = pattern(8 * MIB, 7)
    write(root + "/file", data)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print("ok killed_by_sigint", flush=True)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        read(root + "/file")
    raise AssertionError("still here after 20 s")


# Threads ------------------------------------------------------------------------------------------------------


@way
def sixty_four_threads(root, control):
    """64 threads read, seek and list one file at once; some of them through one common open file."""
    size = 16 * MIB
    data = pattern(size, 8)
    path = write(root + "/file", data)
    shared = gfile.GFile(path, "rb")
    lock = threading.Lock()
    failures = []

    def work(number):
        rng = random.Random(number)
        with gfile.GFile(path, "rb") as own:
            for _ in range(20):
                offset = rng.randrange(size)
                length = rng.choice((1, 12, 4096, 70000, MIB))
                own.seek(offset)
                check(own.read(length) == data[offset:offset + length], True, "%d bytes at %d" % (length, offset))
                # A GFile has one position, so threads that share it take turns. Other reads continue in the plugin.
                with lock:
                    shared.seek(offset)
                    check(shared.read(100) == data[offset:offset + 100], True, "the shared file at %d" % offset)
        if number % 8 == 0:
            check(tf.io.read_file(path).numpy() == data, True, "the whole file")
            check(gfile.stat(path).length, size, "the length")

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001: to report it in the main thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    check([thread.is_alive() for thread in threads].count(True), 0, "threads that hang")
    if failures:
        raise failures[0]
    # One open file, many threads inside of TensorFlow: a checkpoint's reader.
    names = ["v%02d" % number for number in range(64)]
    values = [tf.fill([4096 + number], float(number)) for number in range(64)]
    tf.raw_ops.SaveV2(prefix=root + "/many", tensor_names=names, shape_and_slices=[""] * 64, tensors=values)
    restored = tf.raw_ops.RestoreV2(prefix=root + "/many", tensor_names=names, shape_and_slices=[""] * 64,
                                    dtypes=[tf.float32] * 64)
    for one, two in zip(values, restored):
        check(bool(tf.reduce_all(one == two)), True, "a restored tensor")


@way
def at_once(root, control):
    """Nothing was done with the plugin but loading it."""


@way
def used(root, control):
    """The least that a program does."""
    path = "%s/%d" % (root, os.getpid())
    write(path, b"content")
    check(read(path), b"content", "the content")


@way
def used_by_children(root, control):
    """Each of CHILDREN begins with a plugin that is loaded and not used, and ends as programs do."""
    children = int(os.environ["CHILDREN"])
    for number in range(children):
        child = os.fork()
        if child == 0:
            path = "%s/%d" % (root, number)
            write(path, b"content")
            check(read(path), b"content", "the content")
            # With all of the interpreter's clean-up and of the libraries'.
            sys.exit(0)
        check(wait_for(child), 0, "the status of child %d" % number)
    check(len(gfile.listdir(root)), children, "files of children")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("--root", required=True, metavar="URI")
    parser.add_argument("--control", required=True, metavar="URL")
    arguments = parser.parse_args()
    root = "%s/%s" % (arguments.root, arguments.way)
    faulthandler.register(signal.SIGALRM, chain=True)
    with contextlib.suppress(SystemExit):
        WAYS[arguments.way](root, Control(arguments.control))
    print("ok " + arguments.way, flush=True)


if __name__ == "__main__":
    main()
