"""Hugging Face's tokenizers in TensorFlow: a classifier that is trained on raw text, and served on raw text.

    python demo.py WHEEL --tools PYTHON

`cargo tf-plugin demo tokenizers` builds the wheel, provides both Pythons and runs this script: the one that runs it has
TensorFlow, the other has what `demo-requirements.txt` names. The work itself is in `demo_job.py`, which is ordinary
TensorFlow; here it is started, each time in a new process, and compared.
"""
import argparse
import json
import os
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))

from demo_report import Report, expect, run  # noqa: E402

# Of the lines that are held out.
ACCURACY = 0.85
SHOWN = 6
WIDTH = 60


class Programs:
    """Programs with the wheel's files on their path, and with Python's tokenizers."""

    def __init__(self, tools, packages, scratch):
        self.tools = tools
        self.messages = os.path.join(scratch, "messages")
        foreign = ("TF_PLUGGABLE_DEVICE_", "TF_FS_PLUGIN_", "TENSORFLOW_TOKENIZERS_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        # `import tensorflow` looks for `tensorflow-plugins` in directories with this name.
        self.environment.update(
            PYTHONPATH=os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])),
            TF_CPP_MIN_LOG_LEVEL="1",
        )

    def job(self, *arguments):
        return self._run([sys.executable, os.path.join(HERE, "demo_job.py"), *arguments], "demo_job.py " + arguments[0])

    def texts(self, *arguments):
        return self._run([self.tools, os.path.join(HERE, "demo_texts.py"), *arguments], "demo_texts.py " + arguments[0])

    def _run(self, program, what):
        with open(self.messages, "w+") as messages:
            return run(program, self.environment, messages, what)


def read(path):
    with open(path) as file:
        return json.load(file)


def shown(text):
    text = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    return text.ljust(WIDTH)


def demo(wheel, tools, scratch, report):
    packages, texts, tokenizer = (os.path.join(scratch, name) for name in ("site-packages", "texts.json", "tokenizer.json"))
    programs = Programs(tools, packages, scratch)
    with report.step("wheel", "Install the wheel, and nothing else") as result:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
        result("%s, %.1f MB" % (os.path.basename(wheel).split("-")[0], os.path.getsize(wheel) / 1e6))

    with report.step("texts", "Take lines of this repository: in which language is each?") as result:
        count = programs.texts("collect", texts)
        data = read(texts)
        result("%d lines for training, %d held out; %s" % (count["train"], count["test"], ", ".join(data["languages"])))

    with report.step("tokenizer", "Train a tokenizer with Hugging Face's Python package") as result:
        trained = programs.texts("train", texts, tokenizer)
        result("byte-level BPE with %d tokens, tokenizer.json of %d kB" % (trained["tokens"], os.path.getsize(tokenizer) / 1e3))

    with report.step("train", "Train a classifier from raw text: tf.data, Keras") as result:
        learnt = programs.job("train", texts, tokenizer, scratch)
        report.note("TensorFlow %s; loss of each epoch: %s" % (learnt["version"], " ".join("%.3f" % loss for loss in learnt["losses"])))
        report.note("%s texts a second in tf.data, shuffled, batched and padded" % format(round(learnt["texts_per_second"], -2), ",.0f"))
        expect(learnt["accuracy"] >= ACCURACY, "only %.3f of the lines held out are right" % learnt["accuracy"])
        result("%d steps, %.1f %% of %d lines held out are right" % (learnt["steps"], 100 * learnt["accuracy"], count["test"]))

    with report.step("compare", "Compare the ids with those of the Python package") as result:
        ids = os.path.join(scratch, "expected.json")
        programs.texts("encode", texts, tokenizer, ids)
        expected, found = read(ids), read(os.path.join(scratch, "ids.json"))
        different = sum(one != other for one, other in zip(expected, found))
        expect(len(expected) == len(found) and not different, "%d of %d lines have other ids" % (different, len(expected)))
        result("all %d ids of %d lines are the same" % (sum(map(len, found)), len(found)))

    with report.step("serve", "Serve raw text from a moved SavedModel, in a process with `import tensorflow` alone") as result:
        # The tokenizer is in the model.
        os.remove(tokenizer)
        os.rename(os.path.join(scratch, "exported"), os.path.join(scratch, "moved"))
        served = programs.job("serve", texts, os.path.join(scratch, "moved"))
        expect(not served["imported"], "tensorflow_tokenizers was imported")
        expect(served["answers"] == learnt["answers"], "the exported model has other results than the trained one")
        for (text, _), answer in list(zip(data["test"], served["answers"]))[:SHOWN]:
            report.note("%s %s" % (shown(text), data["languages"][answer]))
        speed = format(round(served["texts_per_second"], -2), ",.0f")
        result("%d predictions, %.1f %% right; %s texts a second" % (len(served["answers"]), 100 * served["accuracy"], speed))

    with report.step("keras", "Load the .keras file in another process") as result:
        loaded = programs.job("keras", texts, os.path.join(scratch, "model.keras"))
        expect(loaded["answers"] == learnt["answers"], "the loaded model has other results than the trained one")
        result("the same %d predictions" % len(loaded["answers"]))
    report.table()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", help="the wheel of the tokenizers")
    parser.add_argument("--tools", required=True, metavar="PYTHON", help="a Python with tokenizers")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.wheel):
        sys.exit("%s does not exist; build it with `cargo tf-plugin wheel --package tensorflow-tokenizers`" % arguments.wheel)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="tokenizers-demo-") as scratch:
        report.run(lambda: demo(arguments.wheel, arguments.tools, scratch, report))
    print("Every result was as expected.")


if __name__ == "__main__":
    main()
