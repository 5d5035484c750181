"""Makes Pythons of tests cheap. In `PYTHONPATH`, Python runs it when it starts.

`import tensorflow` makes a million objects and no garbage; looking for it takes a quarter of the time of such a process. NumPy's
threads take processor time while they wait for work.
"""
import atexit
import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

gc.set_threshold(100_000)
atexit.register(gc.freeze)
