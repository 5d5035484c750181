"""The operations through TensorFlow: `s3://` by a plugin, or a directory of this machine by TensorFlow's own filesystem."""
import importlib
import logging
import os
import random
import threading

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

logging.getLogger("tensorflow").setLevel(logging.ERROR)

VERSION = "TensorFlow " + tf.__version__
KIB, MIB = 1 << 10, 1 << 20
GFile = tf.io.gfile.GFile


def read_chunks(path):
    total = 0
    with GFile(path, "rb") as file:
        while chunk := file.read(MIB):
            total += len(chunk)
    return total


def records(files, **options):
    dataset = tf.data.TFRecordDataset(files, **options)
    return int(dataset.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1))


class Client:
    def __init__(self, arguments):
        self.root = arguments.root.rstrip("/")
        if arguments.plugin:
            tf.experimental.register_filesystem_plugin(os.path.abspath(arguments.plugin))
        if arguments.module:
            module = importlib.import_module(arguments.module)
            global VERSION
            VERSION += ", %s %s" % (arguments.module, module.__version__)
        self.chunk = os.urandom(MIB)
        self.files = ["%s/tfrecord/part-%02d" % (self.root, index) for index in range(16)]

    def _large(self, part):
        return "%s/big/%s" % (self.root, part)

    def _small(self, first, count):
        return ["%s/small/f-%05d" % (self.root, index) for index in range(first, first + count)]

    # The files that all clients read, made on this machine.

    def make_files(self):
        os.makedirs(self.root + "/big")
        os.makedirs(self.root + "/tfrecord")
        for name, length in [("whole", 256 * MIB), ("tenth", 256 * MIB // 10)]:
            with open(self._large(name), "wb") as file:
                data = random.Random(1)
                for begin in range(0, length, MIB):
                    file.write(data.randbytes(min(MIB, length - begin)))
        for index, path in enumerate(self.files):
            with tf.io.TFRecordWriter(path) as writer:
                for record in range(1023):
                    writer.write(random.Random(index << 10 | record).randbytes(16 * KIB))

    # Reading.

    def checksum(self, part):
        import zlib

        value = 0
        with GFile(self._large(part), "rb") as file:
            while chunk := file.read(MIB):
                value = zlib.crc32(chunk, value)
        return value

    def read_chunks(self, part):
        return read_chunks(self._large(part))

    def read_whole(self, part):
        with GFile(self._large(part), "rb") as file:
            return len(file.read())

    def read_file(self, part):
        return int(tf.strings.length(tf.io.read_file(self._large(part))))

    def records(self):
        return records(self.files)

    def records_parallel(self):
        return records(self.files, num_parallel_reads=8)

    def records_buffer(self):
        return records(self.files, buffer_size=256 * KIB)

    def read_random(self, count):
        places = random.Random(7)
        total = 0
        with GFile(self._large("whole"), "rb") as file:
            for _ in range(count):
                file.seek(places.randrange(256 * MIB - 64 * KIB))
                total += len(file.read(64 * KIB))
        return total

    def read_many(self):
        lengths = []

        def read(index):
            lengths.append(read_chunks("%s/many/f-%02d" % (self.root, index)))

        threads = [threading.Thread(target=read, args=(index,)) for index in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(lengths)

    # Writing.

    def write_large(self, out):
        with GFile("%s/%s/large" % (self.root, out), "wb") as file:
            for _ in range(256):
                file.write(self.chunk)

    def write_small(self, out, first, count):
        for index in range(first, first + count):
            with GFile("%s/%s/small-%05d" % (self.root, out, index), "wb") as file:
                file.write(b"y" * KIB)

    def append(self, out):
        with GFile("%s/%s/log" % (self.root, out), "ab") as file:
            file.write(b"z" * KIB)

    def flush(self, out):
        with GFile("%s/%s/flushed" % (self.root, out), "wb") as file:
            for _ in range(16):
                file.write(self.chunk)
                file.flush()

    def event_log(self, out):
        writer = tf.summary.create_file_writer("%s/%s/events" % (self.root, out))
        with writer.as_default():
            for step in range(50):
                tf.summary.write("data", tf.random.uniform([50_000]), step=step)
                writer.flush()
        writer.close()

    # Names.

    def listdir(self, part):
        return len(tf.io.gfile.listdir("%s/listed-%s" % (self.root, part)))

    def glob(self, part):
        return len(tf.io.gfile.glob("%s/listed-%s/*" % (self.root, part)))

    def glob_tree(self, part):
        return len(tf.io.gfile.glob("%s/tree-%s/*/*/*" % (self.root, part)))

    def walk(self, part):
        return sum(len(files) for _, _, files in tf.io.gfile.walk("%s/tree-%s" % (self.root, part)))

    def stat(self, first, count):
        return sum(tf.io.gfile.stat(path).length for path in self._small(first, count))

    def exists(self, first, count):
        return sum(tf.io.gfile.exists(path) for path in self._small(first, count))

    def exists_missing(self, first, count):
        return sum(tf.io.gfile.exists(path + ".missing") for path in self._small(first, count))

    def isdir(self, first, count):
        names = ("%s/dirs/d-%05d" % (self.root, index) for index in range(first, first + count))
        return sum(tf.io.gfile.isdir(name) for name in names)

    def read_small(self, first, count):
        total = 0
        for path in self._small(first, count):
            with GFile(path, "rb") as file:
                total += len(file.read())
        return total

    def copy(self, out):
        tf.io.gfile.copy(self.root + "/copy/source", "%s/%s/copied" % (self.root, out), overwrite=True)

    def rename(self, out):
        tf.io.gfile.rename("%s/%s/before" % (self.root, out), "%s/%s/after" % (self.root, out), overwrite=True)

    def rmtree(self, out, part):
        tf.io.gfile.rmtree("%s/%s/many-%s" % (self.root, out, part))

    # Models: 100 MiB in 20 variables.

    def _module(self):
        module = tf.Module()
        module.variables_list = [tf.Variable(tf.random.uniform([5 * MIB // 4])) for _ in range(20)]
        return module

    def _checkpoint(self):
        return tf.train.Checkpoint(module=self._module())

    def prepare_write(self, out):
        self.checkpoint = self._checkpoint()

    def checkpoint_write(self, out):
        self.checkpoint.write("%s/%s/written/ckpt" % (self.root, out))

    def prepare_read(self, out):
        self.checkpoint = self._checkpoint()
        self.checkpoint.write("%s/%s/read/ckpt" % (self.root, out))

    def checkpoint_read(self, out):
        self.checkpoint.read("%s/%s/read/ckpt" % (self.root, out)).assert_consumed()

    def prepare_manager(self, out):
        directory = "%s/%s/managed" % (self.root, out)
        self.manager = tf.train.CheckpointManager(self._checkpoint(), directory, max_to_keep=3)

    def manager_save(self, out):
        self.manager.save()

    def prepare_model(self, out):
        self.module = self._module()

    def model_save(self, out):
        tf.saved_model.save(self.module, "%s/%s/saved" % (self.root, out))

    def prepare_load(self, out):
        tf.saved_model.save(self._module(), "%s/%s/load" % (self.root, out))

    def model_load(self, out):
        return len(tf.saved_model.load("%s/%s/load" % (self.root, out)).variables_list)
