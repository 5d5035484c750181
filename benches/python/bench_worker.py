"""Runs one operation after the other in one contestant of a benchmark, so that neither Python's start nor imports are measured.

One line of JSON on standard input requests an operation: {"run": NAME, "arguments": {...}}.
One line on standard output is the result: {"seconds", "cpu", "memory", "answer"} or {"error"}. `memory` is the peak above
what the process held after its imports, in bytes; `answer` is what the operation found, to be compared with what it
should find.
"""
import gc
import json
import os
import resource
import sys
import time
import traceback


def memory(name):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no %s; this bench needs Linux" % name)


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(function, arguments):
    gc.collect()
    forget_peak()
    started, started_cpu = time.perf_counter(), cpu()
    answer = function(**arguments)
    seconds, used = time.perf_counter() - started, cpu() - started_cpu
    return {"seconds": seconds, "cpu": used, "peak": memory("VmHWM"), "answer": answer or 0}


def serve(start):
    """Runs the operations of the client that `start` makes: methods of an object with a VERSION. Its method `forget`, if
    it has one, is called before each operation."""
    # Libraries print what they like; results have a way of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    client = start()
    gc.disable()
    base = memory("VmRSS")

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"version": client.VERSION})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if hasattr(client, "forget"):
                client.forget()
            measured = measure(getattr(client, request["run"]), request["arguments"])
            measured["memory"] = max(0, measured.pop("peak") - base)
            answer(measured)
        except Exception:  # The bench shows it, with the name of the operation.
            answer({"error": traceback.format_exc()})
