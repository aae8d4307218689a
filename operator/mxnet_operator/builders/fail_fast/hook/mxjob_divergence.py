"""Ends a worker with 65 as soon as it writes a line of an epoch with a figure that is NaN or infinite.

Read are the finished lines that Python code writes to sys.stdout and sys.stderr, as `print` and `logging` do.
"""

# mypy: ignore-errors
import os
import re
import sys

DIVERGED = 65  # EX_DATAERR of sysexits.h; not retried under restartPolicy ExitCode
FIGURE = re.compile(
    r"\b(?:epoch|checkpoint|iteration).*?(?:[\w./-]\s?[=:]|\b(?:acc|accuracy|loss|cost|err|error|r?mse|mae|ppl|perplexity|\w*entropy|nll))"
    r"\s?\[?[-+]?(nan|inf)(?![\w.])",
    re.I,
)
LONGEST = 1000  # characters of a line that are read


class WatchedStream(object):
    """The text stream as it was, whose lines are read; `flush` writes out what the script has printed."""

    def __init__(self, stream, flush):
        self.stream = stream
        self.flush_all = flush
        self.line = ""

    def write(self, text):
        written = self.stream.write(text)
        try:
            lines = re.split("[\r\n]", self.line + text)
        except (TypeError, UnicodeError):  # what Python 2 can't join
            lines = [""]
        self.line = lines.pop()[-LONGEST:]
        for line in lines:
            found = FIGURE.search(line[:LONGEST])
            # The best loss so far is infinite at first.
            if found and (found.group(1).lower() == "nan" or "best" not in line.lower()):
                self.end(line)
        return written

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def end(self, line):
        self.flush_all()
        text = "mxjob: the training has diverged: %s\n" % line.strip()
        os.write(2, text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
        os._exit(DIVERGED)


def watch(flush):
    sys.stdout = WatchedStream(sys.stdout, flush)
    sys.stderr = WatchedStream(sys.stderr, flush)
