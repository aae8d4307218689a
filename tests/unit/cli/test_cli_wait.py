"""Exit codes of `mxjob wait`, for each state of a job and each state that is waited for."""

import pytest

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.verbs.wait import Awaited, outcome


@pytest.mark.parametrize(
    ("state", "awaited", "code"),
    [
        ("Failed", Awaited.FINISHED, Exit.OK),
        ("Failed", Awaited.SUCCEEDED, Exit.FAILED),
        ("Failed", Awaited.RUNNING, Exit.FAILED),
        ("Succeeded", Awaited.FINISHED, Exit.OK),
        ("Succeeded", Awaited.RUNNING, Exit.OK),
        ("Running", Awaited.RUNNING, Exit.OK),
        ("Running", Awaited.FINISHED, None),
    ],
)
def test_a_failed_job_is_an_error_unless_any_end_is_waited_for(state: str, awaited: Awaited, code: Exit | None) -> None:
    assert outcome(state, awaited) == code
