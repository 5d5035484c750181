"""Runs scripts in forks of one process that has imported TensorFlow.

Reads a request a line of JSON from standard input:

    {"id": ..., "script": PATH, "arguments": [...], "environment": {...}, "stdout": PATH, "stderr": PATH, "limit": SECONDS}

The fork has this environment and no other, loads the plugins that TensorFlow would load at the end of its import, and
runs the script as `python SCRIPT ARGUMENTS` does. Writes a line of JSON when it has ended: its `id`, and its `status` as
`waitpid` returns it, or null after the limit. What it has started is killed.
"""
import faulthandler
import gc
import json
import os
import select
import signal
import sys
import time
import types
import warnings

faulthandler.enable()
# Nothing of an import is garbage, and no fork has to free it at its end: both would take longer than most scripts.
gc.disable()
import tensorflow as tf  # noqa: E402, F401
from tensorflow.python.framework import load_library  # noqa: E402

gc.freeze()
gc.enable()

# For the stack that `faulthandler` writes when the limit is over.
LAST_WORDS = 3


class Fork:
    def __init__(self, request):
        self.id, self.limit = request["id"], time.monotonic() + request["limit"]
        self.in_time = True
        with warnings.catch_warnings():
            # TensorFlow has no threads yet; those of numpy know forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid:
            self.pidfd = os.pidfd_open(self.pid)

    def look(self, now):
        """Ends it when it is over its limit."""
        if now >= self.limit and self.in_time:
            self.in_time, self.limit = False, now + LAST_WORDS
            os.kill(self.pid, signal.SIGABRT)
        elif now >= self.limit:
            os.kill(self.pid, signal.SIGKILL)

    def end(self):
        # While nobody has waited for it, no other process has its number.
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        return {"id": self.id, "status": status if self.in_time else None}


def serve():
    """Returns in forks only, with what each of them runs."""
    requests, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "w")
    poll, forks = select.poll(), {}
    poll.register(requests, select.POLLIN)
    while True:
        for ready, _ in poll.poll(100 if forks else None):
            if ready != requests.fileno():
                poll.unregister(ready)
                answers.write(json.dumps(forks.pop(ready).end()) + "\n")
                answers.flush()
                continue
            line = requests.readline()
            if not line:
                for fork in forks.values():
                    fork.end()
                sys.exit(0)
            request = json.loads(line)
            fork = Fork(request)
            if fork.pid == 0:
                requests.close()
                answers.close()
                return request
            forks[fork.pidfd] = fork
            poll.register(fork.pidfd, select.POLLIN)
        now = time.monotonic()
        for fork in forks.values():
            fork.look(now)


def become(request):
    """Makes this process one as the interpreter starts it."""
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(request["stdout"], os.O_WRONLY), 1)
    os.dup2(os.open(request["stderr"], os.O_WRONLY), 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    script = request["script"]
    sys.argv = [script, *request["arguments"]]
    sys.path[0] = os.path.dirname(script)
    # As the end of `tensorflow/__init__.py`.
    library = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
    if library:
        load_library.load_pluggable_device_library(library)
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    with open(script, "rb") as file:
        return compile(file.read(), script, "exec"), main.__dict__


exec(*become(serve()))
