"""What users of tensorflow-io's s3:// have suffered from, one case a defect: none of it may come back.

    python s3_regressions.py --root s3://bucket/regressions --control http://127.0.0.1:PORT [--only NAME]

The plugin is loaded at import, with settings from the environment as a user gives them; `--control` is the test
server's control interface, which shows what really was sent and stored. Cases that need another environment run first,
in forks of a process in which the plugin is loaded and not used; such a fork ends without any clean-up. Cases that look
at the end of a process run in their own process. One line a case on standard output:

    ok NAME 0.12s
    FAILED NAME 0.12s: the exception       (the traceback follows)

and at the end `N passed, M failed`; the exit status is 1 if a case failed.
"""
import argparse
import faulthandler
import os
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from s3_common import Control, check, wait_for  # noqa: E402

# In the order of the cases.
from s3_regression import names, requests, contents, settings, processes  # noqa: E402, F401, I001
from s3_regression.case import CASES, Place, tensorflow  # noqa: E402

# A process with TensorFlow needs seconds on a busy machine; what is looked for are minutes and hangs.
LIMIT = 120


def in_this_process(one, root, control):
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        one.function(Place(root + "/" + one.name, control))
    finally:
        faulthandler.cancel_dump_traceback_later()


def set_environment(one, control, environment):
    for name, value in (one.environment or {}).items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value(control.endpoint) if callable(value) else value


def in_a_fork(one, root, control):
    tensorflow()
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            status = 1
            try:
                set_environment(one, control, os.environ)
                in_this_process(one, root, control)
                status = 0
            except BaseException:  # noqa: BLE001: whatever it is, the parent must not go on here
                traceback.print_exc()
            finally:
                os._exit(status)
        try:
            # One that hangs is ended by this, after its own time limit had no effect.
            check(wait_for(child, LIMIT + 30), 0, "the status of the fork")
        except AssertionError as error:
            said.seek(0)
            raise AssertionError("%s; it said\n%s" % (error, said.read())) from None


def in_a_process_of_its_own(one, root, control):
    environment = dict(os.environ)
    set_environment(one, control, environment)
    command = [sys.executable, __file__, "--root", root, "--control", control.endpoint, "--here", one.name]
    if one.words:
        environment["TF_CPP_MIN_LOG_LEVEL"] = "0"
    # A process that hangs is killed by this, after its own time limit had no effect.
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT + 30)
    if finished.returncode != 0 or "here: done" not in finished.stdout:
        raise AssertionError("the process ended with status %d\n%s%s"
                             % (finished.returncode, finished.stdout, finished.stderr))
    for word in one.words:
        check(word in finished.stderr, True, "%r is on standard error: %r" % (word, finished.stderr[-2000:]))


def run(one, root, control):
    started = time.monotonic()
    try:
        how = in_a_process_of_its_own if one.own_process else in_a_fork if one.environment is not None else in_this_process
        how(one, root, control)
    except Exception as error:  # noqa: BLE001: a case may fail with anything
        print("FAILED %s %.2fs: %s (%s)" % (one.name, time.monotonic() - started, error, one.defect), flush=True)
        frames = "".join(traceback.format_tb(error.__traceback__))
        print("    " + frames.rstrip().replace("\n", "\n    "), flush=True)
        return False
    print("ok %s %.2fs" % (one.name, time.monotonic() - started), flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", metavar="URI", help="the directory to work below")
    parser.add_argument("--control", metavar="URL", help="the test server")
    parser.add_argument("--only", metavar="NAME", action="append", help="run this case (may be repeated)")
    parser.add_argument("--here", metavar="NAME", help="run this case in this process")
    parser.add_argument("--list", action="store_true", help="print the names of the cases with their defects")
    arguments = parser.parse_args()
    if arguments.list:
        for one in CASES.values():
            print("%s: %s" % (one.name, one.defect))
        return 0
    faulthandler.enable()
    control = Control(arguments.control)
    if arguments.here:
        in_this_process(CASES[arguments.here], arguments.root, control)
        print("here: done", flush=True)
        return 0
    cases = [one for one in CASES.values() if not arguments.only or one.name in arguments.only]
    # Before this process uses the plugin.
    cases.sort(key=lambda one: one.environment is None)
    results = [run(one, arguments.root.rstrip("/"), control) for one in cases]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
