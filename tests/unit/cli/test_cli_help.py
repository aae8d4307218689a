"""What `--help` shows of a command."""

import itertools
import re

import pytest
from typer.testing import CliRunner

from mxnet_operator.cli import mxjob, mxnet_operator


@pytest.mark.parametrize(
    ("app", "command", "paragraph"),
    [
        (mxjob.app, ["convert"], "A comment above each changed field"),
        (mxjob.app, ["run"], "The log of worker-0 goes to stdout"),
        (mxnet_operator.app, ["run"], "It reconciles jobs of every kind whose CRD"),
    ],
)
def test_a_paragraph_is_wrapped_where_the_terminal_ends(app, command, paragraph):
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "72", "TERMINAL_WIDTH": "72"}).output
    text = next(each for each in re.split(r"\n\s*\n", shown) if paragraph in each)
    lines = [line.strip() for line in text.strip().splitlines()]
    assert len(lines) > 1
    for line, following in itertools.pairwise(lines):
        assert len(f"{line} {following.split()[0]}") > 70, f"{line!r} has room for more"
