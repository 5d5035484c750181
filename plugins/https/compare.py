"""What a client makes of a server's responses, right and wrong: the table in README.md.

    python compare.py LIBRARY.so       this plugin, in a Python with TensorFlow
    python compare.py tensorflow-io    in a Python with TensorFlow 2.16 and tensorflow-io 0.37.1
    python compare.py fsspec           in a Python with fsspec[http]
"""
import gzip
import http.server
import re
import sys
import threading

CONTENT = b"".join(b"%07d\n" % n for n in range(20 << 17))  # 20 MiB
OTHER = CONTENT[::-1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests, sent, seen, changed = 0, 0, {}, False

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        Handler.requests += 1
        case = self.path.strip("/").split("?")[0]
        seen = Handler.seen[case] = Handler.seen.get(case, 0) + 1
        content, headers, status = CONTENT, {"ETag": '"1"', "Accept-Ranges": "bytes"}, 200
        gets = Handler.seen.get("GET " + case, 0) + (self.command == "GET")
        Handler.seen["GET " + case] = gets
        if case in ("403", "404"):
            return self.reply(int(case), {}, b"")
        if case == "503-once" and seen == 1:
            return self.reply(503, {}, b"")
        if Handler.changed:
            content, headers["ETag"] = OTHER, '"2"'
        if case == "gzip":
            return self.reply(200, {"Content-Encoding": "gzip"}, gzip.compress(CONTENT, 1))
        if case == "no-ranges":
            return self.reply(200, {}, content)
        if case == "no-length":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if self.command == "GET":
                self.body(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
            return
        if headers["ETag"] != self.headers.get("If-Match", headers["ETag"]):
            return self.reply(412, {}, b"")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted:
            first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
            if first > last:
                return self.reply(416, {"Content-Range": "bytes */%d" % len(content)}, b"")
            headers["Content-Range"] = "bytes %d-%d/%d" % (first, last, len(content))
            content, status = content[first : last + 1], 206
        cut = len(content) // 2 if case == "broken-off" and gets == 1 else None
        self.reply(status, headers, content, cut)

    def reply(self, status, headers, content, cut=None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.body(content[:cut])
        if cut is not None:
            self.close_connection = True

    def body(self, content):
        try:
            for start in range(0, len(content), 1 << 16):
                self.wfile.write(content[start : start + (1 << 16)])
                Handler.sent += min(1 << 16, len(content) - start)
        except OSError:
            self.close_connection = True


def opener(client):
    if client == "fsspec":
        import fsspec

        fs = fsspec.filesystem("http", skip_instance_cache=True)
        return fs.cat_file, lambda url: fs.open(url, "rb"), fs.exists
    import tensorflow as tf

    if client == "tensorflow-io":
        import tensorflow_io as tfio  # noqa: F401
    else:
        tf.experimental.register_filesystem_plugin(client)
    read = lambda url: tf.io.read_file(url).numpy()
    return read, lambda url: tf.io.gfile.GFile(url, "rb"), tf.io.gfile.exists


def main(client):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = "http://127.0.0.1:%d/" % server.server_port
    read, open_, exists = opener(client)

    def whole(url):
        content = read(url)
        return "right" if content == CONTENT else "WRONG: %d bytes" % len(content)

    def middle(url):
        with open_(url) as file:
            file.seek(15 << 20)
            content = file.read(10)
        return "right" if content == CONTENT[15 << 20 :][:10] else "WRONG: %r" % content

    def changed(url):
        with open_(url) as file:
            first = file.read(10)
            Handler.changed = True
            file.seek(15 << 20)
            second = file.read(10)
        versions = [(content[:10], content[15 << 20 :][:10]) for content in (CONTENT, OTHER)]
        return "right" if (first, second) in versions else "WRONG: two versions"

    # Places in files come before whole files: clients expect more of the same.
    for n, (name, path, use) in enumerate([
        ("10 bytes at 15 MiB", "ranges", middle),
        ("changed while open", "changed", changed),
        ("20 MiB", "ranges", whole),
        ("no ranges: 20 MiB", "no-ranges", whole),
        ("no ranges: 10 bytes at 15 MiB", "no-ranges", middle),
        ("no Content-Length", "no-length", whole),
        ("gzip unasked", "gzip", whole),
        ("broken off once", "broken-off", whole),
        ("503 once", "503-once", whole),
        ("404", "404", whole),
        ("403", "403", whole),
        ("exists of 403", "403", exists),
    ]):
        Handler.requests, Handler.sent, Handler.changed = 0, 0, False
        try:
            # No two cases are about the same URL: clients remember.
            outcome = use("%s%s?%d" % (root, path, n))
        except Exception as error:  # noqa: BLE001
            outcome = type(error).__name__
        print("%-32s %-24s %4d requests %6.1f MiB" % (name, outcome, Handler.requests, Handler.sent / (1 << 20)), flush=True)


main(sys.argv[1])
