"""Durations of any length that the API server takes: what is past the calendar's end never comes."""

from datetime import timedelta

import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.readers.durations import after

LONG = [10**9, 999_999_999_999, 10**12, 2**53, 2**63 - 1]


@pytest.mark.parametrize("seconds", LONG)
@pytest.mark.parametrize("state", ["Created", "Running", "Restarting"])
def test_a_deadline_of_any_length_is_only_never_reached(seconds: int, state: str) -> None:
    job = make_mxjob().worker(2).run_policy(activeDeadlineSeconds=seconds).condition(state).obj()
    pods = (make_pod(job, "Worker", index).running() for index in (0, 1))
    answer = plan(job, observe(job, *pods), NOW)
    assert answer.status is None or answer.status.state == "Running"
    assert answer.requeue_after is None or answer.requeue_after > timedelta(0)


@pytest.mark.parametrize("policy", ["activeDeadlineSeconds", "progressDeadlineSeconds", "ttlSecondsAfterFinished"])
@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "2026-11-21T11:00:00Z", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("condition", ["Created", "Restarting", "Failed"])
def test_no_time_in_a_status_is_too_early_or_too_late(policy: str, since: str, condition: str) -> None:
    builder = make_mxjob().worker(2).run_policy(**{policy: 2**31 - 1}).condition(condition)
    manifest = builder.manifest()
    for one in manifest["status"]["conditions"]:
        one["lastUpdateTime"] = one["lastTransitionTime"] = since
    builder.status(**{**manifest["status"], "startTime": since, "completionTime": since, "restarts": 1})
    job = builder.obj()
    plan(job, observe(job, make_pod(job, "Worker").set(attempt=1)), NOW)


@pytest.mark.parametrize("seconds", [0, 1, 0.5, *LONG])
def test_a_moment_later_is_never_before_and_a_moment_earlier_never_after(seconds: float) -> None:
    assert after(NOW, -seconds) <= NOW <= after(NOW, seconds)
    assert after(NOW, min(seconds, 10**8)) == NOW + timedelta(seconds=min(seconds, 10**8))
