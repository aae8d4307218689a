"""What a sensor does with each look at its job, in a worker and deferred: the same, whatever its options."""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralError,
    TaskDeferralTimeout,
    TaskDeferred,
)

from mxnet_operator.kube.errors import ApiError
from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobUnreachableError,
    MXNetPermissionError,
)
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job.sensor_state import settled
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

LOOKS: dict[str, Any] = {
    "failed": {
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "status": {"state": "Failed", "conditions": [{"type": "Failed", "status": "True", "message": "boom"}]},
    },
    "missing": None,
    "away": ConnectionError("refused"),
    "forbidden": ApiError(403, "Forbidden", "no"),
}
ERRORS = {
    "failed": MXNetJobFailedError,
    "missing": MXNetJobDeletedError,
    "away": MXNetJobUnreachableError,
    "forbidden": MXNetPermissionError,
}


def look(monkeypatch: pytest.MonkeyPatch, found: Any, *, job_name: Any = "j", **options: Any) -> str:
    """What comes of a sensor's first look: the name of an error, or `waits`."""
    hook = MXNetJobHook()

    def get_job(_ref: Any) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    class Jobs:
        async def get_job(self, ref: Any) -> Any:
            return get_job(ref)

    monkeypatch.setattr(hook, "get_job", get_job)
    monkeypatch.setattr(hook, "job_client", lambda: contextlib.nullcontext(Jobs()))
    monkeypatch.setattr(hook, "default_namespace", lambda: "default")
    sensor = MXNetJobSensor(task_id="s", job_name=job_name, timeout=0.01, poke_interval=0, **options)
    monkeypatch.setattr(MXNetJobSensor, "hook", hook)
    try:
        sensor.execute.__wrapped__(sensor, {})
    except (TaskDeferred, AirflowSensorTimeout) as waits:
        _look_is_the_triggers(waits, sensor)
        return "waits"
    except (AirflowSkipException, MXNetJobError, MXNetPermissionError) as e:
        return type(e).__name__
    return "succeeds"


def _look_is_the_triggers(waits: Exception, sensor: MXNetJobSensor) -> None:
    """A deferred sensor with silent_fail has a trigger that bears what the sensor does."""
    if isinstance(waits, TaskDeferred) and sensor.silent_fail:
        assert (waits.trigger.fail_states, waits.trigger.missing_ok) == ([], True)


@pytest.mark.parametrize("deferrable", [False, True], ids=["waiting", "deferred"])
@pytest.mark.parametrize("seen", LOOKS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"soft_fail": True},
        {"never_fail": True},
        {"silent_fail": True},
    ],
    ids=str,
)
def test_what_comes_of_a_look_is_the_options_to_say_and_not_who_looks(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], seen: str, deferrable: bool
) -> None:
    if seen == "away" and (deferrable or not options or options.get("silent_fail")):
        expected = "waits"  # for api_outage_tolerance
    elif options.get("silent_fail") and seen != "forbidden":
        expected = "waits"
    elif options.get("soft_fail") or options.get("never_fail"):
        expected = "AirflowSkipException"
    else:
        expected = ERRORS[seen].__name__
    assert look(monkeypatch, LOOKS[seen], deferrable=deferrable, **options) == expected


def test_a_sensor_without_time_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    succeeded = {"metadata": LOOKS["failed"]["metadata"], "status": {"state": "Succeeded"}}
    monkeypatch.setattr(MXNetJobHook, "get_job", lambda *_: succeeded)
    monkeypatch.setattr(MXNetJobSensor, "_wait", lambda *_: pytest.fail("it has no time to wait"))
    sensor = MXNetJobSensor(task_id="s", job_name="j", namespace="default", timeout=0)
    assert sensor.execute.__wrapped__(sensor, {}) is None


def test_a_deferred_sensor_with_silent_fail_bears_an_outage_until_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MXNetJobSensor, "_read", lambda _: None)
    for silent, tolerance in ((False, 600.0), (True, 5000.0)):  # by a cluster policy, as a timedelta
        sensor = MXNetJobSensor(
            task_id="s", job_name="j", namespace="default", deferrable=True, timeout=5000, silent_fail=silent
        )
        sensor.api_outage_tolerance = timedelta(minutes=10)
        with pytest.raises(TaskDeferred) as deferred:
            sensor.execute.__wrapped__(sensor, {})
        assert deferred.value.trigger.api_outage_tolerance == tolerance


@pytest.mark.parametrize("deferrable", [False, True], ids=["waiting", "deferred"])
@pytest.mark.parametrize("job_name", ["", None, "None"])
def test_a_name_that_a_template_left_empty_is_neither_looked_up_nor_waited_for(
    monkeypatch: pytest.MonkeyPatch, job_name: Any, deferrable: bool
) -> None:
    of_options = (
        ({}, "MXNetJobError"),
        ({"never_fail": True}, "AirflowSkipException"),
        ({"silent_fail": True}, "MXNetJobError"),
    )
    for options, expected in of_options:
        given = {"missing_ok": True, "deferrable": deferrable, **options}
        assert look(monkeypatch, None, job_name=job_name, **given) == expected


