"""What a client makes of Azure Blob Storage: the table in README.md, on Azurite.

    python compare.py LIBRARY.so       this plugin, in a Python with TensorFlow
    python compare.py tensorflow-io    in a Python with TensorFlow 2.16 and tensorflow-io 0.37.1
    python compare.py adlfs            in a Python with adlfs

`cargo test -p az` installs Azurite, which it starts, into `target/azurite`.
"""
import http.client
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
LARGE = b"".join(b"%07d\n" % n for n in range(20 << 17))  # 20 MiB
AZURITE = pathlib.Path(__file__).resolve().parents[2] / "target/azurite"


class Azurite:
    """Azurite, and Microsoft's own client for what is there before."""

    def __init__(self):
        command = ["node", "launch.js", "--inMemoryPersistence", "--blobPort", "0", "--silent", "--disableTelemetry"]
        # Clients are newer than it is.
        command.append("--skipApiVersionCheck")
        self.process = subprocess.Popen(
            command, cwd=AZURITE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "AZURITE_KEY": KEY}
        )
        self.endpoint = self.process.stdout.readline().strip()
        self.script("await service.getContainerClient('data').create()")

    def script(self, text):
        print(json.dumps(text), file=self.process.stdin, flush=True)
        said = json.loads(self.process.stdout.readline())
        assert "error" not in said, said
        return said["value"]

    def put(self, key, content):
        text = "await service.getContainerClient('data').getBlockBlobClient(%s).upload(Buffer.from(%s, 'latin1'), %d)"
        self.script(text % (json.dumps(key), json.dumps(content.decode("latin1")), len(content)))

    def get(self, key):
        text = "return (await service.getContainerClient('data').getBlobClient(%s).downloadToBuffer()).toString('latin1')"
        return self.script(text % json.dumps(key)).encode("latin1")

    def keys(self):
        text = "const all = []; for await (const b of service.getContainerClient('data').listBlobsFlat()) all.push(b.name); return all"
        return self.script(text)


