"""What triggers are stored as, which a triggerer of an earlier release makes them from while Airflow is upgraded."""

import importlib
import inspect
import json
import pkgutil
from types import SimpleNamespace
from typing import Any, Final

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.triggers.base import BaseTrigger

import mxnet_provider.triggers
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

CLUSTER: Final = {
    "kubernetes_conn_id": "kubernetes_default",
    "in_cluster": None,
    "config_file": None,
    "cluster_context": None,
}
RESOURCE: Final = {"api_version": "kubeflow.org/v1", "kind": "MXJob", "plural": "mxjobs"}
RELEASE_0_1_0: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "mxnet_provider.triggers.mxnet_job.MXNetJobTrigger": (
        {"name": "j", "namespace": "default", "uid": "u"},
        {
            **RESOURCE,
            **CLUSTER,
            "poll_interval": 10.0,
            "deadline": None,
            "startup_timeout": 600.0,
            "api_outage_tolerance": 600.0,
            "get_logs": True,
            "log_replicas": ["worker-0"],
            "log_cursors": {},
            "result_of": "worker-0",
            "on_kill_action": "delete",
            "propagation_policy": "Foreground",
            "stats_tags": {},
            "deferred_at": None,
            "holder": None,
            "lease": None,
        },
    ),
    "mxnet_provider.triggers.mxnet_job_state.MXNetJobStateTrigger": (
        {"name": "j", "namespace": "default", "target_states": ["Succeeded"]},
        {
            **RESOURCE,
            **CLUSTER,
            "fail_states": [],
            "missing_ok": False,
            "poll_interval": 60.0,
            "api_outage_tolerance": 600.0,
        },
    ),
}
"""By trigger: the arguments that release 0.1.0 asks for, and the defaults of the others."""


def triggers() -> dict[str, type[BaseTrigger]]:
    """The provider's triggers, by the path that Airflow stores."""
    package = mxnet_provider.triggers
    names = [each.name for each in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    made = [each for module in modules for each in vars(module).values() if inspect.isclass(each)]
    own = [each for each in made if issubclass(each, BaseTrigger) and each.__module__.startswith(package.__name__)]
    return {f"{each.__module__}.{each.__name__}": each for each in own if not inspect.isabstract(each)}


def test_every_trigger_is_looked_at() -> None:
    assert set(triggers()) == set(RELEASE_0_1_0)


@pytest.mark.parametrize("path", RELEASE_0_1_0)
def test_a_trigger_without_news_is_made_by_a_triggerer_of_0_1_0(path: str) -> None:
    required, defaults = RELEASE_0_1_0[path]
    stored_path, arguments = triggers()[path](**required).serialize()
    assert stored_path == path
    assert set(required) <= set(arguments)
    assert set(arguments) - set(required) - set(defaults) == set()


@pytest.mark.parametrize("path", RELEASE_0_1_0)
def test_what_is_left_out_means_the_same_in_0_1_0(path: str) -> None:
    required, defaults = RELEASE_0_1_0[path]
    made: Any = triggers()[path]
    assert {name: getattr(made(**required), name) for name in defaults} == defaults
    for name in required:
        with pytest.raises(TypeError, match=name):
            made(**{key: value for key, value in required.items() if key != name})


@pytest.mark.parametrize("path", RELEASE_0_1_0)
def test_what_differs_is_stored_and_comes_back(path: str) -> None:
    required, defaults = RELEASE_0_1_0[path]
    other: dict[type, Any] = {float: 7.5, str: "other", list: ["other"], dict: {"a": ["b"]}, type(None): "other"}
    given = {name: (not value if isinstance(value, bool) else other[type(value)]) for name, value in defaults.items()}
    _, arguments = triggers()[path](**required, **given).serialize()
    assert arguments == {**required, **given}
    assert triggers()[path](**json.loads(json.dumps(arguments))).serialize() == (path, arguments)


def test_a_task_s_first_try_and_a_sensor_defer_to_what_0_1_0_has() -> None:
    """What a later release adds goes there only where a task makes use of it."""
    ref = JobRef(name="j", namespace="default", uid="u")
    first_try: Any = SimpleNamespace(ref=ref, token="1.a", lease=None, reattached_at=None, hand_over=lambda: None)
    with pytest.raises(TaskDeferred) as train:
        operator = MXNetJobOperator(task_id="train", image="i", deferrable=True)
        operator._defer(first_try, operator._trigger(first_try))
    sensor = MXNetJobSensor(task_id="wait", job_name="j", namespace="default", deferrable=True)
    vars(sensor)["hook"] = SimpleNamespace(
        get_job=lambda _: {"metadata": {"name": "j", "namespace": "default", "uid": "u"}, "status": {}}
    )
    with pytest.raises(TaskDeferred) as wait:
        sensor.execute.__wrapped__(sensor, {})  # type: ignore[attr-defined]
    for deferred in (train, wait):
        path, arguments = deferred.value.trigger.serialize()
        required, defaults = RELEASE_0_1_0[path]
        assert set(arguments) - set(required) - set(defaults) == set()
