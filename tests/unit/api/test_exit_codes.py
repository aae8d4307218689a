"""The table of exit codes in docs/semantics.md is the one by which restartPolicy ExitCode decides."""

import re
from pathlib import Path

from mxnet_operator.api.exit_codes import OUT_OF_MEMORY, is_retryable
from mxnet_operator.api.types import ExitCodes

PAGE = Path(__file__).parents[3] / "docs" / "semantics.md"


def documented() -> dict[int, bool]:
    """Each code that a row of the table names, and whether the row says that it is retryable."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("| exit code under `ExitCode` | |\n")
    rows = re.findall(r"^\| ((?:\d+(?:, )?)+) \| (permanent|retryable)", table, flags=re.MULTILINE)
    return {int(code): word == "retryable" for codes, word in rows for code in codes.split(", ")}


def test_a_code_is_tried_again_if_the_table_says_so() -> None:
    table = documented()
    assert len(table) == 11
    decided = {code: is_retryable(code, "Error", None) for code in range(1, 256)}
    assert decided == {code: table.get(code, False) for code in decided}


def test_what_was_killed_for_its_memory_is_not_tried_again() -> None:
    assert not is_retryable(137, OUT_OF_MEMORY, None)


def test_a_jobs_own_lists_go_before_the_table() -> None:
    own = ExitCodes(retryable=(1,), permanent=(137,))
    assert (is_retryable(1, "Error", own), is_retryable(137, "Error", own)) == (True, False)
