"""Looks for garbage rarely, and not at the end of the process. In `PYTHONPATH`, Python runs it when it starts.

`import tensorflow` makes a million objects and no garbage; looking for it takes a quarter of the time of such a process.
"""
import atexit
import gc

gc.set_threshold(100_000)
atexit.register(gc.freeze)
