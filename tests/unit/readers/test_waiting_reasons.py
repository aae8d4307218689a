"""What a job waits for, read from its conditions."""

import pytest
from builders import make_mxjob
from waiting_jobs import WORDS, waiting_job

from mxnet_operator.api import conditions
from mxnet_operator.readers.waiting import STATES, WAITING, waiting_reasons

NO_TYPES = ("REASON_", "_")


def test_each_condition_tells_of_a_wait_or_only_of_a_state() -> None:
    """A new one must be put into one of the two."""
    all_types = {
        value
        for name, value in vars(conditions).items()
        if isinstance(value, str) and name.isupper() and not name.startswith(NO_TYPES)
    }
    assert len(all_types) >= 13
    assert set(WAITING) | STATES == all_types
    assert not set(WAITING) & STATES


@pytest.mark.parametrize("condition_type", WAITING)
def test_a_wait_is_told_in_the_first_line_of_its_condition(condition_type: str) -> None:
    (reason,) = waiting_reasons(waiting_job(condition_type))
    assert reason.startswith(f"{WORDS} {condition_type}")
    assert "log line" not in reason


@pytest.mark.parametrize("condition_type", sorted(set(WAITING) - {"Suspended", "Restarting"}))
@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_job_that_is_over_waits_for_nothing(condition_type: str, end: str) -> None:
    job = waiting_job(condition_type)
    job["status"]["conditions"].append({"type": end, "status": "True", "message": "over"})
    assert waiting_reasons(job) == ()


def test_what_is_over_is_not_told() -> None:
    for condition_type, status in WAITING.items():
        job = waiting_job(condition_type)
        job["status"]["conditions"][1]["status"] = "False" if status == "True" else "True"
        assert waiting_reasons(job) == ()


def test_a_suspended_job_waits_for_its_queue_or_its_user_and_nothing_else() -> None:
    job = waiting_job("Suspended")
    job["spec"]["runPolicy"] = {"suspend": True}
    job["status"]["conditions"].append(waiting_job("PodsScheduled")["status"]["conditions"][1])
    assert waiting_reasons(job) == (f"{WORDS} Suspended Its spec.runPolicy.suspend is true.",)
    job["spec"]["runPolicy"] = {}
    job["status"]["conditions"].append(waiting_job("Admitted")["status"]["conditions"][1])
    assert waiting_reasons(job) == (f"{WORDS} Admitted",)


def test_a_job_that_nobody_has_looked_at_yet_says_nothing() -> None:
    assert waiting_reasons(make_mxjob().gang().manifest()) == ()
    assert waiting_reasons({"metadata": {}, "status": {"conditions": [{"type": None, "status": None}]}}) == ()
