"""Whatever a job waits for is shown in a task's log, and why it had not started where its time is over."""

from typing import Any

import pytest
from waiting_jobs import WORDS, waiting_job

from mxnet_operator.api.waiting import WAITING
from mxnet_provider.job_ref import JobRef
from mxnet_provider.state_log import StateLog
from mxnet_provider.verdict import verdict

REF = JobRef(name="digits", namespace="default", uid="u")


class Log:
    """What a task's logger was told, with its level."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def info(self, text: str, *values: Any) -> None:
        self.lines.append(("info", text % values))

    def warning(self, text: str, *values: Any) -> None:
        self.lines.append(("warning", text % values))


@pytest.mark.parametrize("condition_type", WAITING)
def test_every_wait_is_logged_once(condition_type: str) -> None:
    log, told = Log(), StateLog(REF)
    for _ in range(3):
        told.look(waiting_job(condition_type), log)  # type: ignore[arg-type]
    warnings = [text for level, text in log.lines if level == "warning"]
    assert len(warnings) == 1
    assert f" waits: {WORDS} {condition_type}" in warnings[0]
    assert REF.title in warnings[0]


@pytest.mark.parametrize("condition_type", sorted(set(WAITING) - {"Suspended", "Restarting"}))
def test_a_start_that_takes_too_long_has_the_reason(condition_type: str) -> None:
    job = waiting_job(condition_type)
    found = verdict(job, "u", now=1e10, startup_timeout=60)
    assert found is not None
    assert found.status == "startup_timeout"
    assert f"{WORDS} {condition_type}" in found.message


def test_what_a_job_says_of_its_success_is_logged() -> None:
    job = waiting_job("SchedulerLeft")
    job["status"]["conditions"].append({"type": "Succeeded", "status": "True", "message": "MXJob digits is done. Why?"})
    log = Log()
    StateLog(REF).look(job, log)  # type: ignore[arg-type]
    assert [level for level, _ in log.lines] == ["info"]
    assert log.lines[0][1].endswith("Succeeded: MXJob digits is done. Why?")
