"""Exit codes of `mxjob wait`, for each state of a job and each state that is waited for."""

import pytest
from apiserver_fixtures import running_server
from cli_outcomes import outcome as outcome_of
from controller_fixtures import JOBS, gang

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.times import duration
from mxnet_operator.cli.verbs.wait import Awaited, outcome


def test_a_timeout_is_written_with_its_unit_and_has_none_as_a_default():
    assert duration("1m") == duration("60") == duration(60.0) == 60


@pytest.mark.parametrize(
    ("state", "awaited", "code"),
    [
        ("Failed", "finished", Exit.OK),
        ("Failed", "Succeeded", Exit.FAILED),
        ("Failed", "Running", Exit.FAILED),
        ("Succeeded", "finished", Exit.OK),
        ("Succeeded", "Running", Exit.OK),
        ("Running", "Running", Exit.OK),
        ("Running", "finished", None),
    ],
)
def test_a_failed_job_is_an_error_unless_any_end_is_waited_for(state: str, awaited: Awaited, code: Exit | None) -> None:
    assert outcome(state, awaited) == code


async def test_a_job_that_is_being_deleted_is_not_running(tmp_path, monkeypatch):
    running = {"type": "Running", "status": "True", "reason": "r", "message": "m"}
    job = gang() | {"metadata": {"name": "digits", "finalizers": ["example.com/keep"]}}
    async with running_server(tmp_path) as server:
        created = (await server.api.post(JOBS, job)).ok()
        status = created | {"status": {"conditions": [running], "replicaStatuses": {}}}
        (await server.api.put(f"{JOBS}/digits/status", status)).ok()
        words = ("wait", "digits", "--for", "Running", "--kubeconfig", str(server.kubeconfig))
        assert await outcome_of(monkeypatch, *words) == (Exit.OK, "")
        (await server.api.delete(f"{JOBS}/digits")).ok()
        assert await outcome_of(monkeypatch, *words) == (Exit.FAILED, "")
