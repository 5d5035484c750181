"""`python -m @module@ doctor` says whether TensorFlow has the plugin, and why not."""

import glob
import hashlib
import json
import os
import platform
import subprocess
import sys

from @module@ import _plugin
from @module@._plugin import DEVICE_TYPES, OPS, SCHEMES, __version__, plugin_path

USAGE = """usage: python -m @module@ doctor   says whether TensorFlow has the plugin, and why not
       python -m @module@ path     prints where the plugin's library is"""

# Runs in a separate process, because a library that cannot be loaded ends it.
PROBE = """
import ctypes, json, os, runpy, sys
import tensorflow as tf
from tensorflow.python.framework import op_def_registry
path = sys.argv[1]
plugin = runpy.run_path(sys.argv[2])
try:
    with open("/proc/self/maps") as maps:
        loaded = any(os.path.realpath(line.split(None, 5)[5].rstrip()) == path for line in maps if path[-20:] in line)
except OSError:
    loaded = None

def errors():
    ask = getattr(ctypes.CDLL(path), "tf_plugin_ops", None) if plugin["OPS"] and loaded is not False else None
    if ask is None:
        return {}
    ask.restype = ctypes.c_char_p
    return {op["name"]: op.get("error") for op in json.loads(ask() or b"{}").get("ops", ())}

print("@module@:" + json.dumps({
    "version": tf.__version__,
    "package": os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__))),
    "schemes": [str(s) for s in tf.io.gfile.get_registered_schemes()],
    "devices": sorted({d.device_type for d in tf.config.list_physical_devices()}),
    "own": plugin["device_types"]() if loaded is not False else plugin["DEVICE_TYPES"],
    "ops": [op for op in plugin["OPS"] if op_def_registry.get(op) is not None],
    "errors": errors(),
    "loaded": loaded,
}))
"""

OFF = ("0", "false", "no", "off")


class Report:
    def __init__(self):
        self.problems = 0

    def good(self, what, text):
        print("  ok       %-12s %s" % (what, text))

    def bad(self, what, text, advice):
        self.problems += 1
        print("  PROBLEM  %-12s %s" % (what, text))
        for line in advice.splitlines():
            print("           %-12s -> %s" % ("", line))


def switched_off(variable):
    return os.environ.get(variable, "").strip().lower() in OFF


def neighbours(package):
    """The other libraries that TensorFlow loads at import."""
    directories = {package, os.path.dirname(os.path.dirname(plugin_path))}
    found = {
        os.path.realpath(path)
        for directory in directories
        for path in glob.glob(os.path.join(directory, "tensorflow-plugins", "*.so*"))
    }
    return sorted(found - {os.path.realpath(plugin_path)})


def probe(**settings):
    return subprocess.run(
        [sys.executable, "-c", PROBE, os.path.realpath(plugin_path), _plugin.__file__],
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="1", **settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )


def answer_of(finished):
    for line in finished.stdout.splitlines():
        if line.startswith("@module@:"):
            return json.loads(line[len("@module@:"):])
    return None


def last_lines(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines()[-5:])


def doctor():
    report = Report()
    print("@name@ %s, Python %s (%s)\n" % (__version__, platform.python_version(), sys.executable))
    reinstall = "install it again: %s -m pip install --force-reinstall --no-deps @name@" % sys.executable
    try:
        with open(plugin_path, "rb") as library:
            content = library.read()
    except OSError as error:
        report.bad("plugin", str(error), reinstall)
        return report
    digest = hashlib.sha256(content).hexdigest()[:12]
    report.good("plugin", "%s (%d KiB, sha256 %s)" % (plugin_path, len(content) // 1024, digest))

    finished = probe()
    answer = answer_of(finished)
    if answer is None:
        explain(report, finished)
        return report
    report.good("TensorFlow", "%s in %s" % (answer["version"], answer["package"]))
    others = neighbours(answer["package"])
    names = [os.path.basename(plugin_path)] + [device + " has no devices" for device in DEVICE_TYPES]
    said = [line for line in finished.stderr.splitlines() if any(name in line for name in names)]

    missing = False
    for scheme in SCHEMES:
        there = scheme in answer["schemes"]
        if there and answer["loaded"] is not False and not said:
            report.good(scheme + "://", "is registered at import tensorflow")
            continue
        missing = missing or not there
        if said:
            advice = "\n".join(said)
        elif switched_off("TF_FS_PLUGIN_AUTOLOAD"):
            advice = "TF_FS_PLUGIN_AUTOLOAD switches the registration off: unset it, or call @module@.register()"
        elif there:
            advice = "another plugin has the scheme: remove one of the two"
        else:
            advice = "call @module@.register() after import tensorflow"
        report.bad(scheme + "://", "is not this plugin's" if there else "is not registered", advice)
    for device in answer["own"]:
        if device in answer["devices"]:
            report.good(device, "is listed by tf.config.list_physical_devices()")
            continue
        missing = True
        if os.environ.get("TF_SE_PLUGIN_DEVICES") == "0":
            advice = "TF_SE_PLUGIN_DEVICES switches the device off: unset it"
        else:
            advice = "\n".join(said) or "TF_CPP_MIN_LOG_LEVEL=0 python -c 'import tensorflow' shows why"
        report.bad(device, "is not listed", advice)
    there = [op for op in OPS if op in answer["ops"] and not answer["errors"].get(op)]
    if there:
        report.good("ops", "%d of %d are registered: %s" % (len(there), len(OPS), ", ".join(there)))
    for op in OPS:
        if op in there:
            continue
        missing = True
        advice = answer["errors"].get(op) or "import @module@ registers it"
        report.bad(op, "is not registered", advice)
    if missing and answer["loaded"] is False:
        here = os.path.dirname(os.path.dirname(plugin_path))
        advice = reinstall if os.path.samefile(here, answer["package"]) else (
            "TensorFlow loads plugins from %s, and this one is in %s:\n" % (answer["package"], here)
            + "install both into one environment, or call @module@.register()"
        )
        report.bad("import", "import tensorflow has not loaded the library", advice)
    for path in others:
        print("  note     %-12s also loaded at import: %s" % ("", path))
    return report


def explain(report, finished):
    """What to do when `import tensorflow` fails."""
    text = finished.stderr
    if "No module named 'tensorflow'" in text:
        report.bad("TensorFlow", "is not installed", "%s -m pip install tensorflow" % sys.executable)
        return
    advice = "the last lines of its messages are:\n" + last_lines(text)
    if os.path.basename(plugin_path) in text:
        advice = "this plugin seems to be the cause: remove it with pip uninstall @name@\n" + advice
    elif "tensorflow-plugins" in text or ".so" in text:
        advice = "remove the library that the message names\n" + advice
    report.bad("TensorFlow", "import tensorflow fails (status %d)" % finished.returncode, advice)


def main():
    if sys.argv[1:] == ["doctor"]:
        problems = doctor().problems
        print("\n" + ("%d problem(s)" % problems if problems else "TensorFlow has the plugin."))
        return 1 if problems else 0
    if sys.argv[1:] == ["path"]:
        print(plugin_path)
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
