"""Keras on a device written in Rust: the same training on the device and on the CPU, step for step.

    python demo.py librefdevice.so --example refdevice --tools PYTHON
    python demo.py libgpu.so --example gpu --tools PYTHON --software PROGRAM

`cargo tf-plugin demo` builds the plugin, provides both Pythons and runs this script: the one that runs it has TensorFlow,
the other has scikit-learn, whose digits are learnt. The work itself is in `job.py`, which is ordinary Keras; here it is
started twice and compared.
"""
import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from demo_report import LIMIT, Report, expect, run  # noqa: E402

TEXT = os.path.join(HERE, "..", "..", "LICENSE-APACHE")
# Of the digits that are held out.
ACCURACY = 0.95
# What a step of each model must have run on the device, whatever the release of TensorFlow calls the rest.
DENSE = ("BiasAdd", "BiasAddGrad", "MatMul", "Relu", "ReluGrad", "SparseSoftmaxCrossEntropyWithLogits")
OPS = dict(
    dense=DENSE,
    # A device may fuse elementwise ops with others, and attention.
    convolutional=("BiasAddGrad", "MatMul", "SparseSoftmaxCrossEntropyWithLogits", "Conv2D", "Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad"),
    transformer=("MatMul", "BatchMatMulV2", "Softmax or RustGpuAttention", "SparseSoftmaxCrossEntropyWithLogits"),
)

# Its type, the variable for the file of its counters, the models, and the largest relative difference of the loss of so many
# steps.
Device = collections.namedtuple("Device", "type counters models tolerance steps")
DEVICES = dict(
    refdevice=Device("RUST_REF", "REFDEVICE_COUNTERS", ("dense", "convolutional"), 1e-5, None),
    gpu=Device("GPU", "RUST_GPU_COUNTERS", ("convolutional", "transformer"), 1e-4, 50),
)


def job(arguments, scratch, **settings):
    """What `job.py` says, with the plugin loaded or not as `settings` have it."""
    foreign = ("TF_PLUGGABLE_DEVICE_", "TF_SE_PLUGIN_", "REFDEVICE_", "RUST_GPU_TYPE", "TF_ENABLED_DEVICE_TYPES")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment.update(settings)
    with open(os.path.join(scratch, "messages"), "w+") as messages:
        return run([sys.executable, os.path.join(HERE, "job.py"), *arguments], environment, messages, "job.py")


def software(program):
    """The environment that a program prints, in which there is a GPU in software."""
    finished = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    expect(finished.returncode == 0, "there is no GPU, and none in software: %s" % finished.stderr.strip())
    return dict(line.split("=", 1) for line in finished.stdout.splitlines())


def find_gpu(kind, settings, program, scratch, report):
    """The settings with which TensorFlow lists a GPU: those of the machine, or those for a GPU in software."""
    with report.step("gpu", "Look for a GPU") as result:
        found = job(["--device", kind], scratch, **settings)
        if not found["devices"]:
            settings = dict(settings, **software(program))
            found = job(["--device", kind], scratch, **settings)
            report.note("there is none, or no driver; lavapipe computes on the CPU, and says nothing of speed")
        expect(found["devices"], "TensorFlow lists no device of the type " + kind)
        result("TensorFlow %s lists %s" % (found["version"], ", ".join(found["devices"])))
    return settings


def compare(device, cpu, limits, report):
    """The largest relative difference of the loss of a step."""
    expect(len(cpu) == len(device), "%d steps on the device, %d on the CPU" % (len(device), len(cpu)))
    differences = [abs(one - other) / abs(other) for one, other in zip(device, cpu)][: limits.steps]
    worst = max(range(len(differences)), key=differences.__getitem__)
    for step in sorted({0, worst, len(cpu) - 1}):
        report.note("loss of step %4d: %.8f on the device, %.8f on the CPU" % (step + 1, device[step], cpu[step]))
    expect(differences[worst] <= limits.tolerance,
           "step %d: the loss is %r on the device, %r on the CPU" % (worst + 1, device[worst], cpu[worst]))
    return "the losses of %s %d steps are the same except for %.1e" % (
        "the first" if limits.steps else "all", len(differences), differences[worst])


