"""Epochs of a data set on s3:// from the disk cache, beside the same files on the same disk.

    cargo build --release --package s3 --package tf-plugin-s3-server
    python plugins/s3/benches/disk_cache.py          # with a Python that has TensorFlow

Starts the project's server, writes 16 TFRecord files of 16 MiB to it and to a directory, reads them once to fill the cache, and then in
pairs, in turns, each pair in the other order. Prints the median of the ratios, seconds and CPU seconds of an epoch, and requests.
"""
import argparse
import glob
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

FILES, RECORDS, RECORD = 16, 1023, 16 << 10
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plugin", default=os.path.join(ROOT, "target/release/libs3.so"))
    parser.add_argument("--server", default=os.path.join(ROOT, "target/release/s3-server"))
    parser.add_argument("--directory", help="on the disk to measure; a temporary one if not given")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="a part of the name of one way to read")
    return parser.parse_args()


def start(program):
    command = [program, "--listen", "127.0.0.1:0", "--bucket", "bench", "--fast"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    return server, "http://" + line.split("http://")[-1].split()[0].strip('"')


def median(values):
    return statistics.median(values)


def main():
    options = arguments()
    directory = tempfile.mkdtemp(dir=options.directory)
    server, endpoint = start(options.server)
    os.environ.update(
        AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
        AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true", NO_PROXY="127.0.0.1",
        CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2",
        TF_S3_DISK_CACHE=directory + "/cache:4GiB",
    )
    try:
        measure(options, directory)
    finally:
        server.stdin.close()
        server.kill()
        shutil.rmtree(directory)


def measure(options, directory):
    import tensorflow as tf

    tf.experimental.register_filesystem_plugin(options.plugin)
    places = {"local": directory + "/local", "cached": "s3://bench/data"}
    os.mkdir(places["local"])
    for file in range(FILES):
        writers = [tf.io.TFRecordWriter("%s/part-%02d" % (place, file)) for place in places.values()]
        for record in range(RECORDS):
            data = random.Random(file << 10 | record).randbytes(RECORD)
            for writer in writers:
                writer.write(data)
        for writer in writers:
            writer.close()

    def epoch(place, **how):
        files = ["%s/part-%02d" % (places[place], file) for file in range(FILES)]
        wall, cpu = time.perf_counter(), time.process_time()
        dataset = tf.data.TFRecordDataset(files, **how)
        count = int(dataset.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1))
        assert count == FILES * RECORDS, count
        return time.perf_counter() - wall, time.process_time() - cpu

    def requests():
        return json.loads(tf.io.read_file("s3:///metrics.json").numpy())["attempts"]

    def blocks():
        return len(glob.glob(directory + "/cache/tf-disk-cache-1/??/*"))

    print("first epoch, from the server: %.3f s, %.3f s of CPU time" % epoch("cached"))
    # Blocks are written after they were read; a file has a little less than 16 MiB with its lengths and checksums.
    while blocks() < FILES * 16:
        time.sleep(0.05)
    ways = {
        "default": {},
        "num_parallel_reads=8": {"num_parallel_reads": 8},
        "buffer_size=256 KiB": {"buffer_size": 256 << 10},
    }
    for name, how in ways.items():
        if options.only and options.only not in name:
            continue
        times = {"local": [], "cached": []}
        for place in times:
            epoch(place, **how)
        before = requests()
        for number in range(options.rounds):
            for place in sorted(times, reverse=number % 2 == 0):
                times[place].append(epoch(place, **how))
        speed = [local[0] / cached[0] for local, cached in zip(times["local"], times["cached"])]
        print(
            "TFRecordDataset(%s): %.2f of the local speed (%.2f to %.2f); %d requests an epoch of %d files"
            % (name, median(speed), min(speed), max(speed), (requests() - before) // options.rounds, FILES)
        )
        for place in times:
            wall, cpu = (median(column) for column in zip(*times[place]))
            print("    %-6s %.3f s, %.3f s of CPU time" % (place, wall, cpu))


if __name__ == "__main__":
    main()
