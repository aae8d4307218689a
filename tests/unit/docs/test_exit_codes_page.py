"""docs/run.md has every exit code, and `mxjob run --help` those that a person may meet."""

import re
from pathlib import Path

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.verbs.run import EXAMPLES

PAGE = Path(__file__).parents[3] / "docs" / "run.md"


def test_the_page_lists_the_codes_that_the_program_has():
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)]
    assert listed == sorted(Exit)


def test_help_lists_them_too():
    named = {int(code) for code in re.findall(r"(?:\n| )(\d{1,3}) (?=[A-Za-z-])", EXAMPLES)}
    assert named >= set(Exit) - {Exit.INTERNAL, Exit.CLOSED_PIPE}
