"""What `--help` shows of a command."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mxnet_operator.cli import mxjob, mxnet_operator
from mxnet_operator.cli.app import whole


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


def test_the_list_of_commands_has_the_first_paragraph_of_each_ones_own_help():
    listed = typer.main.get_command(mxjob.app).commands
    own = whole(mxjob.app).commands
    for name, command in own.items():
        assert listed[name].help == command.help.split("\n\n")[0].strip(), name


def test_no_option_is_a_literal_which_typer_takes_only_from_0_19():
    modules = Path(mxjob.__file__).parent.rglob("*.py")
    assert [each.name for each in modules if re.search(r"\bLiteral\b", each.read_text("utf-8"))] == []


def test_the_list_of_commands_imports_none_of_them():
    code = "import sys, mxnet_operator.cli.mxjob as m; m.run_app(m.app, 'mxjob')"
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    assert "convert" in shown.stdout
    assert "mxnet_operator.cli.verbs" not in shown.stderr
    assert "aiohttp" not in shown.stderr
