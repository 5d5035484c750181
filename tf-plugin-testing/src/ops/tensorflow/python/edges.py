# Values and types ---------------------------------------------------------------------------------------------

# NUL, bytes that are not UTF-8, halves of surrogates, the lengths at which TensorFlow's strings change their form.
ODD = [b"", b"\0", b"\0\0a", b"a\0b", b"\xff\xfe", b"caf\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "e\u0301 \U0001f4d6 \u202e".encode(),
       bytes(range(256)), b"x" * 22, b"x" * 23, b"x" * 70000]


def strings_of(sample):
    names = [name for name, arrays in sample.inputs.items() if sample.arguments[name]["dtype"] == tf.string and any(array.size for array in arrays)]
    if not names:
        raise Skip("no input has strings")
    return names


def with_strings(sample, name, text, first=False):
    """The arguments with this text in place of each string of an input, or of the first one."""
    arrays = []
    for array in sample.inputs[name]:
        changed = array.copy().ravel()
        changed[:1 if first else None] = text
        arrays.append(changed.reshape(array.shape))
    return dict(sample.inputs, **{name: arrays})


@case
def python_odd_bytes(place):
    def check(sample):
        function = sample.graph(unknown_rank)
        for name, text in itertools.product(strings_of(sample), ODD):
            inputs = with_strings(sample, name, text, first=True)
            alike(sample, "`%s` with %s" % (name, shown(text)), inputs, lambda inputs: arrays_of(function(*sample.tensors(inputs))))

    each(place.firsts, check)


@case
def python_bytes_after_nul(place):
    # What tells two texts apart also does so behind a NUL.
    def outputs(sample, name, text):
        got, refusal = attempt("`%s` with %s" % (name, shown(text)), lambda: sample.eager(with_strings(sample, name, text)))
        return got if refusal is None else None

    def differ(sample, name, begin):
        one, other = (outputs(sample, name, begin + end) for end in (b"a", b"b"))
        if one is None or other is None:
            return None
        return not all(is_same(a, b) for a, b in zip(one, other))

    def check(sample):
        if sample.stateful:
            raise Skip("the op is declared to be stateful")
        told = 0
        for name in strings_of(sample):
            begins = {b"", next(array for array in sample.inputs[name] if array.size).ravel()[0]}
            for begin in begins:
                if not differ(sample, name, begin + b"x"):
                    continue
                told += 1
                if differ(sample, name, begin + b"\0") is False:
                    raise Wrong("outputs for `%s` with %s and %s" % (name, shown(begin + b"\0a"), shown(begin + b"\0b")),
                                "different ones, as for %s and %s" % (shown(begin + b"xa"), shown(begin + b"xb")), "the same")
        if not told:
            raise Skip("the op does not tell such texts apart")

    each(place.firsts, check)


@case
def python_long_string(place):
    def check(sample):
        for name in strings_of(sample):
            got, refusal = attempt("`%s` with a string of 10 MB" % name,
                                   lambda: sample.eager(with_strings(sample, name, b"x" * 10_000_000, first=True)))
            if refusal is None:
                alike(sample, "the sample call after a string of 10 MB", sample.inputs, sample.eager)

    each(place.firsts, check)


@case
def python_wrong_types(place):
    def check(sample):
        for at, (name, dtype) in enumerate(zip(sample.names(), sample.dtypes())):
            flat = sample.tensors()
            flat[at] = tf.zeros(flat[at].shape, tf.int32) if dtype == tf.string else tf.fill(flat[at].shape, "1")
            for way, compute in (("eager", lambda: sample.apply(*flat)), ("a function", lambda: tf.function(sample.apply, autograph=False)(*flat))):
                what = "`%s` of %s, %s" % (name, flat[at].dtype.name, way)
                _, error = attempt(what, compute)
                if error is None:
                    raise Wrong(what, "an error about the type", "success")
                # TensorFlow's own message has the number instead of the name, or the type parameter.
                named = (name, "#%d" % at, sample.op["name"])
                holds("the error about %s names the input or the op: %s" % (what, plain(error)), any(part in str(error) for part in named))
        if not sample.flat():
            raise Skip("the op has no inputs")
        same_outputs(sample, "the sample call afterwards", sample.eager(), sample.eager())

    each(place.firsts, check)