def resumed_by_2_11(sensor: Any, *resumption: Any) -> Any:
    """Resume a sensor as Airflow 2.11.2 does: `BaseSensorOperator.resume_execution` of that release."""
    try:
        return BaseOperator.resume_execution(sensor, *resumption)
    except TaskDeferralTimeout as e:  # there is no such error yet
        if sensor.soft_fail:
            raise AirflowSkipException("Trigger/execution timeout") from e
        raise TaskDeferralError("Trigger/execution timeout") from e
    except (AirflowException, TaskDeferralError) as e:
        if sensor.soft_fail:
            raise AirflowSkipException(str(e)) from e
        raise


def resumed_by_3_0(sensor: Any, *resumption: Any) -> Any:
    """Resume a sensor as Airflow 3.0.6 does, whose timeouts are no case for `soft_fail`."""
    try:
        return BaseOperator.resume_execution(sensor, *resumption)
    except TaskDeferralTimeout as e:
        raise AirflowSensorTimeout(*e.args) from e
    except (AirflowException, TaskDeferralError) as e:
        if sensor.soft_fail:
            raise AirflowSkipException(str(e)) from e
        raise


@pytest.mark.parametrize("release", [None, resumed_by_3_0, resumed_by_2_11], ids=["this", "3.0.6", "2.11.2"])
@pytest.mark.parametrize(
    ("error", "failure"),
    [("Trigger timeout", AirflowSensorTimeout), ("Trigger failure", TaskDeferralError)],
    ids=["out of time", "a trigger that failed"],
)
def test_a_deferral_that_ended_without_an_event_fails_or_skips_alike_in_every_airflow(
    monkeypatch: pytest.MonkeyPatch, release: Callable[..., Any] | None, error: str, failure: type[Exception]
) -> None:
    if release is not None:
        monkeypatch.setattr(BaseSensorOperator, "resume_execution", release)
    monkeypatch.setattr(airflow_versions, "IS_AIRFLOW_2", release is resumed_by_2_11)

    def resume(**options: Any) -> None:
        sensor = MXNetJobSensor(task_id="s", job_name="j", namespace="default", deferrable=True, **options)
        sensor.resume_execution("__fail__", {"error": error}, {})  # type: ignore[arg-type]

    with pytest.raises(failure):
        resume()
    for option in ("soft_fail", "never_fail"):
        with pytest.raises(AirflowSkipException):
            resume(**{option: True})


@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
def test_a_sensor_that_times_out_in_a_worker_is_skipped_by_either_option(
    monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    running = {"metadata": {"name": "j", "namespace": "default", "uid": "u"}, "status": {"state": "Running"}}
    assert look(monkeypatch, running, deferrable=False) == "waits"
    assert look(monkeypatch, running, deferrable=False, **{option: True}) == "AirflowSkipException"


@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
def test_an_event_that_this_release_does_not_know_is_a_failure_like_others(option: str) -> None:
    with pytest.raises(MXNetJobError, match="does not know"):
        MXNetJobSensor(task_id="s", job_name="j").execute_complete({}, {"status": "new"})  # type: ignore[arg-type]
    lenient = MXNetJobSensor(task_id="s", job_name="j", **{option: True})
    with pytest.raises(AirflowSkipException, match="does not know"):
        lenient.execute_complete({}, {"status": "new"})  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [None, -5, float("inf"), "600"])
def test_a_tolerance_that_is_none_is_told_where_the_dag_is_parsed_and_where_a_policy_sets_it(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="api_outage_tolerance must be"):
        MXNetJobSensor(task_id="s", job_name="j", api_outage_tolerance=tolerance)
    by_policy = MXNetJobSensor(task_id="s", job_name="j", namespace="default", deferrable=True)
    by_policy.api_outage_tolerance = tolerance
    with pytest.raises(ValueError, match="api_outage_tolerance must be"):
        by_policy.execute.__wrapped__(by_policy, {})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("state", "targets", "fails", "status"),
    [
        ("Succeeded", ["Running"], ["Failed"], "reached"),
        ("Succeeded", ["Created"], ["Failed"], "reached"),
        ("Running", ["Created"], ["Failed"], "reached"),
        ("Created", ["Running"], ["Failed"], None),
        ("Succeeded", ["Suspended"], ["Failed"], None),
        ("Succeeded", ["Running"], ["Succeeded", "Failed"], "failed"),
        ("Failed", ["Running"], ["Failed"], "failed"),
    ],
)
def test_a_job_that_was_in_a_state_between_two_looks_has_reached_it(
    state: str, targets: list[str], fails: list[str], status: str | None
) -> None:
    job = {"metadata": {"uid": "u"}, "status": {"state": state}}
    found = settled(job, target_states=targets, fail_states=fails, missing_ok=False)
    assert (found and found.status) == status
