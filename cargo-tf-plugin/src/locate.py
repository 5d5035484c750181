"""Prints, as one line of JSON, where this interpreter's TensorFlow is; imports nothing of it."""
import importlib.metadata
import importlib.util
import json
import os
import sys

found = {"executable": sys.executable, "package": None, "version": None}
spec = importlib.util.find_spec("tensorflow")
if spec is not None and spec.origin:
    found["package"] = os.path.dirname(os.path.abspath(spec.origin))
    # The same package is published under several names; the one next to the package counts.
    for name in ("tensorflow-cpu", "tensorflow", "tensorflow-rocm", "tensorflow-macos", "intel-tensorflow",
                 "tf-nightly-cpu", "tf-nightly"):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if os.path.realpath(str(distribution.locate_file("tensorflow"))) == os.path.realpath(found["package"]):
            found["version"] = distribution.version
            break
print(json.dumps(found))
