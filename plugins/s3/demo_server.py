"""S3 on this machine for the demo: moto, with a look into the bucket from outside.

    python demo_server.py BUCKET...

Needs the packages in `demo-requirements.txt`, and not TensorFlow. Writes one line of JSON with the endpoint to
standard output, then answers each line of standard input, which is a JSON list, with one line:

    ["digits", "FILE.npz"]      saves scikit-learn's digits; the number of images
    ["objects", "BUCKET"]       every key with its length
    ["uploads", "BUCKET"]       the keys of unfinished multipart uploads

It ends when its standard input is closed, so it never outlives the program that started it.
"""
import json
import os
import sys

# Whatever the surroundings say about AWS, this server and its client are for each other.
for name in [name for name in os.environ if name.startswith(("AWS_", "S3_"))]:
    del os.environ[name]
os.environ.update(AWS_ACCESS_KEY_ID="demo", AWS_SECRET_ACCESS_KEY="demo-secret", AWS_REGION="us-east-1", NO_PROXY="*")

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402
from werkzeug.serving import WSGIRequestHandler  # noqa: E402

# Nobody reads a line for each request here.
WSGIRequestHandler.log_request = lambda *arguments, **options: None


def digits(path):
    import numpy
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    numpy.savez(path, images=images.astype("float32") / 16, labels=labels.astype("int64"))
    return len(labels)


def objects(client, bucket):
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}


def uploads(client, bucket):
    return [upload["Key"] for upload in client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def main():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://%s:%d" % server.get_host_and_port()
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    for bucket in sys.argv[1:]:
        client.create_bucket(Bucket=bucket)
    print(json.dumps(endpoint), flush=True)
    for line in sys.stdin:
        command, argument = json.loads(line)
        answers = {
            "digits": lambda: digits(argument),
            "objects": lambda: objects(client, argument),
            "uploads": lambda: uploads(client, argument),
        }
        print(json.dumps(answers[command]()), flush=True)


if __name__ == "__main__":
    main()
