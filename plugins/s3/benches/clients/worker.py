"""Runs operations in one client of S3: see `benches/python/bench_worker.py`.

    python worker.py tensorflow --root s3://bench [--plugin libs3.so | --import tensorflow_io]
    python worker.py boto3 | s3fs | s3torchconnectorclient

Where the servers are comes from the environment.
"""
import argparse
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../../../benches/python")]
import bench_worker  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=["tensorflow", "boto3", "s3fs", "s3torchconnectorclient"])
    parser.add_argument("--root", default="s3://bench")
    parser.add_argument("--plugin")
    parser.add_argument("--import", dest="module")
    arguments = parser.parse_args()

    def start():
        module = importlib.import_module("with_" + arguments.client)
        client = module.Client(arguments)
        client.VERSION = module.VERSION
        return client

    bench_worker.serve(start)


if __name__ == "__main__":
    main()
