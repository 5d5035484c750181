"""Lines of this repository with their languages, and what Python's `tokenizers` does with them.

    python demo_texts.py collect TEXTS              writes the lines as JSON
    python demo_texts.py train TEXTS TOKENIZER      trains a tokenizer on those for training
    python demo_texts.py encode TEXTS TOKENIZER IDS encodes those held out
"""
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {"Rust": (".rs",), "Python": (".py",), "C++": (".cc", ".h"), "English": (".md",)}
# Of each language at most so many, so that none is much more frequent than the others.
MOST = 4000
SHORTEST = 20
TOKENS = 4000
MAX_LENGTH = 64


def files(directory, suffixes):
    for path in sorted(directory.iterdir()):
        if path.is_dir() and path.name != "target" and not path.name.startswith("."):
            yield from files(path, suffixes)
        elif path.suffix in suffixes:
            yield path


def collect():
    choices = random.Random(0)
    texts = []
    for label, suffixes in enumerate(LANGUAGES.values()):
        lines = {line.strip() for path in files(ROOT, suffixes) for line in path.read_text().splitlines()}
        lines = sorted(line for line in lines if len(line) >= SHORTEST)
        choices.shuffle(lines)
        texts += [(line, label) for line in lines[:MOST]]
    choices.shuffle(texts)
    held_out = len(texts) // 5
    return {"languages": list(LANGUAGES), "test": texts[:held_out], "train": texts[held_out:]}


def train(texts):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=["<pad>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text for text, _ in texts["train"]], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def encode(texts, path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.enable_truncation(MAX_LENGTH)
    tokenizer.enable_padding(length=MAX_LENGTH, pad_id=0)
    return [row.ids for row in tokenizer.encode_batch([text for text, _ in texts["test"]])]


def main(command, path, *rest):
    if command == "collect":
        texts = collect()
        pathlib.Path(path).write_text(json.dumps(texts))
        print(json.dumps({name: len(texts[name]) for name in ("train", "test")}))
        return
    texts = json.loads(pathlib.Path(path).read_text())
    if command == "train":
        tokenizer = train(texts)
        tokenizer.save(rest[0])
        print(json.dumps({"tokens": tokenizer.get_vocab_size()}))
    else:
        ids = encode(texts, rest[0])
        pathlib.Path(rest[1]).write_text(json.dumps(ids))
        print(json.dumps({"rows": len(ids)}))


main(*sys.argv[1:])
