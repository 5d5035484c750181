"""Saves scikit-learn's digits, 1,797 images of handwritten digits that its wheel holds, for a Python without scikit-learn.

    python digits.py DIGITS.npz
"""
import json
import sys

import numpy
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
numpy.savez(sys.argv[1], images=images.reshape(-1, 8, 8), labels=labels)
print(json.dumps(dict(count=len(labels))))
