"""Keras on a device written in Rust: the same training on the reference device and on the CPU, step for step.

    python demo.py librefdevice.so --tools PYTHON

`cargo tf-plugin demo refdevice` builds the plugin, provides both Pythons and runs this script: the one that runs it
has TensorFlow, the other has scikit-learn, whose digits are learnt. The work itself is in `demo_job.py`, which is
ordinary Keras; here it is started twice and compared.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from demo_report import Report, Wrong, expect, last_lines  # noqa: E402

DEVICE = "RUST_REF"
# The largest relative difference of the loss of any step.
TOLERANCE = 1e-5
ACCURACY = 0.95
# A hang must not be forever.
LIMIT = 600
# What a step of each model must have run on the device, whatever the release of TensorFlow calls the rest.
DENSE = ("BiasAdd", "BiasAddGrad", "MatMul", "Relu", "ReluGrad", "SparseSoftmaxCrossEntropyWithLogits")
MODELS = dict(dense=DENSE, convolutional=DENSE + ("Conv2D", "Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad"))


def run(program, environment, messages, what):
    """The last line of JSON of a program that must succeed."""
    try:
        finished = subprocess.run(program, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=messages, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        raise Wrong("%s has not ended after %d s\n%s" % (what, LIMIT, last_lines(messages))) from error
    except OSError as error:
        raise Wrong("cannot run %s: %s" % (program[0], error)) from error
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    if finished.returncode != 0 or not lines:
        raise Wrong("%s ended with status %d\n%s" % (what, finished.returncode, last_lines(messages)))
    return json.loads(lines[-1])


def train(digits, model, device, scratch, **settings):
    """What `demo_job.py` says of a model on a device, with the plugin loaded or not as `settings` have it."""
    foreign = ("TF_PLUGGABLE_DEVICE_", "TF_SE_PLUGIN_", "REFDEVICE_", "TF_ENABLED_DEVICE_TYPES")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment.update(settings)
    with open(os.path.join(scratch, "messages"), "w+") as messages:
        program = [sys.executable, os.path.join(HERE, "demo_job.py"), digits, "--model", model, "--device", device]
        return run(program, environment, messages, "training on " + device)


def compare(device, cpu, report):
    """The largest relative difference of the loss of any step."""
    expect(len(cpu) == len(device), "%d steps on the device, %d on the CPU" % (len(device), len(cpu)))
    differences = [abs(one - other) / abs(other) for one, other in zip(device, cpu)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    for step in sorted({0, worst, len(cpu) - 1}):
        report.note("loss of step %4d: %.8f on the device, %.8f on the CPU" % (step + 1, device[step], cpu[step]))
    expect(differences[worst] <= TOLERANCE,
           "step %d: the loss is %r on the device, %r on the CPU" % (worst + 1, device[worst], cpu[worst]))
    return differences[worst]


def demo(plugin, tools, scratch, report):
    digits = os.path.join(scratch, "digits.npz")
    with report.step("data", "Take scikit-learn's digits") as result:
        with open(os.path.join(scratch, "messages"), "w+") as messages:
            count = run([tools, os.path.join(HERE, "demo_digits.py"), digits], None, messages, "demo_digits.py")["count"]
        result("%d images of 8 × 8" % count)

    for model, expected in MODELS.items():
        with report.step(model, "Train a %s network with Keras on the device" % model) as result:
            counters = os.path.join(scratch, model + ".json")
            device = train(digits, model, DEVICE, scratch,
                           TF_PLUGGABLE_DEVICE_LIBRARY_PATH=plugin, REFDEVICE_COUNTERS=counters)
            expect(device["devices"], "TensorFlow lists no device of the type " + DEVICE)
            report.note("TensorFlow %s lists %s" % (device["version"], ", ".join(device["devices"])))
            report.note("%d parameters, on %s" % (device["parameters"], ", ".join(device["variables"])))
            expect(device["variables"] == ["device:%s:0" % DEVICE], "variables are on %(variables)s" % device)
            with open(counters) as file:
                # Kernels have the names of their operations; the rest are copies.
                ran = {op: times for op, times in json.load(file).items() if op[0].isupper()}
            steps = len(device["losses"])
            for op in expected:
                expect(ran.get(op, 0) >= steps,
                       "%s ran %d times on the device in %d steps" % (op, ran.get(op, 0), steps))
            often = sorted(ran.items(), key=lambda entry: -entry[1])[:6]
            report.note("ran there: " + ", ".join("%d %s" % (times, op) for op, times in often) + ", …")
            expect(device["accuracy"] >= ACCURACY, "only %(accuracy).3f of the digits held out are recognised" % device)
            result("%d steps, %d kernels of %d ops; %.1f %% of %d digits held out are right"
                   % (steps, sum(ran.values()), len(ran), 100 * device["accuracy"], device["held_out"]))

        with report.step("– on the CPU", "Train the same on TensorFlow's CPU, without the plugin") as result:
            cpu = train(digits, model, "CPU", scratch)
            worst = compare(device["losses"], cpu["losses"], report)
            result("the losses of all %d steps are the same except for %.1e" % (steps, worst))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", help="the plugin's shared library")
    parser.add_argument("--tools", required=True, metavar="PYTHON", help="a Python with scikit-learn")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.plugin):
        sys.exit("%s does not exist; build it with `cargo build --release --package refdevice`" % arguments.plugin)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="refdevice-demo-") as scratch:
        report.run(lambda: demo(os.path.abspath(arguments.plugin), arguments.tools, scratch, report))
    report.table()
    print("Every result was as expected.")


if __name__ == "__main__":
    main()
