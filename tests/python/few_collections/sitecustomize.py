"""Makes Pythons of tests cheap. In `PYTHONPATH`, Python runs it when it starts.

`import tensorflow` makes 600,000 objects and no garbage. It takes 3.0 s of CPU time, 1.7 s if Python does not look for
garbage and NumPy has no threads, which take CPU time while they wait for work.
"""
import atexit
import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

gc.set_threshold(1_000_000)
atexit.register(gc.freeze)
