"""Prints, as one line of JSON, what this Python's `import tensorflow` would load as plugins; imports nothing of it.

The rules are those of TensorFlow 2.12 to 2.21; the order of the directories is not defined there.
"""
import json
import os
import site
import sys
import sysconfig


def is_library(name):
    if name.endswith(".so"):
        return True
    _, found, rest = name.rpartition(".so.")
    return bool(found) and rest[:1].isdecimal()


def libraries(place):
    if not os.path.isdir(place):
        return [place]
    return [os.path.join(place, name) for name in os.listdir(place) if is_library(name)]


scanned = []
if site.ENABLE_USER_SITE and site.USER_SITE is not None:
    scanned.append(site.USER_SITE)
scanned += [path for path in sys.path if "site-packages" in path]
scanned += getattr(site, "getsitepackages", list)()
for scheme in sysconfig.get_scheme_names():
    scanned += [sysconfig.get_path(name, scheme) for name in ("purelib", "platlib")]
directories = []
for path in sorted(set(scanned)):
    plugins = os.path.join(path, "tensorflow-plugins")
    if os.path.exists(plugins):
        directories.append(libraries(plugins))
variable = os.getenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "")
named = libraries(variable) if os.path.exists(variable) else None
print(json.dumps({
    "site_packages": sorted(set(scanned)),
    "directories": directories,
    "variable": variable or None,
    "named": named,
    "enabled_types": os.getenv("TF_ENABLED_DEVICE_TYPES"),
}))
