"""What the demos of the examples say: numbered steps while they run, a table at the end, and what was wrong."""
import contextlib
import json
import subprocess
import sys
import time

# A hang must not be forever.
LIMIT = 900


class Wrong(Exception):
    """A result that is not what it must be."""


def expect(condition, text):
    if not condition:
        raise Wrong(text)


def last_lines(file):
    """The end of what another program wrote into an open file."""
    file.seek(0)
    return "".join("    | " + line for line in file.readlines()[-25:])


def run(program, environment, messages, what):
    """The last line of JSON of a program that must succeed."""
    try:
        finished = subprocess.run(program, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=messages, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        raise Wrong("%s has not ended after %d s\n%s" % (what, LIMIT, last_lines(messages))) from error
    except OSError as error:
        raise Wrong("cannot run %s: %s" % (program[0], error)) from error
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    if finished.returncode != 0 or not lines:
        raise Wrong("%s ended with status %d\n%s" % (what, finished.returncode, last_lines(messages)))
    return json.loads(lines[-1])


class Report:
    """The steps of a demo; `columns` are those of the table between the result and the time."""

    def __init__(self, *columns):
        self.columns = ("step", "result") + columns + ("time",)
        self.rows = []

    @contextlib.contextmanager
    def step(self, name, title):
        """A step, with a function that takes its result and what belongs into the further columns."""
        print("\n[%d] %s" % (len(self.rows) + 1, title), flush=True)
        started = time.monotonic()
        row = dict(name=name, title=title, result="", cells=())
        self.rows.append(row)

        def result(text, *cells):
            row.update(result=text, cells=cells)

        yield result
        row["seconds"] = time.monotonic() - started
        if row["result"]:
            self.note(row["result"])

    def note(self, text):
        print("    " + text, flush=True)

    def table(self, *total):
        """Prints the table; `total` are the last line's further columns."""
        further = len(self.columns) - 3
        seconds = sum(row["seconds"] for row in self.rows)
        lines = [self.columns]
        for name, result, cells, time_taken in [
            *((row["name"], row["result"], row["cells"], row["seconds"]) for row in self.rows),
            ("together", "", total, seconds),
        ]:
            lines.append((name, result) + (cells or ("",) * further) + ("%.1f s" % time_taken,))
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))]
        rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        print()
        for number, line in enumerate(lines):
            if number in (0, 1, len(lines) - 1):
                print(rule)
            shown = [text.ljust(width) if column < 2 else text.rjust(width)
                     for column, (text, width) in enumerate(zip(line, widths))]
            print("| " + " | ".join(shown) + " |")
        print(rule)

    def run(self, body, *errors):
        """Runs the demo. What is wrong, or one of `errors`, ends the program with the step in which it came up."""
        try:
            body()
        except (Wrong, *errors) as error:
            step = "step %d, %s" % (len(self.rows), self.rows[-1]["title"]) if self.rows else "the start"
            kind = "" if isinstance(error, Wrong) else type(error).__name__ + ": "
            sys.exit("\nFAILED in %s: %s%s" % (step, kind, error))
        except KeyboardInterrupt:
            sys.exit("\nstopped")
