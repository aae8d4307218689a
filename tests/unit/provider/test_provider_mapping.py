"""Every option of the operators can be mapped with `.partial().expand()`, one task for each value."""

import inspect
import json
from datetime import timedelta

import descriptions
import pytest
from airflow.sdk import DAG, task
from airflow.serialization.serialized_objects import DagSerialization

from mxnet_operator.description.description import FIELDS
from mxnet_provider.callbacks import MXNetJobCallback
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

MANIFEST = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "spec": {"mxReplicaSpecs": {}}}
VALUES = {
    **{field: value for given, _ in descriptions.MEANT.values() for field, value in given.items()},
    "image": "mxjob/digits:1.0",
    "command": ["python", "train.py"],
    "args": ["--seed", "1"],
    "schedulers": 1,
    "queue_name": "gpus",
    "manifest": MANIFEST,
    "name": "digits",
    "namespace": "ml",
    "allow_unknown_fields": True,
    "kubernetes_conn_id": "training",
    "in_cluster": True,
    "config_file": "/etc/kubeconfig",
    "cluster_context": "gpus",
    "wait_for_completion": False,
    "deferrable": True,
    "durable": False,
    "reuse_succeeded_on_retry": False,
    "poll_interval": timedelta(seconds=20),
    "startup_timeout": None,
    "api_outage_tolerance": 60,
    "get_logs": False,
    "log_replicas": ["worker-1"],
    "log_tail_on_failure": 10,
    "log_events_on_failure": False,
    "on_finish_action": "delete",
    "on_kill_action": "suspend",
    "propagation_policy": "Background",
    "termination_grace_period": 5,
    "skip_on_exit_code": [99],
    "callbacks": MXNetJobCallback,
    "result_from": None,
    "lease": 120,
    "model_uri": "s3://models/resnet",
    "target": "llvm",
    "trials": 10,
    "tuner": "xgb",
    "database_uri": "s3://tuning",
    "warm_start": False,
    "early_stopping": 3,
    "server_key": "gpu",
    "job_name": "digits-1",
    "job_uid": "a-uid",
    "missing_ok": False,
    "fail_states": ["Failed"],
    "target_states": ["Running"],
}
REQUIRED = {
    MXNetJobOperator: {},
    MXNetTuneOperator: {},
    MXNetJobDeleteOperator: {"job_name": "digits", "job_uid": "a-uid"},
    MXNetJobSensor: {"job_name": "digits"},
}


def own_parameters(cls):
    """The public parameters that our classes have, in the order of the reference."""
    found = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("mxnet_provider") and "__init__" in vars(each):
            found |= inspect.signature(vars(each)["__init__"]).parameters
    return [name for name, each in found.items() if name != "self" and each.kind is not each.VAR_KEYWORD]


MAPPED = [(cls, name) for cls in REQUIRED for name in own_parameters(cls)]


def test_the_table_has_a_value_for_every_parameter():
    assert [name for name in FIELDS if name not in VALUES] == []
    assert [name for _, name in MAPPED if name not in VALUES] == []


@pytest.mark.parametrize(("cls", "name"), MAPPED, ids=lambda value: getattr(value, "__name__", value))
def test_an_option_that_is_mapped_is_that_option_of_each_task(cls, name):
    value = VALUES[name]
    shared = {key: each for key, each in REQUIRED[cls].items() if key != name}
    with DAG("d", schedule=None) as dag:

        @task
        def values():
            """A task that says what to map over: nothing is run here."""

        literal = cls.partial(task_id="literal", **shared).expand(**{name: [value, value]})
        cls.partial(task_id="dynamic", **shared).expand(**{name: values()})
    json.dumps(DagSerialization.serialize_dag(dag))
    alone = cls(task_id="alone", **shared, **{name: value})
    one = literal.unmap({name: value})
    assert getattr(one, name) == getattr(alone, name)
    assert {key: getattr(one, key) for key in cls.template_fields} == {
        key: getattr(alone, key) for key in cls.template_fields
    }
