"""TensorFlow on `s3://`, by a plugin written in Rust: a training job that is killed, goes on, and is served.

    python demo.py libs3.so --tools PYTHON

`cargo tf-plugin demo` builds the plugin, provides both Pythons and runs this script: the one that runs it has
TensorFlow, the other has what `demo-requirements.txt` names. The work itself is in `demo_job.py`, which is ordinary
TensorFlow; here it is started, killed and counted.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))

from demo_report import Report, Wrong, expect, last_lines  # noqa: E402

BUCKET = "demo"
ROOT = "s3://" + BUCKET + "/digits"
KILLED_AT = 300
# What the job's checkpoints must give: see `demo_job.py`.
RESUMED_AT = 270
STEPS = 540
# No step takes more than seconds; a hang must not be for ever.
LIMIT = 300


def size(count):
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            break
        count /= 1000
    return "%d B" % count if unit == "B" else "%.1f %s" % (count, unit)


class Traffic:
    """Requests and bytes, from what the plugin wrote to s3:///metrics.json in each process."""

    NAMES = ("attempts", "bytes_received", "bytes_sent")

    def __init__(self):
        self.total = dict.fromkeys(self.NAMES, 0)

    def of(self, done):
        """Columns of the table for what a program did, which are added to the total."""
        for name in self.NAMES:
            self.total[name] += done["traffic"][name]
        return self.columns(done["traffic"])

    @staticmethod
    def columns(metrics):
        return "%d" % metrics["attempts"], size(metrics["bytes_received"]), size(metrics["bytes_sent"])


class Server:
    """The S3 server, in a process that ends with this one."""

    def __init__(self, python, scratch):
        # It is only of interest if the server ends.
        self.messages = open(os.path.join(scratch, "server.log"), "w+")
        try:
            self.process = subprocess.Popen(
                [python, os.path.join(HERE, "demo_server.py"), BUCKET],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.messages, text=True,
                # Ctrl-C is for this program, which then closes the server's input.
                start_new_session=True,
            )
        except OSError as error:
            raise Wrong("cannot run %s (%s); name a Python with the packages in %s by --tools"
                        % (python, error, os.path.join(HERE, "demo-requirements.txt"))) from error
        self.endpoint = self.answer()

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Wrong("the S3 server has ended; if a package is missing, install those in %s into its Python\n%s"
                        % (os.path.join(HERE, "demo-requirements.txt"), last_lines(self.messages)))
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.messages.close()


class Jobs:
    """Programs of `demo_job.py`, each in a new process with nothing but the environment to tell it about S3."""

    def __init__(self, plugin, endpoint, scratch, report):
        self.report = report
        # Where `import tensorflow` looks for plugins: in each directory of sys.path with such a name. A wheel would
        # put the file into the real one.
        packages = os.path.join(scratch, "site-packages")
        os.makedirs(os.path.join(packages, "tensorflow-plugins"))
        shutil.copy(plugin, os.path.join(packages, "tensorflow-plugins"))
        foreign = ("AWS_", "S3_", "TF_S3_", "TF_FS_PLUGIN_", "TF_PLUGGABLE_DEVICE_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environment.update(
            AWS_ENDPOINT_URL=endpoint,
            AWS_ACCESS_KEY_ID="demo",
            AWS_SECRET_ACCESS_KEY="demo-secret",
            AWS_REGION="us-east-1",
            NO_PROXY="127.0.0.1",
            PYTHONPATH=os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])),
        )

    def run(self, *arguments, ends_by=None):
        """The result of a program, which must end with status 0, or by the signal `ends_by`."""
        with tempfile.TemporaryFile("w+") as messages:
            job = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "demo_job.py"), *arguments],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, text=True,
            )
            result = None
            try:
                signal.alarm(LIMIT)
                for line in job.stdout:
                    if not line.startswith("{"):
                        continue
                    said = json.loads(line)
                    if "say" in said:
                        self.report.note(said["say"])
                    result = said.get("result", result)
                status = job.wait()
            finally:
                signal.alarm(0)
                job.kill()
                job.wait()
                job.stdout.close()
            expected = -ends_by if ends_by else 0
            if status != expected or result is None:
                raise Wrong("the program `%s` ended with status %d, expected %d\n%s"
                            % (arguments[0], status, expected, last_lines(messages)))
            return result


