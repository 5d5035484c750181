"""Two processes train together by `MultiWorkerMirroredStrategy`, each on its own GPUs; a step for each argument.

    ring      gradients are summed by TensorFlow's ring of workers, which computes in the memory of one input
    ring=2    the same where each process has two GPUs
    auto      gradients are summed as TensorFlow chooses
    auto=2    the same where each process has two GPUs

Writes `ok STEP` if both have the losses of the CPU with the whole batch.
"""
import contextlib
import json
import os
import random
import socket
import subprocess
import sys

import numpy as np


def data():
    rng = np.random.RandomState(0)
    w, x, y = (rng.rand(*shape).astype("float32") for shape in ((8, 4), (16, 8), (16, 4)))
    return w, np.zeros(4, "float32"), x, y


def step(tf, w, b, x, y, reduced):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.tanh(x @ w) + b - y) ** 2)
    gradients = reduced(tape.gradient(loss, [w, b]))
    for variable, gradient in zip([w, b], gradients):
        variable.assign(variable - 0.1 * gradient)
    return loss


def worker(implementation, gpus):
    import tensorflow as tf

    implementation = tf.distribute.experimental.CommunicationImplementation[implementation.upper()]
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    devices = strategy.extended.worker_devices
    assert len(devices) == gpus and all("GPU" in device for device in devices), devices
    w, b, x, y = data()
    with strategy.scope():
        w, b = tf.Variable(w), tf.Variable(b)
    replicas = strategy.num_replicas_in_sync
    assert replicas == 2 * gpus, replicas
    # A part of the batch for each GPU of all processes.
    x, y = (
        strategy.experimental_distribute_values_from_function(lambda one: tf.constant(np.split(all, replicas)[one.replica_id_in_sync_group]))
        for all in (x, y))

    @tf.function
    def train(x, y):
        reduced = lambda gradients: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        losses = strategy.run(lambda x, y: step(tf, w, b, x, y, reduced), args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    print("LOSSES", json.dumps([float(train(x, y)) for _ in range(4)]), flush=True)
    # A worker that ends earlier fails the other.
    sys.stdin.read()


def free_ports(count):
    """Returns ports that are free until a worker listens: below those that Linux gives to connections (ip(7))."""
    ports = []
    while len(ports) < count:
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports += [port] if port not in ports else []
    return ports


def together(implementation, gpus):
    import tensorflow as tf

    w, b, x, y = data()
    with tf.device("/CPU:0"):
        w, b = tf.Variable(w), tf.Variable(b)
        expected = [float(step(tf, w, b, tf.constant(x), tf.constant(y), lambda gradients: gradients)) for _ in range(4)]
    cluster = {"worker": ["127.0.0.1:%d" % port for port in free_ports(2)]}
    workers = []
    for index in range(2):
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        environment = dict(os.environ, TF_CONFIG=json.dumps(config), NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
        workers.append(subprocess.Popen([sys.executable, __file__, "worker", implementation, str(gpus)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in workers:
            line = next((line for line in process.stdout if line.startswith("LOSSES ")), None)
            assert line, "a worker ended with %s" % process.wait(60)
            losses = json.loads(line[len("LOSSES "):])
            assert np.allclose(losses, expected, 1e-5), "%s, expected %s" % (losses, expected)
    finally:
        for process in workers:
            process.stdin.close()
        for process in workers:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker(sys.argv[2], int(sys.argv[3]))
        sys.exit()
    for argument in sys.argv[1:]:
        implementation, _, gpus = argument.partition("=")
        together(implementation, int(gpus or 1))
        print("ok " + argument, flush=True)
