"""TensorBoard on s3://: it writes summaries, reads them while they grow, and serves them.

    python s3_tensorboard.py --root s3://bucket/tensorboard

The plugin is loaded at import. Needs the package `tensorboard` beside TensorFlow, and writes `ok` at the end.
"""
import argparse
import json
import os
import time
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorboard import program  # noqa: E402
from tensorboard.backend.event_processing import data_provider, event_accumulator, plugin_event_multiplexer  # noqa: E402
from tensorboard.compat import tf as tensorboard_tf  # noqa: E402
from tensorboard.context import RequestContext  # noqa: E402

from s3_common import check  # noqa: E402


def write_scalars(writer, begin, end):
    with writer.as_default():
        for step in range(begin, end):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    writer.flush()


def accumulator(directory):
    """A run is read while it is written: each reload sees what was flushed since."""
    writer = tf.summary.create_file_writer(directory)
    write_scalars(writer, 0, 10)
    reader = event_accumulator.EventAccumulator(directory, size_guidance={event_accumulator.TENSORS: 0})

    def steps():
        # A listing or a size may be a second old.
        time.sleep(1.1)
        reader.Reload()
        return [event.step for event in reader.Tensors("loss")]

    check(steps(), list(range(10)), "the steps after the first flush")
    write_scalars(writer, 10, 25)
    check(steps(), list(range(25)), "the steps after the second flush")
    with writer.as_default():
        tf.summary.image("picture", np.random.default_rng(1).random((1, 32, 32, 3)), step=25)
        tf.summary.histogram("weights", np.arange(1000.0), step=25)
        tf.summary.text("note", "fine", step=25)
    writer.close()
    steps()
    check(sorted(reader.Tags()["tensors"]), ["loss", "note", "picture", "weights"], "the tags")
    values = [float(tf.make_ndarray(event.tensor_proto)) for event in reader.Tensors("loss")]
    check(np.allclose(values, [1.0 / (step + 1) for step in range(25)]), True, "the values")


def provider(root):
    """The way TensorBoard itself reads: all runs below a directory."""
    for run in ("train", "validation", "nested/deep"):
        writer = tf.summary.create_file_writer("%s/%s" % (root, run))
        write_scalars(writer, 0, 5)
        writer.close()
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(root)
    multiplexer.Reload()
    data = data_provider.MultiplexerDataProvider(multiplexer, root)
    context = RequestContext()
    runs = {run.run_name for run in data.list_runs(context, experiment_id="")}
    check(runs, {"train", "validation", "nested/deep"}, "the runs")
    scalars = data.read_scalars(context, experiment_id="", plugin_name="scalars", downsample=100)
    check({run: [point.step for point in tags["loss"]] for run, tags in scalars.items()},
          {run: list(range(5)) for run in runs}, "the steps")


def server(root):
    """`tensorboard --logdir s3://...`, and what a browser asks it."""
    board = program.TensorBoard()
    board.configure(argv=["tensorboard", "--logdir", root, "--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"])
    url = board.launch()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(path):
        with opener.open(url.rstrip("/") + path, timeout=30) as answer:
            return json.loads(answer.read())

    end = time.monotonic() + 60
    while set(get("/data/runs")) != {"train", "validation", "nested/deep"}:
        check(time.monotonic() < end, True, "the runs %s in time" % get("/data/runs"))
        time.sleep(0.2)
    points = get("/data/plugin/scalars/scalars?tag=loss&run=train")
    check([step for _, step, _ in points], list(range(5)), "the steps that the browser gets")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, metavar="URI")
    root = parser.parse_args().root
    # Without TensorFlow, TensorBoard uses its own client for s3://, which is not the one under test.
    check(tensorboard_tf.__version__, tf.__version__, "TensorFlow, as TensorBoard sees it")
    check("s3" in tf.io.gfile.get_registered_schemes(), True, "s3 is a registered scheme")
    accumulator(root + "/single")
    provider(root + "/runs")
    server(root + "/runs")
    print("ok", flush=True)
    # TensorBoard's threads go on. Python up to 3.13 ends them by unwinding their stacks, and the C++ runtime may
    # then end the process, whatever the filesystem: see `leaving.rs` in `tests/tensorflow`.
    os._exit(0)


if __name__ == "__main__":
    main()
