"""Uses s3://, az:// and http:// in one process, each through a plugin that `import tensorflow` has loaded."""

import functools
import http.server
import os
import sys
import tempfile
import threading

import tensorflow as tf

s3, az = sys.argv[1:]
directory = tempfile.mkdtemp()
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=directory)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
https = "http://127.0.0.1:%d" % server.server_port

# Each store has its own file, and a copy of each other's.
with open(os.path.join(directory, "f"), "wb") as file:
    file.write(b"http\n")
tf.io.write_file(s3 + "/f", b"s3\n")
tf.io.write_file(az + "/f", b"az\n")
for source, target in [(https, s3), (https, az), (s3, az), (az, s3)]:
    tf.io.gfile.copy(source + "/f", "%s/of-%s" % (target, source.split(":")[0]))
found = {root: sorted(tf.io.gfile.listdir(root)) for root in (s3, az)}
assert found == {s3: ["f", "of-az", "of-http"], az: ["f", "of-http", "of-s3"]}, found

# One dataset reads all of them at the same time.
names = [https + "/f"] + tf.io.gfile.glob([s3 + "/*", az + "/*"])
dataset = tf.data.Dataset.from_tensor_slices(names * 8)
dataset = dataset.interleave(tf.data.TextLineDataset, cycle_length=8, num_parallel_calls=8)
lines = sorted(line.numpy() for line in dataset)
assert lines == sorted([b"http", b"s3", b"http", b"az", b"az", b"http", b"s3"] * 8), lines

for root in (s3, az):
    value = tf.Variable(7)
    path = tf.train.Checkpoint(value=value).save(root + "/checkpoint/c")
    value.assign(0)
    tf.train.Checkpoint(value=value).restore(path)
    assert value.numpy() == 7
print("ok")
