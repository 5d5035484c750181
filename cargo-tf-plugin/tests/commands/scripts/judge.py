"""Looks whether a wheel is one that installers accept, and prints its metadata."""

import base64, csv, hashlib, sys, zipfile
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename
parse_wheel_filename(sys.argv[1].rsplit('/', 1)[1])
with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert wheel.testzip() is None
    names = wheel.namelist()
    record = names[-1]
    assert record.endswith('.dist-info/RECORD') and names[:-1] == sorted(names[:-1]), names
    rows = list(csv.reader(wheel.read(record).decode().splitlines()))
    assert [row[0] for row in rows] == names and rows[-1][1:] == ['', ''], rows
    for name, digest, size in rows[:-1]:
        content = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()
        assert digest == 'sha256=' + found and int(size) == len(content), name
    assert {info.date_time for info in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    name, = [name for name in names if name.endswith('/WHEEL')]
    lines = wheel.read(name).decode().splitlines()
    tag = '-'.join(sys.argv[1][:-len('.whl')].split('-')[-3:])
    assert 'Root-Is-Purelib: false' in lines and 'Tag: ' + tag in lines, lines
    name, = [name for name in wheel.namelist() if name.endswith('/METADATA')]
    metadata = Metadata.from_email(wheel.read(name), validate=True)
assert metadata.requires_dist is None, metadata.requires_dist
print(metadata.name, metadata.version, metadata.summary)
print(metadata.author, metadata.author_email, metadata.license_expression, metadata.license_files)
print(metadata.keywords, sorted(metadata.project_urls.items()), metadata.description_content_type)
print(metadata.description.splitlines()[0])
