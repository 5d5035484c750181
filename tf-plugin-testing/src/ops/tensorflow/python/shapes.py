# Shapes -------------------------------------------------------------------------------------------------------


class Dimensions:
    """The dimensions that the inputs of a sample share by name: arguments of other sizes can be made from it."""

    def __init__(self, sample):
        self.sample, self.sizes, self.at_start = sample, {}, {}
        for at, (name, arrays) in enumerate(sample.inputs.items()):
            if name.endswith("_row_splits") and sample.arguments[name]["ragged"]:
                continue
            for array in arrays:
                for axis, (key, length) in enumerate(self.split(name, array.shape)):
                    self.sizes.setdefault(key, length)
                    if length != ():
                        self.at_start[key] = self.at_start.get(key, True) and axis == 0

    def split(self, name, shape):
        """Each part of a declared shape, with its lengths in this one."""
        declared = self.sample.arguments[name]["shape"]
        if declared is None:
            return [("? " + name, tuple(shape))]
        parts = [part.strip() for part in declared[1:-1].split(",") if part.strip()]
        rest = len(shape) - sum(not part.startswith("..") for part in parts)
        found, at = [], 0
        for axis, part in enumerate(parts):
            if part.startswith(".."):
                found.append((part, tuple(shape[at:at + rest])))
                at += rest
                continue
            found.append((part if not part == "_" else "_ %s %d" % (name, axis), shape[at]))
            at += 1
        return found

    def free(self):
        """The dimensions whose length is not declared."""
        return [key for key in self.sizes if not key.isdigit() and not key.startswith("?")]

    def inputs(self, **changed):
        """Arguments of other sizes, by names of dimensions, with the elements of the sample."""
        sizes, made = dict(self.sizes, **changed), {}
        for name, arrays in self.sample.inputs.items():
            ragged = self.sample.arguments[name]["ragged"]
            if ragged and name.endswith("_row_splits"):
                length = made[ragged + "_values"][0].shape[0]
                made[name] = [np.minimum(arrays[0], length)]
                made[name][0][-1:] = length
                continue
            made[name] = []
            for array in arrays:
                shape = []
                for key, length in self.split(name, array.shape):
                    length = sizes[key] if key in changed else length
                    shape += length if isinstance(length, tuple) else [length]
                if not array.size and np.prod(shape):
                    raise Skip("the sample call has no elements for larger inputs")
                made[name].append(np.resize(array, shape) if np.prod(shape, dtype=int) else np.empty(shape, array.dtype))
        return made


def in_functions(sample, what, inputs):
    """Functions that know all, some and none of the shapes return what an eager call does, of the shapes that they say."""
    for knows, shape in (("the shapes", None), ("the ranks", unknown_dimensions), ("no shape", unknown_rank)):

        def run(inputs):
            function = sample.graph(shape or (lambda array: array.shape), inputs)
            tensors = function(*sample.tensors(inputs))
            for at, (static, tensor) in enumerate(zip(function.outputs, tensors)):
                if not static.shape.is_compatible_with(tensor.shape):
                    raise Wrong("the shape of output %d of %s, in a function that knows %s" % (at, what, knows),
                                str(static.shape), str(tensor.shape), "the second is the computed one")
            return arrays_of(tensors)

        alike(sample, "%s, in a function that knows %s" % (what, knows), inputs, run)


@case
def python_shapes_of_functions(place):
    def check(sample):
        in_functions(sample, "the sample call", sample.inputs)

    each(place.samples, check)


@case
def python_empty_tensors(place):
    def check(sample):
        dimensions = Dimensions(sample)
        free = dimensions.free()
        if not free:
            raise Skip("all shapes are declared")
        for key in free:
            for size in ((0,), (2, 0), (0, 3)) if key.startswith("..") else (0,):
                in_functions(sample, "`%s` of %s" % (key, size), dimensions.inputs(**{key: size}))
        nothing = {key: (0,) if key.startswith("..") else 0 for key in free}
        in_functions(sample, "no elements at all", dimensions.inputs(**nothing))

    each(place.samples if IS_WHOLE else place.firsts, check)


@case
def python_ranks(place):
    def check(sample):
        dimensions = Dimensions(sample)
        rests = [key for key in dimensions.free() if key.startswith("..")]
        if not rests:
            raise Skip("all ranks are declared")
        for key, shape in itertools.product(rests, [(), (3,), (2, 2), (2, 1, 3), (1, 2, 1, 2), (1, 2, 1, 1, 2)]):
            in_functions(sample, "`%s` of %s" % (key, shape), dimensions.inputs(**{key: shape}))

    each(place.samples if IS_WHOLE else place.firsts, check)