class Counter(http.server.BaseHTTPRequestHandler):
    """Passes requests on to Azurite, and counts them and the bytes of their bodies."""

    protocol_version = "HTTP/1.1"
    requests, bytes, endpoint = 0, 0, ""

    def log_message(self, *_):
        pass

    def handle_any(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        azurite = http.client.HTTPConnection(Counter.endpoint.split("://")[1])
        azurite.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            azurite.putheader(name, value)
        azurite.endheaders(content or None)
        response = azurite.getresponse()
        body = response.read()
        Counter.requests += 1
        Counter.bytes += len(content) + len(body)
        self.send_response(response.status)
        for name, value in response.headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = response.headers.get("Content-Length", "0") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


class TensorFlow:
    def __init__(self, client, endpoint):
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        host = endpoint.split("://")[1]
        if client == "tensorflow-io":
            os.environ.update(TF_AZURE_STORAGE_KEY=KEY, TF_AZURE_STORAGE_USE_HTTP="1")
            os.environ["TF_AZURE_STORAGE_BLOB_ENDPOINT"] = "%s/%s" % (host, ACCOUNT)
        else:
            os.environ.update(AZURE_STORAGE_KEY=KEY, TF_AZ_BLOB_ENDPOINT="%s/%s" % (endpoint, ACCOUNT), TF_AZ_LISTING_TTL_MS="0")
        import tensorflow as tf

        if client == "tensorflow-io":
            import tensorflow_io as tfio  # noqa: F401
        else:
            tf.experimental.register_filesystem_plugin(client)
        gfile, self.root = tf.io.gfile, "az://%s/data/" % ACCOUNT
        self.open = lambda key, mode: gfile.GFile(self.root + key, mode)
        self.read = lambda key: tf.io.read_file(self.root + key).numpy()
        self.size = lambda key: gfile.stat(self.root + key).length
        self.list = lambda key: sorted(name.strip("/") for name in gfile.listdir(self.root + key))
        self.rename = lambda old, new: gfile.rename(self.root + old, self.root + new)
        self.remove_tree = lambda key: gfile.rmtree(self.root + key)


class Adlfs:
    def __init__(self, endpoint):
        import adlfs

        text = "DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s/%s;" % (ACCOUNT, KEY, endpoint, ACCOUNT)
        fs = adlfs.AzureBlobFileSystem(connection_string=text, use_listings_cache=False)
        self.open = lambda key, mode: fs.open("data/" + key, mode)
        self.read = lambda key: fs.cat_file("data/" + key)
        self.size = lambda key: fs.info("data/" + key)["size"]
        self.list = lambda key: sorted(name.rstrip("/").rsplit("/", 1)[-1] for name in fs.ls("data/" + key, detail=False))
        self.rename = lambda old, new: fs.mv("data/" + old, "data/" + new)
        self.remove_tree = lambda key: fs.rm("data/" + key, recursive=True)


def main(client):
    azurite = Azurite()
    Counter.endpoint = azurite.endpoint
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = "http://127.0.0.1:%d" % server.server_port
    fs = Adlfs(endpoint) if client == "adlfs" else TensorFlow(client, endpoint)

    def missing():
        return "%d bytes" % len(fs.read("missing"))

    def missing_stat():
        return "size %d" % fs.size("missing")

    def append():
        azurite.put("log", b"one ")
        with fs.open("log", "ab") as file:
            file.write(b"two")
        return {b"one two": "right", b"two": "the rest is lost"}.get(azurite.get("log"), "WRONG")

    def append_to_large():
        with fs.open("large", "wb") as file:
            file.write(LARGE)
        Counter.requests = Counter.bytes = 0
        with fs.open("large", "ab") as file:
            file.write(b"more")
        return {LARGE + b"more": "right", b"more": "the rest is lost"}.get(azurite.get("large"), "WRONG")

    def changed():
        # More than any client reads ahead.
        content = LARGE * 4
        azurite.put("open", content)
        with fs.open("open", "rb") as file:
            first = file.read(8)
            azurite.put("open", content[::-1])
            file.seek(79 << 20)
            second = file.read(8)
        versions = [(all[:8], all[79 << 20 :][:8]) for all in (content, content[::-1])]
        return "right" if (first, second) in versions else "bytes of both"

    def names():
        keys = ["n/./x", "n/a/../b"]
        for key in keys:
            with fs.open(key, "wb") as file:
                file.write(key.encode())
        found = [key for key in azurite.keys() if key.startswith("n/")]
        assert all(fs.read(key) == key.encode() for key in keys), "read back wrong"
        return "two blobs of these names" if sorted(found) == sorted(keys) else "the blobs %s" % found

    def listing():
        azurite.put("l/a", b"")
        azurite.put("l/b/c", b"")
        return "right" if fs.list("l") == ["a", "b"] else "WRONG: %s" % fs.list("l")

    def rename():
        azurite.put("old", LARGE)
        Counter.requests = Counter.bytes = 0
        fs.rename("old", "new")
        return "right" if azurite.get("new") == LARGE and "old" not in azurite.keys() else "WRONG"

    def remove_tree():
        for n in range(300):
            azurite.put("t/%d" % n, b"x")
        Counter.requests = Counter.bytes = 0
        fs.remove_tree("t")
        left = sum(key.startswith("t/") for key in azurite.keys())
        return "%d left" % left if left else "right"

    def read_large():
        azurite.put("whole", LARGE)
        return "right" if fs.read("whole") == LARGE else "WRONG"

    for name, use in [
        ("read of no blob", missing),
        ("stat of no blob", missing_stat),
        ("20 MiB", read_large),
        ("append to 4 bytes", append),
        ("append 4 bytes to 20 MiB", append_to_large),
        ("changed while open", changed),
        ("./x, a/../b", names),
        ("listdir", listing),
        ("rename of 20 MiB", rename),
        ("rmtree of 300 blobs", remove_tree),
    ]:
        Counter.requests = Counter.bytes = 0
        try:
            outcome = use()
        except Exception as error:  # noqa: BLE001
            outcome = type(error).__name__
        print("%-28s %-28s %4d requests %7.2f MiB" % (name, outcome, Counter.requests, Counter.bytes / (1 << 20)), flush=True)
    azurite.process.stdin.close()


main(sys.argv[1])
