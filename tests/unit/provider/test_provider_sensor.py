"""What a sensor does with each look at its job, in a worker and deferred: the same, whatever its options."""

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException, TaskDeferred
from kubernetes.client.exceptions import ApiException

from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobUnreachableError,
    MXNetPermissionError,
)
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

LOOKS: dict[str, Any] = {
    "failed": {
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "status": {"state": "Failed", "conditions": [{"type": "Failed", "status": "True", "message": "boom"}]},
    },
    "missing": None,
    "away": ConnectionError("refused"),
    "forbidden": ApiException(status=403),
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

    monkeypatch.setattr(hook, "get_job", get_job)
    monkeypatch.setattr(hook, "default_namespace", lambda: "default")
    sensor = MXNetJobSensor(task_id="s", job_name=job_name, timeout=0, poke_interval=0, **options)
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
    if seen == "away" and (deferrable or options.get("silent_fail")):
        expected = "waits"  # for api_outage_tolerance; a worker has waited for two minutes by then
    elif options.get("silent_fail") and seen != "forbidden":
        expected = "waits"
    elif options.get("soft_fail") or options.get("never_fail"):
        expected = "AirflowSkipException"
    else:
        expected = ERRORS[seen].__name__
    assert look(monkeypatch, LOOKS[seen], deferrable=deferrable, **options) == expected


def test_a_deferred_sensor_with_silent_fail_bears_an_outage_until_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MXNetJobSensor, "_look", lambda _: None)
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
    for options, expected in (({}, "MXNetJobError"), ({"never_fail": True}, "AirflowSkipException")):
        given = {"missing_ok": True, "deferrable": deferrable, **options}
        assert look(monkeypatch, None, job_name=job_name, **given) == expected
