"""Runs cases in TensorFlow; what follows this text defines them. Reads a request, answers a line of JSON a step.

The request: `limit`, seconds for a case; `start_limit`, seconds up to the first one, and from the last one to the end of
the process; `jobs`, each with the settings that the cases know. With `order`, the names of
cases, and `cases`, which says for each why it is left out or null, the one job runs here. Without, each job has
`cases` and `environment` of its own, and a process, forked from this one before TensorFlow has done anything but load:
so each may crash, and its plugin is its own.
"""
import ctypes
import faulthandler
import gc
import json
import os
import re
import signal
import sys
import time
import traceback

if sys.platform == "linux":
    # A process group of its own does not end with the terminal's: PR_SET_PDEATHSIG.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
START_LIMIT = json.loads(REQUEST)["start_limit"]  # noqa: F821
faulthandler.enable()
# Says where it hangs; the one who waits ends it.
faulthandler.dump_traceback_later(START_LIMIT)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Results that do not depend on the CPU.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# Nothing of an import is garbage: looking for it takes a fifth of the time, and once more at the end.
gc.disable()
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

gc.freeze()
gc.enable()

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
CASES = {}
# What a person can read of a value.
SHOWN = 300


class Wrong(Exception):
    """Something is not as it should be."""

    def __init__(self, what, wanted=None, got=None, detail=None):
        super().__init__(what)
        self.told = {"what": what, "wanted": wanted, "got": got, "detail": detail}


class Skip(Exception):
    """There is nothing to ask."""


def case(function):
    CASES[function.__name__] = function
    return function


def shown(value):
    text = repr(value)
    if len(text) <= SHOWN:
        return text
    size = "%d bytes" % len(value) if isinstance(value, bytes) else "%d characters" % len(text)
    return "%s... (%s)" % (text[:SHOWN // 2], size)


def same(what, got, wanted):
    if isinstance(got, bytes) and isinstance(wanted, bytes) and got != wanted:
        at = next((n for n, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        raise Wrong(what, shown(wanted), shown(got), "they differ from byte %d on" % at)
    if got != wanted:
        raise Wrong(what, shown(wanted), shown(got))


def holds(what, truth):
    if not truth:
        raise Wrong(what)


def name_of(kinds):
    return " or ".join(kind.__name__ for kind in kinds)


def fails(what, kinds, function, *arguments, **options):
    """`function` has to fail with one of these errors of TensorFlow, and to say something."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    try:
        result = function(*arguments, **options)
    except tf.errors.OpError as error:
        if type(error) not in kinds:
            if isinstance(error, tf.errors.UnimplementedError):
                raise Skip("%s: not implemented" % what)
            raise Wrong(what, name_of(kinds), type(error).__name__, error.message)
        holds("%s: the error has a text" % what, bool(error.message))
        return error
    raise Wrong(what, name_of(kinds), "success, with %s" % shown(result))


def together(*checks):
    """All of them, so that one run shows all that is wrong."""
    wrong, skipped = [], None
    for check in checks:
        try:
            check()
        except Wrong as error:
            wrong.append(error.told)
        except Skip as skip:
            skipped = skip
    if wrong:
        raise Several(wrong)
    if skipped:
        raise skipped


class Several(Exception):
    def __init__(self, told):
        super().__init__("several")
        self.told = told


def say(**told):
    # A line of its own, whatever else writes.
    sys.stdout.write("\n" + json.dumps(told) + "\n")
    sys.stdout.flush()


def plain(error):
    """Its text without what TensorFlow puts around that of a plugin."""
    text = re.sub(r"\s+", " ", str(getattr(error, "message", error)))
    return re.sub(r"\{\{.*?\}\} | \[Op:\w+\]( name: )?", "", text)[:2000]


def where(error):
    frames = traceback.extract_tb(error.__traceback__)
    # The name that the program was compiled under.
    own = [frame.name for frame in frames if frame.filename == "<cases>" and frame.name in CASES or frame.name == "set_up"]
    return own[-1] if own else "the case"


def run(name, place, limit):
    started = time.monotonic()
    outcome, told, reason = "passed", [], None
    faulthandler.dump_traceback_later(limit, exit=True)
    try:
        with place.case(name):
            CASES[name](place)
    except Wrong as error:
        outcome, told = "failed", [error.told]
    except Several as error:
        outcome, told = "failed", error.told
    except Skip as skip:
        outcome, reason = "skipped", str(skip)
    except tf.errors.UnimplementedError as error:
        outcome, reason = "skipped", "not implemented: " + plain(error)
    except Exception as error:
        text = plain(error)
        outcome, told = "failed", [{
            "what": "a step of %s that has to succeed" % where(error), "wanted": "success",
            "got": type(error).__name__, "detail": text}]
    finally:
        faulthandler.cancel_dump_traceback_later()
    return {"outcome": outcome, "deviations": told, "reason": reason, "seconds": time.monotonic() - started}


def job(number, settings, cases, limit):
    os.environ.update(settings.get("environment", {}))
    try:
        place = Place(settings)
    except Exception as error:
        say(job=number, broken="%s: %s" % (type(error).__name__, getattr(error, "message", error)))
        return
    for name, left_out in cases.items():
        if left_out is not None:
            say(job=number, case=name, outcome="left out", reason=left_out, deviations=[], seconds=0)
            continue
        say(job=number, case=name, outcome="begun")
        say(job=number, case=name, **run(name, place, limit))
    say(job=number, done=True)


def main(request):
    # Advice of TensorFlow is not a result of a case.
    tf.get_logger().setLevel("ERROR")
    jobs, limit = request["jobs"], request["limit"]
    if "order" in request:
        job(0, jobs[0], {name: request["cases"][name] for name in request["order"]}, limit)
        faulthandler.dump_traceback_later(START_LIMIT)
        return
    # Of the thread that waits for this, a child has nothing but its locks.
    faulthandler.cancel_dump_traceback_later()
    for number, settings in enumerate(jobs):
        child = os.fork()
        if child == 0:
            try:
                job(number, settings, dict.fromkeys(settings["cases"]), limit)
            finally:
                sys.stdout.flush()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            say(job=number, killed=signal.Signals(os.WTERMSIG(status)).name)
        elif status:
            say(job=number, killed="exit status %d" % os.WEXITSTATUS(status))