def train(model, data, settings, arguments, scratch, report):
    limits = DEVICES[arguments.example]
    work = [data, "--model", model, "--steps", str(arguments.steps), "--device"]
    with report.step(model, "Train a %s network with Keras on the device" % model) as result:
        counters = os.path.join(scratch, model + ".json")
        settings = {**settings, limits.counters: counters}
        device = job([*work, limits.type], scratch, **settings)
        expect(device["devices"], "TensorFlow lists no device of the type " + limits.type)
        report.note("TensorFlow %s lists %s" % (device["version"], ", ".join(device["devices"])))
        report.note("%d parameters, on %s" % (device["parameters"], ", ".join(device["variables"])))
        expect(device["variables"] == ["device:%s:0" % limits.type], "variables are on %(variables)s" % device)
        with open(counters) as file:
            counted = json.load(file)
        if "device" in counted:
            report.note("the GPU is " + counted["device"])
        # Kernels have the names of their operations; the rest are copies.
        ran = {op: times for op, times in counted.items() if op[0].isupper()}
        steps = len(device["losses"])
        for op in OPS[model]:
            times = sum(ran.get(name, 0) for name in op.split(" or "))
            expect(times >= steps, "%s ran %d times on the device in %d steps" % (op, times, steps))
        often = sorted(ran.items(), key=lambda entry: -entry[1])[:6]
        report.note("ran there: " + ", ".join("%d %s" % (times, op) for op, times in often) + ", …")
        right = "%.1f %% of %d %s held out are right" % (
            100 * device["accuracy"], device["held_out"], "texts" if data == TEXT else "digits")
        is_learnt = data == TEXT or arguments.steps or device["accuracy"] >= ACCURACY
        expect(is_learnt, "only " + right)
        result("%d steps, %d kernels of %d ops; %s" % (steps, sum(ran.values()), len(ran), right))

    with report.step("– on the CPU", "Train the same on TensorFlow's CPU, without the plugin") as result:
        cpu = job([*work, "CPU"], scratch)
        same = compare(device["losses"], cpu["losses"], limits, report)
        report.note("%.0f steps a second on the device, %.0f on the CPU"
                    % (device["steps_per_second"], cpu["steps_per_second"]))
        result(same)


def demo(arguments, scratch, report):
    digits = os.path.join(scratch, "digits.npz")
    with report.step("data", "Take scikit-learn's digits") as result:
        with open(os.path.join(scratch, "messages"), "w+") as messages:
            program = [arguments.tools, os.path.join(HERE, "digits.py"), digits]
            count = run(program, None, messages, "digits.py")["count"]
        result("%d images of 8 × 8" % count)
    settings = dict(TF_PLUGGABLE_DEVICE_LIBRARY_PATH=os.path.abspath(arguments.plugin))
    limits = DEVICES[arguments.example]
    if arguments.software:
        settings = find_gpu(limits.type, settings, arguments.software, scratch, report)
    for model in limits.models:
        train(model, TEXT if model == "transformer" else digits, settings, arguments, scratch, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", help="the plugin's shared library")
    parser.add_argument("--example", choices=sorted(DEVICES), required=True, help="what the library is of")
    parser.add_argument("--tools", required=True, metavar="PYTHON", help="a Python with scikit-learn")
    parser.add_argument("--steps", type=int, default=0, help="end each training after so many; what is learnt does not count")
    parser.add_argument("--software", metavar="PROGRAM", help="prints the environment in which a GPU in software is found")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.plugin):
        sys.exit("%s does not exist; build it with `cargo build --release --package %s`"
                 % (arguments.plugin, arguments.example))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="device-demo-") as scratch:
        report.run(lambda: demo(arguments, scratch, report))
    report.table()
    print("Every result was as expected.")


if __name__ == "__main__":
    main()
