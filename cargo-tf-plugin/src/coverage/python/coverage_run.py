"""Runs a script and writes which of its ops ran on a device, as JSON.

    coverage_run.py SETTINGS SCRIPT [ARGUMENT ...]

SETTINGS is JSON: the `report` to write, the `device` type or null, and whether to stop before training (`dry_run`).
Nothing is watched until the script imports TensorFlow, so that it may set TensorFlow's variables before.
"""
import gc
import importlib.abc
import importlib.util
import json
import os
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function when TensorFlow has been imported."""

    def __init__(self, then):
        self.then = then

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            # Nothing of an import is garbage: looking for it takes a fifth of the time.
            was_on = gc.isenabled()
            gc.disable()
            try:
                execute(module)
            finally:
                if was_on:
                    gc.enable()
            self.then()

        spec.loader.exec_module = exec_module
        return spec


class Stop(SystemExit):
    """The end of a dry run."""


def main():
    settings, script = json.loads(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    process, watch = os.getpid(), []

    def begin():
        sys.path.insert(0, HERE)
        try:
            import coverage_watch
        finally:
            sys.path.remove(HERE)
        watch.append(coverage_watch.Watch(settings, Stop))

    sys.meta_path.insert(0, AfterImport(begin))
    try:
        runpy.run_path(script, run_name="__main__")
    except Stop:
        pass
    finally:
        # A child that was forked ends here, too.
        if os.getpid() == process:
            report = watch[0].report() if watch else {"tensorflow": None}
            with open(settings["report"], "w", encoding="utf-8") as file:
                json.dump(report, file)


main()
