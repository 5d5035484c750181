"""The REST API of HDFS (WebHDFS) on a directory of this machine: name node and data node in one.

    python webhdfs.py PORT DIRECTORY"""
import json
import os
import shutil
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

PREFIX = "/webhdfs/v1"
STATUS = {
    "FileNotFoundException": 404,
    "UnsupportedOperationException": 400,
    "IllegalArgumentException": 400,
}


class Refusal(Exception):
    def __init__(self, name, message):
        super().__init__(message)
        self.name = name


def file_status(path, suffix):
    found = os.stat(path)
    is_directory = os.path.isdir(path)
    return {
        "accessTime": 0, "blockSize": 0 if is_directory else 134217728, "childrenNum": 0, "fileId": found.st_ino,
        "group": "supergroup", "length": 0 if is_directory else found.st_size,
        "modificationTime": found.st_mtime_ns // 1_000_000, "owner": "somebody", "pathSuffix": suffix,
        "permission": "755", "replication": 1, "storagePolicy": 0, "type": "DIRECTORY" if is_directory else "FILE",
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def json(self, value):
        self.answer(200, json.dumps(value).encode())

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def local(self, name):
        # Parents that are files are errors of their own.
        parts = [part for part in name.split("/") if part]
        for n in range(1, len(parts)):
            if os.path.isfile(os.path.join(self.root, *parts[:n])):
                raise Refusal("ParentNotDirectoryException", "/" + "/".join(parts[:n]) + " (is not a directory)")
        return os.path.join(self.root, *parts)

    def handle_request(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        name = unquote(url.path.removeprefix(PREFIX))
        content = self.body()
        try:
            self.operate(query.get("op", "").upper(), name, self.local(name), query, content)
        except Refusal as refusal:
            body = {"RemoteException": {
                "exception": refusal.name, "javaClassName": "org.apache.hadoop." + refusal.name, "message": str(refusal)}}
            self.answer(STATUS.get(refusal.name, 403), json.dumps(body).encode())

    do_GET = do_PUT = do_DELETE = do_POST = handle_request

    def data_node(self):
        """Leads to a data node, which is this server too."""
        separator = "&" if "?" in self.path else "?"
        self.answer(307, Location=f"http://{self.headers['Host']}{self.path}{separator}datanode=true")

    def operate(self, op, name, path, query, content):
        missing = Refusal("FileNotFoundException", f"File does not exist: {name}")
        if op == "GETFILESTATUS":
            if not os.path.exists(path):
                raise missing
            self.json({"FileStatus": file_status(path, "")})
        elif op == "LISTSTATUS":
            if not os.path.exists(path):
                raise missing
            names = [""] if os.path.isfile(path) else sorted(os.listdir(path))
            self.json({"FileStatuses": {"FileStatus": [file_status(os.path.join(path, n) if n else path, n) for n in names]}})
        elif op == "OPEN":
            if not os.path.isfile(path):
                raise missing
            if "datanode" not in query:
                return self.data_node()
            offset, length = int(query.get("offset", 0)), int(query.get("length", -1))
            if offset > os.path.getsize(path):
                raise Refusal("IOException", "Offset out of the range")
            with open(path, "rb") as file:
                file.seek(offset)
                self.answer(200, file.read(length), kind="application/octet-stream")
        elif op == "CREATE":
            if os.path.isdir(path):
                raise Refusal("FileAlreadyExistsException", f"{name} already exists as a directory")
            if query.get("overwrite") != "true" and os.path.exists(path):
                raise Refusal("FileAlreadyExistsException", f"{name} already exists")
            if "datanode" not in query:
                return self.data_node()
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            self.answer(201)
        elif op == "MKDIRS":
            if os.path.isfile(path):
                raise Refusal("FileAlreadyExistsException", f"Path is not a directory: {name}")
            os.makedirs(path, exist_ok=True)
            self.json({"boolean": True})
        elif op == "DELETE":
            if not os.path.exists(path):
                return self.json({"boolean": False})
            if os.path.isfile(path):
                os.remove(path)
            elif query.get("recursive") == "true":
                shutil.rmtree(path)
            elif os.listdir(path):
                raise Refusal("PathIsNotEmptyDirectoryException", f"`{name} is non empty': Directory is not empty")
            else:
                os.rmdir(path)
            self.json({"boolean": True})
        elif op == "RENAME":
            target = self.local(query["destination"])
            if not os.path.exists(path):
                raise missing
            if not os.path.isdir(os.path.dirname(target)):
                raise Refusal("FileNotFoundException", "rename destination parent not found")
            overwrites = query.get("renameoptions", "").upper() == "OVERWRITE"
            if os.path.exists(target):
                if os.path.isdir(target) != os.path.isdir(path):
                    raise Refusal("IOException", "Source and destination must both be directories or files")
                if not overwrites:
                    raise Refusal("FileAlreadyExistsException", "rename destination already exists")
            os.replace(path, target)
            self.answer(200) if "renameoptions" in query else self.json({"boolean": True})
        else:
            raise Refusal("UnsupportedOperationException", f"{op} is not supported")


Handler.root = sys.argv[2]
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
