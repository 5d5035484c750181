"""Texts to compare tokenizers on, as bytes: the same for the same seed."""

import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]

# Tokens that mean something to one of the tokenizers, and texts that almost are such tokens.
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "[cls]", "</ s>"]
SPECIAL += ["<EOT>", "<META>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜fim▁hole｜>", "▁", "Ġ", "##ing", "<0x0A>", "\n\nHuman:"]
ODD = ["\0", "a\0b", "\x01\x7f\x80", "\u200b\u200d", "e\u0301\u0327", "\ufeff", "\ufffd", "ﬁ", "İ", "ß", "Ǆ", "\u2028", "\x85"]
ODD += ["👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "한글", "\u1112\u1161\u11ab", "日本語テキスト", "中文字符", "עִבְרִית", "العربية", "हिन्दी", "ไทย", "½²Ⅷ", "\u3000"]
INVALID = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80", b"\x80abc\xfe"]


def files(pattern, count):
    for path in sorted(ROOT.glob(pattern))[:count]:
        yield path.read_bytes()


def pieces(data, size):
    """Cuts anywhere, also inside of characters."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def sources():
    """Licences, source code in several languages and Python's documentation."""
    from pydoc_data.topics import topics

    sources = [*files("LICENSE*", 2), *files("tf-plugin-core/src/*.rs", 4), *files("plugins/s3/*.py", 4), *files("docs/*.md", 6)]
    return sources + [topics[name].encode() for name in sorted(topics)]


def documents(share):
    """The sources in lines and in larger pieces."""
    lines = [line for source in sources() for line in source.splitlines(keepends=True)]
    blocks = [piece for source in sources() for piece in pieces(source, 1009)]
    return [b"", *lines[::share], *blocks[::share]]


def unicode_blocks(share):
    """Every character that UTF-8 can hold: next to its neighbours, and each as a word."""
    for first in range(0, sys.maxunicode + 1, 64):
        characters = [chr(code) for code in range(first, first + 64) if not 0xD800 <= code < 0xE000]
        if share > 1:
            # Of unassigned planes a few.
            if first >= 0x32000 and first % 0x10000:
                continue
            characters = characters[:: max(1, share // 4)]
        yield "".join(characters).encode()
        yield " ".join(characters).encode()


def alphabets():
    yield "abcdefghijklmnopqrstuvwxyz etaoin shrdlu     "
    yield "".join(map(chr, range(32, 127)))
    yield "".join(map(chr, range(0, 32))) + " ab"
    yield "".join(map(chr, range(0xA0, 0x250)))
    yield "".join(map(chr, range(0x300, 0x370))) + "aeiou "
    yield "".join(map(chr, range(0x370, 0x600)))
    yield "".join(map(chr, range(0x900, 0xE80)))
    yield "".join(map(chr, range(0x2000, 0x2C00)))
    yield "".join(map(chr, range(0x3000, 0x30FF))) + "".join(map(chr, range(0x4E00, 0x4F00)))
    yield "".join(map(chr, range(0xAC00, 0xAD00)))
    yield "".join(map(chr, range(0xF900, 0x10000)))
    yield "".join(map(chr, range(0x1F000, 0x1FB00))) + "\u200d\ufe0f"
    yield "".join(map(chr, range(0x10000, 0x10400)))


def random_texts(seed, count):
    choices = random.Random(seed)
    sets = list(alphabets())
    for _ in range(count):
        parts = []
        for _ in range(choices.randrange(6)):
            kind = choices.random()
            if kind < 0.70:
                letters = choices.choice(sets)
                parts.append("".join(choices.choices(letters, k=choices.randrange(24))).encode())
            elif kind < 0.80:
                parts.append(choices.choice(SPECIAL).encode())
            elif kind < 0.90:
                parts.append(choices.choice(ODD).encode())
            elif kind < 0.95:
                parts.append(choices.choice(INVALID))
            else:
                parts.append(choices.randbytes(choices.randrange(12)))
            if choices.random() < 0.5:
                parts.append(choices.choice([b" ", b"  ", b"\n", b"\t", b"\r\n"]))
        yield b"".join(parts)


def texts(seed, random_count, share):
    """Seed 0 has the texts that are not random, too: of documents and of Unicode one of `share`."""
    fixed = []
    if seed == 0:
        fixed += [text.encode() for text in SPECIAL + ODD] + INVALID
        fixed += documents(share)
        fixed += unicode_blocks(share)
    return fixed + list(random_texts(seed, random_count))
