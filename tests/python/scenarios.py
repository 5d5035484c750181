"""What real TensorFlow does with a filesystem, as named cases.

    python scenarios.py --plugin libmemfs.so --root mem://box/scenarios
    python scenarios.py --root ram://scenarios --only tfrecord

Needs TensorFlow (2.12 or newer) and NumPy, nothing else. Every case works in a directory of its own below the
root, which it finds empty. One line a case on standard output:

    ok NAME 0.12s
    FAILED NAME 0.12s: the exception       (the traceback follows)
    not-applicable NAME: the reason        (this TensorFlow cannot do it on any plugin, or --unable says so)

and at the end `N passed, M failed, K not applicable`; the exit status is 1 if a case failed. A case that hangs
ends the process with a traceback of all threads.

The expected status codes are those that the plugin interface's header names for each condition. TensorFlow's own
built-in filesystems deviate from them in places.
"""
import argparse
import contextlib
import faulthandler
import logging
import os
import shutil
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

# In the order of the cases.
from scenario import data, models, files, directories, codes  # noqa: E402, F401, I001
from scenario.case import CASES, LACKS, NotApplicable, Place, check, errors, gfile, short  # noqa: E402


def run(name, function, root, timeout, lacks, unable):
    if name in unable:
        print("not-applicable %s: %s" % (name, unable[name]), flush=True)
        return "not applicable"
    base = root.rstrip("/") + "/" + name
    local = tempfile.mkdtemp(prefix="scenario-")
    place = Place(base, local, lacks)
    faulthandler.dump_traceback_later(timeout, exit=True)
    started = time.monotonic()
    try:
        with contextlib.suppress(errors.NotFoundError):
            gfile.rmtree(base)
        gfile.makedirs(base)
        function(place)
        gfile.rmtree(base)
        check(gfile.exists(base), False, "exists after the clean-up")
    except NotApplicable as reason:
        print("not-applicable %s: %s" % (name, reason), flush=True)
        return "not applicable"
    except Exception as error:  # noqa: BLE001: a case may fail with anything
        text = "%s: %s" % (type(error).__name__, short(str(error)) if len(str(error)) > 4000 else error)
        print("FAILED %s %.2fs: %s" % (name, time.monotonic() - started, text), flush=True)
        frames = "".join(traceback.format_tb(error.__traceback__))
        print("    " + frames.rstrip().replace("\n", "\n    "), flush=True)
        return "failed"
    finally:
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(local, ignore_errors=True)
    print("ok %s %.2fs" % (name, time.monotonic() - started), flush=True)
    return "passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", metavar="SO", help="the plugin to register first")
    parser.add_argument("--root", metavar="URI", help="the directory to work below; made if it is missing")
    parser.add_argument("--only", metavar="NAME", action="append", help="run this case (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--lacks", action="append", default=[], choices=sorted(LACKS), metavar="WHAT",
                        help="what the plugin has not, by design; cases then expect what it has instead: "
                        + "; ".join("%s: %s" % lack for lack in sorted(LACKS.items())))
    parser.add_argument("--unable", action="append", default=[], metavar="NAME=REASON",
                        help="a case that the server behind the plugin cannot do (may be repeated)")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="limit for one case")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(name for name, _ in CASES))
        return 0
    if not arguments.root:
        parser.error("--root is needed")
    unable = dict(text.split("=", 1) for text in arguments.unable)
    unknown = set(arguments.only or []).union(unable) - {name for name, _ in CASES}
    if unknown:
        parser.error("no such case: %s (see --list)" % ", ".join(sorted(unknown)))
    faulthandler.enable()
    # Advice about deprecated Python calls is not a result of a case.
    for logger in ("tensorflow", "absl"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    if arguments.plugin:
        tf.experimental.register_filesystem_plugin(arguments.plugin)
    results = [
        run(name, function, arguments.root, arguments.timeout, arguments.lacks, unable)
        for name, function in CASES
        if not arguments.only or name in arguments.only
    ]
    print("%d passed, %d failed, %d not applicable"
          % tuple(results.count(kind) for kind in ("passed", "failed", "not applicable")))
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())
