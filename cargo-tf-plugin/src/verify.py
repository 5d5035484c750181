"""Prints, as one line of JSON, the first recorded file that an interrupted installation left out."""
import csv
import importlib.metadata
import json
import os

missing = None
for distribution in importlib.metadata.distributions():
    record = distribution.read_text("RECORD")
    if record is None:
        missing = missing or "the file list of %s" % distribution.metadata["Name"]
        continue
    for row in csv.reader(record.splitlines()):
        path = str(distribution.locate_file(row[0]))
        # Entries without a size (RECORD itself, byte code) may be absent; certificates are added to locally.
        if len(row) < 3 or not row[2] or path.endswith("cacert.pem"):
            continue
        if not os.path.isfile(path) or os.path.getsize(path) != int(row[2]):
            missing = missing or path
print(json.dumps({"missing": missing}))
