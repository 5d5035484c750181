"""The API of the Hugging Face Hub, as far as reading needs it, and a second server for the bytes of large files.

Commands come as lines of JSON on standard input; the endpoint is the first line of standard output."""
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

repositories = {}  # (repository, revision) -> {path: (content, is_large)}
tokens = {}  # repository -> token
state = {"leaked": False}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def oid(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry(path, content, is_large):
    info = {"type": "file", "oid": oid(content), "size": len(content), "path": path}
    if is_large:
        info["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 128}
    return info


def listed(files, directory):
    prefix = directory + "/" if directory else ""
    names = {}
    for path, (content, is_large) in files.items():
        if path.startswith(prefix):
            first, slash, _ = path[len(prefix):].partition("/")
            names[first] = {"type": "directory", "oid": oid(b""), "size": 0, "path": prefix + first} if slash else entry(
                path, content, is_large)
    return [names[name] for name in sorted(names)]


class Base(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def bytes_of(self, content, **headers):
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(200, content, Accept_Ranges="bytes", **headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        first, last = int(first), min(int(last or len(content)), len(content) - 1)
        if first >= len(content):
            return self.answer(416, Content_Range=f"bytes */{len(content)}", **headers)
        headers["Content_Range"] = f"bytes {first}-{last}/{len(content)}"
        return self.answer(206, content[first:last + 1], **headers)


class Bytes(Base):
    def do_GET(self):
        state["leaked"] |= "Authorization" in self.headers
        digest = urlsplit(self.path).path.strip("/")
        for files in repositories.values():
            for content, _ in files.values():
                if hashlib.sha256(content).hexdigest() == digest:
                    return self.bytes_of(content, ETag='"of-the-bytes"')
        return self.answer(403)

    do_HEAD = do_GET


class Hub(Base):
    def refuse(self, status, code):
        self.answer(status, b"{}", X_Error_Code=code, X_Error_Message=code)

    def files(self, repository, revision):
        wanted = tokens.get(repository)
        if wanted and self.headers.get("Authorization") != "Bearer " + wanted:
            return self.refuse(401, "RepoNotFound")
        if not any(name == repository for name, _ in repositories):
            return self.refuse(401, "RepoNotFound")
        found = repositories.get((repository, revision))
        if found is None and revision == COMMIT:
            found = next(files for (name, _), files in repositories.items() if name == repository)
        return self.refuse(404, "RevisionNotFound") if found is None else found

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        _, _, kind, owner, name, op, revision = urlsplit(self.path).path.split("/")[:7]
        files = self.files(("" if kind == "models" else kind + "/") + f"{owner}/{name}", unquote(revision))
        if files is None:
            return
        assert op == "paths-info", op
        kind = self.headers.get("Content-Type", "")
        if "json" in kind:
            paths = json.loads(body)["paths"]
        else:
            from urllib.parse import parse_qs
            paths = parse_qs(body.decode()).get("paths", [])
        infos = []
        for path in paths:
            if path in files:
                infos.append(entry(path, *files[path]))
            elif listed(files, path):
                infos.append({"type": "directory", "oid": oid(b""), "size": 0, "path": path})
        self.answer(200, json.dumps(infos).encode(), Content_Type="application/json")

    def do_GET(self):
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[0] == "api":
            kind, owner, name, op, revision = parts[1:6] if len(parts) > 5 else parts[1:] + ["revision", "main"]
            files = self.files(("" if kind == "models" else kind + "/") + f"{owner}/{name}", unquote(revision))
            if files is None:
                return
            path = unquote("/".join(parts[6:]))
            if op == "revision":
                body = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": [], "private": False, "tags": [],
                        "downloads": 0, "likes": 0}
                return self.answer(200, json.dumps(body).encode(), Content_Type="application/json")
            found = listed(files, path)
            if path and not found:
                return self.refuse(404, "EntryNotFound")
            return self.answer(200, json.dumps(found).encode(), Content_Type="application/json")
        prefix = parts.pop(0) + "/" if parts[0] in ("datasets", "spaces") else ""
        owner, name, _, revision, *path = parts
        files = self.files(prefix + f"{owner}/{name}", unquote(revision))
        if files is None:
            return
        path = unquote("/".join(path))
        if path not in files:
            return self.refuse(404, "EntryNotFound")
        content, is_large = files[path]
        headers = {"X_Repo_Commit": COMMIT, "X_Linked_Size": str(len(content))}
        if is_large:
            digest = hashlib.sha256(content).hexdigest()
            location = f"http://127.0.0.1:{bytes_server.server_address[1]}/{digest}?signature=1"
            return self.answer(302, Location=location, X_Linked_Etag=f'"{digest}"', ETag=f'"{digest}"', **headers)
        return self.bytes_of(content, ETag=f'"{oid(content)}"', **headers)

    do_HEAD = do_GET


bytes_server = ThreadingHTTPServer(("127.0.0.1", 0), Bytes)
hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
for server in (bytes_server, hub):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{hub.server_address[1]}", flush=True)
for line in sys.stdin:
    command = json.loads(line)
    if command["do"] == "add":
        files = repositories.setdefault((command["repository"], command["revision"]), {})
        with open(command["content"], "rb") as content:
            files[command["path"]] = (content.read(), command["is_large"])
    elif command["do"] == "protect":
        tokens[command["repository"]] = command["token"]
    print(json.dumps(state["leaked"]), flush=True)
