"""Settings in the environment: credentials, endpoints and proxies."""
import contextlib
import os
import socket
import threading
import time

from s3_common import MIB, check, fails
from s3_regression.case import case, gfile, read, tensorflow, write


@case("a wrong secret key: exists() is False and open() says NotFound (tf#15662, tf#24253, io#2145)",
      dict(AWS_SECRET_ACCESS_KEY="wrong-secret-key"))
def a_wrong_secret_key(place):
    denied = tensorflow().errors.PermissionDeniedError
    for function in (gfile().exists, gfile().stat, read, gfile().glob):
        message = fails(denied, ["SignatureDoesNotMatch", "403"], function, place("file"))
        check("wrong-secret-key" in message, False, "the secret is in the message")
    fails(denied, ["403"], write, place("file"), b"x")


@case("an unknown access key: the same", dict(AWS_ACCESS_KEY_ID="unknown"))
def an_unknown_access_key(place):
    fails(tensorflow().errors.PermissionDeniedError, ["InvalidAccessKeyId"], gfile().exists, place("file"))


@case("no credentials at all: the same (deeplake#3161: or those of the node, silently)",
      dict(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_EC2_METADATA_DISABLED="true",
           AWS_CONFIG_FILE="/nonexistent/config", AWS_SHARED_CREDENTIALS_FILE="/nonexistent/credentials",
           HOME="/nonexistent"))
def no_credentials(place):
    for function in (gfile().exists, read):
        started = time.monotonic()
        fails(tensorflow().errors.UnauthenticatedError, ["credentials", "AWS_ACCESS_KEY_ID"], function, place("file"))
        check(time.monotonic() - started < 10, True, "the answer within 10 s")


@case("an endpoint that is down: exists() is False after 51 s",
      # Nothing listens on port 1.
      dict(AWS_ENDPOINT_URL="http://127.0.0.1:1", TF_S3_RETRY_TIMEOUT_MS="5s"))
def an_endpoint_that_is_down(place):
    for function in (gfile().exists, read, gfile().stat):
        started = time.monotonic()
        fails(tensorflow().errors.UnavailableError, ["127.0.0.1:1"], function, place("file"))
        seconds = time.monotonic() - started
        check(seconds < 20, True, "the answer of %s came after %.1f s, within 20 s" % (function.__name__, seconds))


@case("a bucket that does not exist: nothing says so")
def a_missing_bucket(place):
    missing = "s3://no-such-bucket-here/file"
    not_found = tensorflow().errors.NotFoundError
    # Python takes NOT_FOUND, which it is, for a no.
    check(gfile().exists(missing), False, "exists")
    for function in (gfile().stat, read):
        fails(not_found, ["no-such-bucket-here", "bucket"], function, missing)
    fails(not_found, ["no-such-bucket-here", "bucket"], write, missing, b"x")


@case("S3_ENDPOINT without http:// is taken for https, S3_USE_HTTPS is not read (tf#59990)",
      dict(AWS_ENDPOINT_URL=None, S3_ENDPOINT=lambda endpoint: endpoint.split("://")[1], S3_USE_HTTPS="0"))
def an_endpoint_without_a_scheme(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("… and nothing says so: False after 52 s",
      dict(AWS_ENDPOINT_URL=None, S3_ENDPOINT=lambda endpoint: endpoint.split("://")[1], S3_USE_HTTPS=None))
def https_to_a_server_that_speaks_http(place):
    started = time.monotonic()
    message = fails(tensorflow().errors.UnavailableError, ["https://"], gfile().exists, place("file"))
    seconds = time.monotonic() - started
    check(seconds < 20, True, "the answer came after %.1f s, within 20 s: %s" % (seconds, message))


@case("S3_REGION and S3_ENDPOINT are tensorflow-io's names; users have them set",
      dict(AWS_ENDPOINT_URL=None, AWS_REGION=None, S3_ENDPOINT=lambda endpoint: endpoint, S3_REGION="us-east-1",
           S3_VERIFY_SSL="0", S3_CONNECT_TIMEOUT_MSEC="2000", S3_REQUEST_TIMEOUT_MSEC="5000"))
def the_names_of_tensorflow_io(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("AWS_ENDPOINT_URL is not honoured; of both, AWS_ENDPOINT_URL_S3 counts",
      dict(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_ENDPOINT_URL_S3=lambda endpoint: endpoint))
def the_endpoint_of_the_service(place):
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")


@case("S3_DISABLE_MULTI_PART_DOWNLOAD=1 crashes at the end of a file",
      dict(S3_DISABLE_MULTI_PART_DOWNLOAD="1"))
def the_setting_that_crashed(place):
    data = os.urandom(3 * MIB + 5)
    write(place("file"), data)
    check(read(place("file")) == data, True, "the content")
    check(tensorflow().io.read_file(place("file")).numpy() == data, True, "the content by the op")


class Proxy:
    """An HTTP proxy on this machine that counts its connections."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.upstream)
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, target, requests):
        # Good enough for one client: the server understands the form of the request line that proxies get.
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                line = data.split(b"\r\n")[0]
                if requests and b" HTTP/1.1" in line:
                    self.requests.append(line.decode())
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def through_a_proxy(place, seen):
    host, port = place.control.endpoint.split("://")[1].split(":")
    proxy = Proxy((host, int(port)))
    # Settings are read at the first use, so that a program can still make them.
    os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = "http://127.0.0.1:%d" % proxy.port
    tensorflow()
    write(place("file"), b"content")
    check(read(place("file")), b"content", "the content")
    check(gfile().listdir(place()), ["file"], "the listing")
    check(len(proxy.requests) > 0, seen, "requests at the proxy: %s" % proxy.requests)
    for line in proxy.requests:
        check("http://" in line, True, "a full address in %r" % line)


@case("HTTP_PROXY is not honoured", dict(NO_PROXY=None, no_proxy=None))
def a_proxy(place):
    through_a_proxy(place, True)


@case("… and NO_PROXY must be", dict(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1"))
def no_proxy(place):
    through_a_proxy(place, False)
