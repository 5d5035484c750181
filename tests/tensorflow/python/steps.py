"""What the scripts share that take steps right after `import tensorflow`, one an argument, in their order."""
import sys


def check(condition, what):
    if not condition:
        sys.exit(what)


def same(actual, expected, what):
    check(actual == expected, "%s is %r, expected %r" % (what, actual, expected))


def fails(kind, text, function, *arguments, **attributes):
    try:
        function(*arguments, **attributes)
    except kind as error:
        check(text in str(error), "%r is not in %r" % (text, str(error)))
    else:
        check(False, "no error: %s" % text)


def take(*functions):
    """Takes the steps that the arguments name, such as `fork` or `load=SO`. Writes `ok STEP` after each; the first that
    fails ends the process.
    """
    steps = {function.__name__: function for function in functions}
    for argument in sys.argv[1:]:
        name, has_value, value = argument.partition("=")
        steps[name.replace("-", "_")](*[value] if has_value else [])
        print("ok " + argument, flush=True)
