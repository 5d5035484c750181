"""How a process ends that has used S3, and whether a forked child can use it.

    python probe.py exit | fork --root s3://bench [--plugin libs3.so | --import tensorflow_io]

`exit` reads and writes a file, prints a line and leaves: what follows is the client's doing. `fork` reads a file, forks,
and prints as JSON how the child that reads the same file again has ended, and after how many seconds.
"""
import argparse
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import with_tensorflow  # noqa: E402

DEADLINE = 20


def read(client):
    with with_tensorflow.GFile(client.root + "/small/f-00000", "rb") as file:
        return file.read()


def fork(client):
    expected = read(client)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if read(client) == expected else 1
        except Exception as error:
            print(error, file=sys.stderr)
        finally:
            os._exit(status)
    while time.monotonic() - started < DEADLINE:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            how = {0: "right", 1: "wrong bytes", 2: "error"}.get(code, "exit status %d" % code)
            return how, time.monotonic() - started
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs", float(DEADLINE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("probe", choices=["exit", "fork"])
    parser.add_argument("--root", default="s3://bench")
    parser.add_argument("--plugin")
    parser.add_argument("--import", dest="module")
    arguments = parser.parse_args()
    client = with_tensorflow.Client(arguments)
    if arguments.probe == "fork":
        child, seconds = fork(client)
        print(json.dumps({"child": child, "seconds": seconds}), flush=True)
        # The end of this process is the other probe's.
        os._exit(0)
    client.write_small("out/probe", 0, 1)
    read(client)
    print(json.dumps({}), flush=True)


if __name__ == "__main__":
    main()