def too_long(*_):
    raise Wrong("no end after %d s" % LIMIT)


def demo(plugin, tools, scratch, report):
    traffic = Traffic()
    with contextlib.ExitStack() as stack:
        with report.step("server", "Start an S3 server on this machine") as result:
            server = stack.enter_context(Server(tools, scratch))
            digits = os.path.join(scratch, "digits.npz")
            count = server.ask("digits", digits)
            jobs = Jobs(plugin, server.endpoint, scratch, report)
            result("moto at %s" % server.endpoint)

        with report.step("prepare", "Write scikit-learn's digits as TFRecords") as result:
            prepared = jobs.run("prepare", digits, ROOT)
            expect(prepared["train"] + prepared["test"] == count, "%d images became %s" % (count, prepared))
            stored = server.ask("objects", BUCKET)
            expect(sum(stored.values()) == prepared["size"] and len(stored) == prepared["files"],
                   "the plugin sees %s, the server has %s" % (prepared, stored))
            result("%d images in %d files, %s" % (count, prepared["files"], size(prepared["size"])), *traffic.of(prepared))

        with report.step("train", "Train until the job is killed (kill -9)") as result:
            killed = jobs.run("train", ROOT, "--killed-at", str(KILLED_AT), ends_by=signal.SIGKILL)
            expect((killed["begin"], killed["end"]) == (0, KILLED_AT), "it ran from step %(begin)d to %(end)d" % killed)
            result("killed at step %d of %d" % (KILLED_AT, STEPS), *traffic.of(killed))

        with report.step("resume", "Train on from the last checkpoint") as result:
            resumed = jobs.run("train", ROOT)
            expect(resumed["begin"] == RESUMED_AT, "it went on at step %(begin)d" % resumed)
            expect(resumed["end"] == STEPS, "it ended at step %(end)d" % resumed)
            expect(len(resumed["kept"]) == 3, "max_to_keep=3 kept %(kept)s" % resumed)
            expect(resumed["accuracy"] > 0.95, "only %(accuracy).3f of the test images are recognised" % resumed)
            unfinished = server.ask("uploads", BUCKET)
            result("steps %d to %d, test accuracy %.1f %%" % (resumed["begin"] + 1, STEPS, 100 * resumed["accuracy"]),
                   *traffic.of(resumed))

        with report.step("serve", "Serve the exported SavedModel from a new process") as result:
            served = jobs.run("serve", ROOT)
            expect(abs(served["accuracy"] - resumed["accuracy"]) < 1e-6,
                   "the exported model is right on %.3f of the images, the trained one on %.3f"
                   % (served["accuracy"], resumed["accuracy"]))
            expect(served["complete"], "the logs do not have each of the %d steps" % STEPS)
            result("%d predictions, %.1f %% right; %d steps in %d logs"
                   % (served["images"], 100 * served["accuracy"], served["logged"], served["events"]), *traffic.of(served))

        with report.step("look", "Look into the bucket from outside (boto3)") as result:
            stored = server.ask("objects", BUCKET)
            for name in sorted({"/".join(key.split("/")[1:2]) for key in stored}):
                inside = [length for key, length in stored.items() if key.startswith("digits/%s/" % name)]
                report.note("%-12s %3d objects, %9s" % (name + "/", len(inside), size(sum(inside))))
            for uploaded in unfinished:
                report.note("an upload that the killed job left unfinished: %s" % uploaded)
            odd = [key for key in stored if "tempstate" in key or "_temp" in key or "tmp" in key]
            expect(not odd, "temporary files are left: %s" % odd)
            result("%d objects, %s; nothing temporary" % (len(stored), size(sum(stored.values()))))
    report.table(*traffic.columns(traffic.total))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", help="the plugin's shared library")
    parser.add_argument("--tools", required=True, metavar="PYTHON", help="a Python with moto and scikit-learn")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.plugin):
        sys.exit("%s does not exist; build it with `cargo build --release --package s3`" % arguments.plugin)
    # However this program ends, what it has started ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, too_long)
    report = Report("requests", "read", "written")
    with tempfile.TemporaryDirectory(prefix="s3-demo-") as scratch:
        report.run(lambda: demo(arguments.plugin, arguments.tools, scratch, report))
    print("Every result was as expected.")


if __name__ == "__main__":
    main()
