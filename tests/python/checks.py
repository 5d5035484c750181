"""What a script checks, and how it says what it found."""


def check(actual, expected, what="result"):
    if actual != expected:
        raise AssertionError("%s is %s, expected %s" % (what, short(actual), short(expected)))


def short(value):
    text = repr(value)
    return text if len(text) <= 400 else text[:400] + " ... (%d characters)" % len(text)
