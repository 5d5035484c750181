"""Times of this plugin, of fsspec's clients and of rclone's mount in TensorFlow: the tables of README.md.

    cargo build --workspace --example serve
    python compare.py LIBRARY.so [--rounds 5] [--only nginx]

in a Python with TensorFlow, fsspec, webdav4 and sshfs, as root for the mount, with Debian's rclone and fuse3. One
server at a time; the clients take turns in each round, in another order each time, and each is a running process. A time is the
best of all rounds: other work on the machine only adds to it. A ratio is the time of a client by that of this plugin. Requests are
counted in a round of their own, by a proxy that passes bytes on; those of SFTP are encrypted.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/examples/serve"
CLIENTS = {
    "nginx": ["this plugin", "webdav4", "rclone mount"],
    "openssh": ["this plugin", "sshfs", "rclone mount"],
    "vsftpd": ["this plugin", "fsspec ftp", "rclone mount"],
}
MIB = 1 << 20
LARGE, SMALL, NAMES, MANY = 256 * MIB, 1024, 5_000, 10_000
# What takes more seconds than this is measured once, and its requests are not counted.
SLOW = 30
# What takes more seconds than this is ended, and reported as a failure.
LIMIT = 100
# What is read at once.
AT_ONCE = 16
OPERATIONS = {
    "read 256 MiB, one call": "whole",
    "read 256 MiB, 1 MiB at a time": "pieces",
    "16 files of 16 MiB at once": "at_once",
    "list 5,000 names": "listing",
    "10,000 files of 1 KiB, 16 at once": "small",
}


class Server:
    """A server of the crate `file-servers`, with the files of the tables."""

    def __init__(self, kind):
        self.process = subprocess.Popen([SERVE, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = iter(self.process.stdout.readline, "\n")
        self.settings = dict(line.rstrip("\n").split(" ", 1) for line in lines)
        self.uri, files = self.settings.pop("uri"), pathlib.Path(self.settings.pop("files"))
        scheme, rest = self.uri.split("://")
        self.scheme, (self.host, _, path) = scheme, rest.partition("/")
        self.path = "/" + path if path else ""
        random.seed(1)
        block = random.randbytes(MIB)
        (files / "large").write_bytes(block * (LARGE // MIB))
        for directory in ("parts", "names", "many"):
            (files / directory).mkdir()
        for n in range(AT_ONCE):
            (files / f"parts/{n}").write_bytes(block * 16)
        for n in range(NAMES):
            (files / f"names/{n}").touch()
        for n in range(MANY):
            (files / f"many/{n}").write_bytes(block[:SMALL])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Counter:
    """Passes connections on, and counts requests of HTTP or commands of FTP."""

    REQUEST = re.compile(rb"(?m)^(?:GET|HEAD|PROPFIND|OPTIONS) \S+ HTTP/1.1\r$|^[A-Z]{3,4}(?: [^\r\n]*)?\r$")

    def __init__(self, server):
        self.server, self.count = server.split(":"), 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, source, target, is_client):
        while data := self.received(source):
            if is_client:
                self.count += len(self.REQUEST.findall(data))
            try:
                target.sendall(data)
            except OSError:
                break
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def received(source):
        try:
            return source.recv(1 << 20)
        except OSError:
            return b""


class Worker:
    """A process of this script that runs operations of one client."""

    def __init__(self, arguments, client, server, host):
        self.client, self.server, self.host = client, server, host
        self.mount = None
        root = "%s://%s%s" % (server.scheme, host, server.path)
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        if client == "this plugin":
            settings = {**server.settings, "url": server.settings["url"].replace(server.host, host)}
            environment.update({"TF_OPENDAL_" + key.upper(): value for key, value in settings.items()})
        elif client == "rclone mount":
            self.mount = root = tempfile.mkdtemp(prefix="compare-mount-")
        told = dict(client=client, library=arguments.library, root=root, host=host, path=server.path, **server.settings)
        self.command, self.environment = [sys.executable, __file__, "--worker", json.dumps(told)], environment
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, operation):
        if self.mount:
            # Again for each operation: neither rclone nor the kernel has seen its files.
            mounting = self.mounted()
        print(operation, file=self.process.stdin, flush=True)
        said = select.select([self.process.stdout], [], [], LIMIT)[0] and self.process.stdout.readline()
        seconds = float(said) if said else math.inf
        if not said:
            self.process.kill()
            self.start()
        if self.mount:
            subprocess.run(["umount", self.mount], check=True)
            mounting.wait()
        return seconds

    def mounted(self):
        name, port = self.host.split(":")
        scheme, settings = self.server.scheme, self.server.settings
        options = {
            "webdav": [":webdav:", "--webdav-url", "http://" + self.host],
            "sftp": [":sftp:" + self.server.path, "--sftp-host", name, "--sftp-port", port, "--sftp-user", settings.get("user"),
                     "--sftp-key-file", settings.get("key_file"), "--sftp-set-modtime=false", "--sftp-shell-type", "none"],
            "ftp": [":ftp:" + self.server.path, "--ftp-host", name, "--ftp-port", port, "--ftp-user", "anonymous", "--ftp-pass",
                    "ZY9Iot8hLGCP7ixHTuIfPoj2Fq0"],
        }[scheme]
        mounting = subprocess.Popen(["rclone", "mount", "--config", "/dev/null", "--read-only", *options, self.mount])
        while not os.path.ismount(self.mount):
            assert mounting.poll() is None, "rclone does not mount"
            time.sleep(0.02)
        return mounting

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        if self.mount:
            os.rmdir(self.mount)


class TensorFlow:
    """Names that TensorFlow itself can read: those of the plugin, and of a mount."""

    def __init__(self, told):
        import tensorflow as tf

        if told["client"] == "this plugin":
            tf.experimental.register_filesystem_plugin(told["library"])
        self.tf, self.root = tf, told["root"] + "/"
        # As those of fsspec do, it connects before it is measured.
        tf.io.gfile.listdir(self.root)

    def begin(self):
        pass

    def whole(self):
        return [self.tf.io.read_file(self.root + "large").numpy()]

    def pieces(self):
        return [piece.numpy() for piece in self.tf.data.FixedLengthRecordDataset(self.root + "large", MIB)]

    def many(self, names):
        files = self.tf.data.Dataset.from_tensor_slices([self.root + name for name in names])
        return list(files.map(self.tf.io.read_file, num_parallel_calls=AT_ONCE).as_numpy_iterator())

    def listing(self):
        return self.tf.io.gfile.listdir(self.root + "names")


class Fsspec:
    """A filesystem of fsspec, through `tf.py_function` and `from_generator`."""

    def __init__(self, told):
        import tensorflow as tf

        self.tf, self.told = tf, told
        self.root = told["path"] + "/" if told["client"] != "webdav4" else ""
        self.begin()
        self.fs()

    def begin(self):
        """Forgets what was listed, and the clients of threads that are gone."""
        self.threads = threading.local()
        if hasattr(self, "opened"):
            self.opened.invalidate_cache()

    def fs(self):
        # Clients of webdav4 and sshfs may be used by several threads; that of ftplib may not.
        if self.told["client"] in ("webdav4", "sshfs"):
            holder = self
        else:
            holder = self.threads
        if not hasattr(holder, "opened"):
            holder.opened = self.new()
        return holder.opened

    def new(self):
        told = self.told
        name, port = told["host"].split(":")
        if told["client"] == "webdav4":
            from webdav4.fsspec import WebdavFileSystem

            return WebdavFileSystem("http://" + told["host"], skip_instance_cache=True)
        if told["client"] == "sshfs":
            from sshfs import SSHFileSystem

            return SSHFileSystem(
                name, port=int(port), username=told["user"], client_keys=[told["key_file"]], known_hosts=None, skip_instance_cache=True
            )
        from fsspec.implementations.ftp import FTPFileSystem

        return FTPFileSystem(name, port=int(port), skip_instance_cache=True)

    def read(self, name):
        with self.fs().open(self.root + name, "rb") as file:
            return file.read()

    def function(self, name):
        return self.tf.numpy_function(lambda name: self.read(name.decode()), [name], self.tf.string, stateful=False)

    def whole(self):
        return [self.tf.py_function(lambda name: self.read(name.numpy().decode()), ["large"], self.tf.string).numpy()]

    def pieces(self):
        def generate():
            with self.fs().open(self.root + "large", "rb") as file:
                while piece := file.read(MIB):
                    yield piece

        signature = self.tf.TensorSpec((), self.tf.string)
        return list(self.tf.data.Dataset.from_generator(generate, output_signature=signature).as_numpy_iterator())

    def many(self, names):
        files = self.tf.data.Dataset.from_tensor_slices(names)
        return list(files.map(self.function, num_parallel_calls=AT_ONCE).as_numpy_iterator())

    def listing(self):
        return self.fs().ls(self.root + "names", detail=False)


def work(told):
    is_fsspec = told["client"] not in ("this plugin", "rclone mount")
    client = (Fsspec if is_fsspec else TensorFlow)(told)
    operations = {
        "whole": client.whole,
        "pieces": client.pieces,
        "at_once": lambda: client.many(["parts/%d" % n for n in range(AT_ONCE)]),
        "small": lambda: client.many(["many/%d" % n for n in range(MANY)]),
        "listing": client.listing,
    }
    random.seed(1)
    block = random.randbytes(MIB)
    # The parts of the result: how many copies of the block, or of its beginning.
    expected = {"whole": [256], "pieces": [1] * 256, "at_once": [16] * AT_ONCE}
    print("ready", flush=True)
    for line in sys.stdin:
        operation = line.strip()
        client.begin()
        start = time.perf_counter()
        result = operations[operation]()
        seconds = time.perf_counter() - start
        if operation == "listing":
            assert len(result) == NAMES, len(result)
        elif operation == "small":
            assert result == [block[:SMALL]] * MANY, "other bytes"
        else:
            assert [len(part) for part in result] == [copies * MIB for copies in expected[operation]], "other lengths"
            for part in result:
                assert zlib.crc32(part) == zlib.crc32(block * (len(part) // MIB)), "other bytes"
        del result
        print(seconds, flush=True)


def compare(arguments, kind, clients):
    server = Server(kind)
    counter = Counter(server.host)
    times, counts = collections.defaultdict(list), {}
    operations = [name for name in OPERATIONS if arguments.operation in name]
    try:
        workers = [Worker(arguments, client, server, server.host) for client in clients]
        for number in range(arguments.rounds):
            for operation in operations:
                for at in range(len(workers)):
                    worker = workers[(at + number) % len(workers)]
                    if max(times[operation, worker.client], default=0) > SLOW:
                        continue
                    seconds = worker.run(OPERATIONS[operation])
                    times[operation, worker.client].append(seconds)
                    print("%-12s %-36s %-14s %8.3f s" % (kind, operation, worker.client, seconds), file=sys.stderr, flush=True)
        for worker in workers:
            worker.close()
        if server.scheme != "sftp" and not arguments.no_counts:
            for client in clients:
                worker = Worker(arguments, client, server, counter.host)
                for operation in operations:
                    if max(times[operation, client], default=0) > SLOW:
                        continue
                    counter.count = 0
                    if worker.run(OPERATIONS[operation]) < math.inf:
                        counts[operation, client] = counter.count
                worker.close()
    finally:
        server.close()
    print("\n%s\n\n| | %s |" % (kind, " | ".join(clients)))
    print("|---|%s" % ("---|" * len(clients)))
    for operation in operations:
        cells = []
        for client in clients:
            best, own = (min(times[operation, name], default=0) for name in (client, "this plugin"))
            cell = "%.2f s" % best if best >= 1 else "%.0f ms" % (best * 1000)
            if best == math.inf:
                cell = "fails, or takes more than %d s" % LIMIT
            elif own and client != "this plugin":
                cell += " (%.2g×)" % (best / own)
            if (operation, client) in counts:
                cell += ", {:,}".format(counts[operation, client])
            cells.append(cell)
        print("| %s | %s |" % (operation, " | ".join(cells)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="?")
    parser.add_argument("--worker", type=json.loads)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--operation", default="")
    parser.add_argument("--no-counts", action="store_true")
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker)
    has_mount = shutil.which("rclone") and shutil.which("fusermount3") and os.access("/dev/fuse", os.W_OK)
    if not has_mount:
        print("without rclone's mount: it needs rclone, fusermount3 and /dev/fuse", file=sys.stderr)
    for kind, clients in CLIENTS.items():
        if arguments.only in kind:
            compare(arguments, kind, [client for client in clients if has_mount or client != "rclone mount"])


main()
