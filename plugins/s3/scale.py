"""Training from s3:// on several machines, in two ways that TensorFlow has; here the machines are processes.

    python scale.py service s3://bucket/scale      tf.data service: two workers read and decode for one trainer
    python scale.py workers s3://bucket/scale      MultiWorkerMirroredStrategy: two workers read and train together

No program here loads the plugin or knows of S3: `import tensorflow` does (`site-packages/tensorflow-plugins`), and
settings come from the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...), which the processes inherit. On real
machines start each role by hand:

    python scale.py dispatcher WORKER...           with the address (HOST:PORT) of each worker; prints its own
    python scale.py worker DISPATCHER WORKER       on each reading machine; prints what it has read at its end
    python scale.py trainer DISPATCHER s3://...    the one that trains
    TF_CONFIG=... python scale.py strategy s3://...    on each machine of the other way

A dispatcher or worker ends when its standard input is closed.
"""
import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

FILES = 8
RECORDS = 500
# A hang of one of them must not be one of all.
LIMIT = 240
# A worker on this machine; TensorFlow replaces the last part by a free port.
LOCAL = "127.0.0.1:%port%"


def say(**what):
    print(json.dumps(what), flush=True)


def requests():
    """Requests of this process to the store so far."""
    import tensorflow as tf

    with tf.io.gfile.GFile("s3:///metrics.json") as file:
        return json.loads(file.read())["attempts"]


def prepare(root):
    """Numbered records in several files: y = 3 x0 - 2 x1 + 1."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(1)
    for number in range(FILES):
        with tf.io.TFRecordWriter("%s/data/part-%02d" % (root, number)) as writer:
            for index in range(RECORDS):
                x = rng.standard_normal(2).astype(np.float32)
                row = np.array([number * RECORDS + index, x[0], x[1], 3 * x[0] - 2 * x[1] + 1], np.float32)
                writer.write(row.tobytes())


def records(root, shards=1, shard=0):
    import tensorflow as tf

    files = tf.data.Dataset.list_files(root + "/data/part-*", shuffle=False).shard(shards, shard)
    rows = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
    return rows.map(lambda row: tf.ensure_shape(tf.io.decode_raw(row, tf.float32), [4]))


# tf.data service ----------------------------------------------------------------------------------------------


def dispatcher(*workers):
    import tensorflow as tf

    # Files are shared out among these, so that each reads its part however fast the others are.
    server = tf.data.experimental.service.DispatchServer(
        tf.data.experimental.service.DispatcherConfig(port=0, worker_addresses=workers))
    say(address=server.target.split("://")[1])
    sys.stdin.read()


def worker(dispatcher, address):
    import tensorflow as tf

    port = address.rpartition(":")[2]
    config = tf.data.experimental.service.WorkerConfig(
        dispatcher_address=dispatcher, worker_address=address, port=int(port) if port.isdigit() else 0,
        heartbeat_interval_ms=100)
    server = tf.data.experimental.service.WorkerServer(config)
    say(ready=True)
    sys.stdin.read()
    say(requests=requests())
    del server


def trainer(address, root):
    import tensorflow as tf

    dataset = records(root).apply(tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.FILE, service="grpc://" + address))
    seen = sorted(int(row[0]) for row in dataset)
    say(seen=len(seen), complete=seen == list(range(FILES * RECORDS)))


# MultiWorkerMirroredStrategy ----------------------------------------------------------------------------------


def strategy(root):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    cluster = strategy.cluster_resolver
    batch = 50
    with strategy.scope():
        weights = tf.Variable(tf.zeros([2, 1]))
        bias = tf.Variable(0.0)

    def dataset(context):
        # Each worker reads files of its own.
        rows = records(root, context.num_input_pipelines, context.input_pipeline_id)
        return rows.repeat().batch(batch, drop_remainder=True)

    batches = iter(strategy.distribute_datasets_from_function(dataset))

    def step(rows):
        x, y = rows[:, 1:3], rows[:, 3:]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - y))
        gradients = tape.gradient(loss, [weights, bias])
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        weights.assign_sub(0.2 * gradients[0])
        bias.assign_sub(0.2 * gradients[1])
        return loss

    @tf.function
    def train():
        losses = strategy.run(step, args=(next(batches),))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    for _ in range(60):
        loss = train()
    # All take part in saving; one of them keeps what it has saved.
    chief = cluster.task_id == 0
    directory = root + ("/checkpoint" if chief else "/temporary-%d" % cluster.task_id)
    path = tf.train.Checkpoint(weights=weights, bias=bias).write(directory + "/model")
    if not chief:
        tf.io.gfile.rmtree(directory)
    say(task=cluster.task_id, loss=float(loss), weights=weights.numpy().ravel().tolist() + [float(bias.numpy())],
        checkpoint=path if chief else None, requests=requests())


# The processes ------------------------------------------------------------------------------------------------


class Role:
    """A process of this script."""

    def __init__(self, stack, *arguments, **environment):
        self.arguments = arguments
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *arguments], env=dict(os.environ, **environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self.kill)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def line(self):
        """The next thing that it says."""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        sys.exit("`%s` has ended with status %d; its messages are above"
                 % (" ".join(self.arguments), self.process.wait(LIMIT)))

    def end(self):
        """Closes its input and expects a clean end."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        status = self.process.wait(LIMIT)
        if status != 0:
            sys.exit("`%s` has ended with status %d; its messages are above" % (" ".join(self.arguments), status))


def service(root):
    with contextlib.ExitStack() as stack:
        prepared = Role(stack, "prepare", root)
        prepared.end()
        dispatching = Role(stack, "dispatcher", LOCAL, LOCAL)
        address = dispatching.line()["address"]
        workers = [Role(stack, "worker", address, LOCAL) for _ in range(2)]
        for one in workers:
            one.line()
        training = Role(stack, "trainer", address, root)
        result = training.line()
        training.end()
        read = []
        for one in workers:
            one.process.stdin.close()
            read.append(one.line()["requests"])
            one.end()
        dispatching.end()
        say(**result, requests=read)


def workers(root):
    with contextlib.ExitStack() as stack:
        prepared = Role(stack, "prepare", root)
        prepared.end()
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = ["127.0.0.1:%d" % one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        roles = [
            Role(stack, "strategy", root, TF_CONFIG=json.dumps(
                {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}))
            for index in range(2)
        ]
        results = [role.line() for role in roles]
        for role in roles:
            role.end()
        say(results=results)


def main():
    roles = dict(prepare=prepare, service=service, workers=workers, dispatcher=dispatcher, worker=worker,
                 trainer=trainer, strategy=strategy)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=sorted(roles))
    parser.add_argument("arguments", nargs="*")
    arguments = parser.parse_args()
    try:
        import signal

        signal.signal(signal.SIGALRM, lambda *_: sys.exit("no end after %d s" % LIMIT))
        signal.alarm(LIMIT)
        roles[arguments.role](*arguments.arguments)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