@case
def python_wrong_shapes(place):
    def refused(sample, name, inputs):
        shapes = [list(array.shape) for array in inputs[name]]
        what = "`%s` of %s" % (name, shapes)
        for way, compute in (("eager", lambda: sample.eager(inputs)),
                             ("a function", lambda: sample.graph(inputs=inputs)(*sample.tensors(inputs))),
                             ("a function that knows no shape", lambda: sample.graph(unknown_rank, inputs)(*sample.tensors(inputs)))):
            got, error = attempt("%s, %s" % (what, way), compute)
            if error is None:
                raise Wrong("%s, %s" % (what, way), "an error: the shape should be %s" % sample.arguments[name]["shape"], "success")
            # Of a ragged argument the author knows no parts.
            known = sample.arguments[name]["ragged"] or name
            if known not in str(error):
                raise Wrong("the error about %s, %s, names the input" % (what, way), "`%s`" % known, plain(error))

    def check(sample):
        dimensions, tried = Dimensions(sample), 0
        for name, arrays in sample.inputs.items():
            if sample.arguments[name]["shape"] is None or not arrays or name.endswith("_row_splits") and sample.arguments[name]["ragged"]:
                continue
            parts = dimensions.split(name, arrays[0].shape)
            shape = arrays[0].shape
            wrong = []
            if not any(key.startswith("..") for key, _ in parts):
                wrong += [shape + (1,)] + ([shape[:-1]] if shape else [])
            at = 0
            for key, length in parts:
                if key.isdigit():
                    wrong.append(shape[:at] + (length + 1,) + shape[at + 1:])
                at += len(length) if isinstance(length, tuple) else 1
            for one in wrong:
                if not arrays[0].size:
                    continue
                changed = [np.resize(arrays[0], one)] + arrays[1:]
                refused(sample, name, dict(sample.inputs, **{name: changed}))
                tried += 1
        # Dimensions of one name in two inputs.
        seen = set()
        for name, arrays in sample.inputs.items():
            for array in arrays[:1]:
                own = dict(dimensions.split(name, array.shape))
                shared = [key for key in own if key in seen and not key.isdigit()]
                seen.update(own)
                if shared and array.size:
                    other = dimensions.inputs(**{shared[0]: (7, 3) if shared[0].startswith("..") else own[shared[0]] + 1})
                    refused(sample, name, dict(sample.inputs, **{name: other[name]}))
                    tried += 1
        same_outputs(sample, "the sample call afterwards", sample.eager(), sample.eager())
        if not tried:
            raise Skip("the inputs may have any shape")

    each(place.firsts, check)


@case
def python_large_inputs(place):
    # Twice the rows show how outputs depend on rows; a large number of rows has to do the same.
    wanted = 10_000_000 if IS_WHOLE else 100_000

    def check(sample):
        dimensions, tried = Dimensions(sample), 0
        once = sample.eager()
        for key in dimensions.free():
            length = dimensions.sizes[key]
            rows = length[0] if isinstance(length, tuple) and length else length
            if not dimensions.at_start.get(key) or not rows or sample.stateful:
                continue

            def times(count):
                return dimensions.inputs(**{key: (rows * count,) + length[1:] if isinstance(length, tuple) else rows * count})

            twice, refusal = attempt("twice the sample call", lambda: sample.eager(times(2)))
            if refusal is not None:
                continue
            relations = [next((name for name, relation in RELATIONS.items() if relation(two, one, 2)), None) for two, one in zip(twice, once)]
            # At least as many elements as are wanted.
            count = -(-wanted // max(array.size for array in sample.flat()))
            large = sample.eager(times(count))
            tried += 1
            for at, (got, one, relation) in enumerate(zip(large, once, relations)):
                if relation and not RELATIONS[relation](got, one, count):
                    raise Wrong("output %d for %d times the rows of the sample" % (at, count), "%s: %s" % (relation, text_of(one)),
                                text_of(got), "for twice the rows it is %s" % text_of(twice[at]))
        if not tried:
            raise Skip("the number of elements is declared")

    each(place.firsts, check)


def is_repeated(got, one, count):
    return one.ndim > 0 and got.shape == (one.shape[0] * count,) + one.shape[1:] and (
        not one.size or np.array_equal(got.reshape((count,) + one.shape), np.broadcast_to(one, (count,) + one.shape), equal_nan=one.dtype.kind in "fc"))


def continues(got, one, count):
    """Row splits of repeated rows."""
    if one.dtype != np.int64 or one.ndim != 1 or not one.size or one[0] != 0 or got.shape != ((one.size - 1) * count + 1,):
        return False
    steps = np.diff(got).reshape(count, -1)
    return got[0] == 0 and bool(np.all(steps == np.diff(one)))


RELATIONS = {"row splits that continue": continues, "the same rows again": is_repeated, "the same": lambda got, one, count: is_same(got, one)}
