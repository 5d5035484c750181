"""Measures a plugin in TensorFlow, beside what TensorFlow has itself: python -c SCRIPT JOB REPORT

JOB is JSON; see `Job` in bench/job.rs for both sides. One event a line goes into the file REPORT. Both sides of a row
take turns, so that what else the machine does falls on both. It ends, and removes what it has made, when its standard
input ends.
"""
import gc
import json
import os
import shutil
import sys
import threading
import time

JOB = json.loads(sys.argv[1])
REPORT = open(sys.argv[2], "w", encoding="utf-8")
FEWEST, MOST = 3, 5000
# A sample is at least so many nanoseconds long that reading the clock does not count, and that they fill the time.
SAMPLE = max(200_000, int(JOB["seconds"] * 1e9 / MOST))
KIB, MIB = 1 << 10, 1 << 20
ENTRIES = 1000

stopping = threading.Event()


class Stopped(Exception):
    pass


class Absent(Exception):
    pass


def tell(event):
    REPORT.write(json.dumps(event) + "\n")
    REPORT.flush()


def leash():
    try:
        sys.stdin.buffer.read()
    finally:
        stopping.set()
        # A plugin that hangs does not look at that.
        time.sleep(60)
        os._exit(1)


threading.Thread(target=leash, daemon=True).start()

# Nothing of an import is garbage: looking for it takes a fifth of the time, and once more at the end.
gc.disable()
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

gc.freeze()
gc.enable()

gfile = tf.io.gfile
ROWS = []


def row(group, name, size=None, reads=False):
    """A row; one that only `reads` can be measured with a file that is there already."""

    def add(make):
        ROWS.append((group, name, size, reads, make))
        return make

    return add


def clock(operation):
    """What a function takes that is called so often, in nanoseconds."""

    def run(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            operation()
        return time.perf_counter_ns() - start

    return run


def rehearse(run):
    """How many calls fill a sample."""
    most = getattr(run, "most", 1 << 20)
    start, calls, rehearsals = time.perf_counter(), 1, 0
    while True:
        if stopping.is_set():
            raise Stopped()
        took = run(calls)
        rehearsals += 1
        full = took >= SAMPLE or calls == most
        if full and rehearsals > 1 or time.perf_counter() - start > JOB["seconds"] / 3:
            return calls
        if not full:
            calls = min(most, max(calls + 1, min(calls * 100, SAMPLE * calls // max(took, 1))))


def timing(samples, calls):
    samples = sorted(samples)
    middle = len(samples) // 2
    median = samples[middle] if len(samples) % 2 else (samples[middle - 1] + samples[middle]) / 2
    return {
        "median_ns": median,
        "min_ns": samples[0],
        "p90_ns": samples[-(-len(samples) * 9 // 10) - 1],
        "samples": len(samples),
        "calls": calls * len(samples),
    }


def measure(runs):
    """The timings of one or two sides, which take turns."""
    calls = [rehearse(run) for run in runs]
    samples = [[] for _ in runs]
    start, budget = time.perf_counter(), JOB["seconds"] * len(runs)
    while len(samples[0]) < MOST:
        spent = time.perf_counter() - start
        if spent > budget and len(samples[0]) >= FEWEST or spent > 4 * budget and samples[0]:
            break
        order = list(range(len(runs)))
        for side in order if len(samples[0]) % 2 == 0 else reversed(order):
            if stopping.is_set():
                raise Stopped()
            samples[side].append(runs[side](calls[side]) / calls[side])
    return [timing(taken, count) for taken, count in zip(samples, calls)]


def first_line(error):
    text = str(error).strip() or type(error).__name__
    return "%s: %s" % (type(error).__name__, text.splitlines()[0][:300])


def measure_rows(plugin, own):
    for group, name, size, reads, make in ROWS:
        wanted = JOB["filter"] in name.lower() or JOB["filter"] in group.lower()
        if not wanted or name in JOB["skip"] or JOB["file"] is not None and not reads:
            continue
        if stopping.is_set():
            raise Stopped()
        tell({"Begin": [group, name]})
        result = {"group": group, "name": name, "bytes": size}
        made = []
        try:
            runs = []
            for side in (plugin, own):
                run, *rest = make(side)
                made += rest
                runs.append(run)
            timed = measure(runs)
            result.update(result="measured", timing=timed[0], reference=timed[1])
        except Stopped:
            raise
        except Absent as absent:
            result.update(result="absent", why=str(absent))
        except tf.errors.UnimplementedError:
            result.update(result="absent", why="not implemented: TensorFlow raises UnimplementedError")
        except Exception as error:
            result.update(result="failed", why=first_line(error))
        finally:
            for undo in made:
                try:
                    undo()
                except Exception:
                    # The rest is removed with the directory.
                    pass
        tell({"Row": result})
