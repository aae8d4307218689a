"""What is said besides the job, refused where the DAG is parsed."""

import inspect
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from airflow.providers.cncf.kubernetes.secret import Secret

from mxnet_operator.api import names
from mxnet_operator.description import Role
from mxnet_operator.readers.pods import label_of
from mxnet_provider.callbacks import MXNetJobCallback
from mxnet_provider.cluster import connection_of
from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger


def training(**given):
    return MXNetJobOperator(task_id="train", image="a", **given)


def sensor(**given):
    return MXNetJobSensor(task_id="wait", job_name="train", **given)


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (training, {"poll_interval": 0}, "poll_interval must be"),
        (training, {"poll_interval": None}, "poll_interval must be"),
        (training, {"api_outage_tolerance": None}, "api_outage_tolerance must be"),
        (training, {"startup_timeout": -1}, "startup_timeout must be"),
        (training, {"lease": float("inf")}, "write None for a job without a lease"),
        (training, {"api_outage_tolerance": float("inf")}, "write timedelta(days=365)"),
        (training, {"on_finish_action": "burn"}, "one of keep, delete, delete_succeeded"),
        (training, {"on_kill_action": "burn"}, "one of delete, keep, suspend"),
        (training, {"propagation_policy": "Orphan"}, "one of Foreground, Background"),
        (training, {"log_replicas": ["wroker-0"]}, "log_replicas: there is no 'wroker-0': did you mean worker-0?"),
        (training, {"log_replicas": ["worker"]}, "log_replicas: there is no 'worker': did you mean worker-0?"),
        (training, {"log_replicas": ["server-0", "sever-12"]}, "there is no 'sever-12': did you mean server-12?"),
        (training, {"log_replicas": "worker-0"}, "log_replicas must be a list"),
        (sensor, {"target_states": ["Suceeded"]}, "target_states: there is no 'Suceeded': did you mean Succeeded?"),
        (sensor, {"fail_states": ["failed"]}, "fail_states: there is no 'failed': did you mean Failed?"),
        (sensor, {"target_states": "Succeeded"}, "target_states must be a list"),
        *((training, {"skip_on_exit_code": c}, "an exit code from 1") for c in ("99", ["99"], True, [True], 0, 256)),
        (training, {"result_from": "configmap"}, "result_from must be 'termination_message' or None, not 'configmap'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_when_the_dag_is_parsed(made, given, words):
    """Also what could fail only after the training."""
    with pytest.raises(ValueError, match=re.escape(words)):
        made(**given)


def test_replicas_of_every_type_and_spelling_are_those_of_the_pods():
    pods = [
        {"metadata": {"labels": {names.LABEL_REPLICA_TYPE: kind, names.LABEL_REPLICA_INDEX: index}}}
        for kind, index in (("worker", "11"), ("scheduler", "0"), ("tunerserver", "2"), ("worker", "0"))
    ]
    given = ["Worker-11", "scheduler-0", "TunerServer-02", "worker-000"]
    operator = MXNetJobOperator(task_id="train", image="a", log_replicas=given)
    assert [*operator._log_options.log_replicas] == [label_of(pod) for pod in pods]


def test_times_may_be_timedeltas():
    operator = MXNetJobOperator(
        task_id="train",
        image="a",
        poll_interval=timedelta(seconds=5),
        startup_timeout=timedelta(minutes=10),
        api_outage_tolerance=timedelta(hours=1),
        termination_grace_period=timedelta(seconds=1.5),
    )
    waiting, ending = operator._wait_options, operator._end_options
    assert (waiting.poll_interval, waiting.startup_timeout, waiting.api_outage_tolerance) == (5, 600, 3600)
    assert ending.termination_grace_period == 2


@pytest.mark.parametrize("operator", [MXNetJobOperator, MXNetTuneOperator, MXNetJobDeleteOperator, MXNetJobSensor])
def test_every_option_is_an_attribute_that_a_cluster_policy_can_see(operator):
    options = {
        name
        for each in operator.__mro__
        if each.__module__.startswith("mxnet_provider.") and "__init__" in vars(each)
        for name, parameter in inspect.signature(each.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    given = {name: "digits" for name in ("job_name", "job_uid") if name in options} or {"image": "a"}
    made = operator(task_id="train", **given)
    assert len(options) > 5
    assert {name for name in options if not hasattr(made, name)} == set()


class Bill(MXNetJobCallback):
    """A callback that notes the name of the job."""

    named: ClassVar[list] = []

    @classmethod
    def on_manifest_created(cls, *, manifest, **kwargs):
        cls.named.append(manifest["metadata"]["name"])


CONTEXT = {"ti": SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, max_tries=1, id="i")}
GIVEN = [
    ("poll_interval", timedelta(seconds=30)),
    ("startup_timeout", timedelta(hours=1)),
    ("api_outage_tolerance", timedelta(hours=1)),
    ("termination_grace_period", timedelta(seconds=1.5)),
    ("lease", timedelta(hours=2)),
    ("lease", None),
    ("log_replicas", None),
    ("log_replicas", ["Worker-0"]),
    ("callbacks", Bill),
    ("callbacks", [Bill]),
    ("config_file", Path("/etc/kubeconfig")),
    ("cluster_context", "prod"),
    ("in_cluster", True),
    ("kubernetes_conn_id", "prod"),
    ("on_kill_action", "suspend"),
]


@pytest.mark.parametrize(("option", "value"), GIVEN, ids=str)
def test_a_cluster_policy_may_set_what_a_dag_s_author_may(option, value):
    """A policy sets attributes, of which the constructor never hears."""

    def meant(operator):
        Bill.named.clear()
        manifest = operator.manifest_to_create(CONTEXT, "0" * 32)
        options = operator._wait_options, operator._log_options, operator._end_options, operator._lease(CONTEXT)
        return manifest, *options, connection_of(operator), list(Bill.named)

    given = {"task_id": "t", "image": "a", "namespace": "default", "execution_timeout": timedelta(hours=1)}
    by_policy = MXNetJobOperator(**given)
    setattr(by_policy, option, value)
    assert meant(by_policy) == meant(MXNetJobOperator(**given, **{option: value}))


TIMES = sorted({name for name, value in GIVEN if isinstance(value, timedelta)})
WITHOUT_END = [(name, float(value)) for name in TIMES for value in ("inf", "-inf", "nan")]


@pytest.mark.parametrize(
    ("option", "value"), [each for each in WITHOUT_END if each != ("startup_timeout", float("inf"))]
)
def test_a_time_without_end_is_refused_wherever_it_is_set(option, value):
    with pytest.raises(ValueError, match=f"{option} must be a"):
        MXNetJobOperator(task_id="t", image="a", **{option: value})
    by_policy = MXNetJobOperator(task_id="t", image="a", namespace="default")
    setattr(by_policy, option, value)
    with pytest.raises(ValueError, match=f"{option} must be a"):
        _ = by_policy._wait_options, by_policy._end_options


def test_an_infinite_startup_timeout_is_none_as_it_was():
    operator = MXNetJobOperator(task_id="t", image="a", startup_timeout=float("inf"))
    assert operator._wait_options.startup_timeout is None
    by_policy = MXNetJobOperator(task_id="t", image="a")
    by_policy.startup_timeout = float("inf")
    assert by_policy._wait_options.startup_timeout is None


def test_a_kubeconfig_s_path_reaches_triggers_as_text():
    """Airflow's serialisation takes no Path, and a task fails when its job is there."""
    file = Path("/etc/kubeconfig")
    trigger = MXNetJobTrigger(name="j", namespace="default", uid="u", config_file=file)
    assert trigger.serialize()[1]["config_file"] == "/etc/kubeconfig"
    sensor = MXNetJobSensor(task_id="s", job_name="j", config_file=file)
    assert connection_of(sensor)["config_file"] == "/etc/kubeconfig"


def test_templates_are_looked_at_when_they_are_filled_in():
    operator = MXNetJobOperator(task_id="train", image="{{ params.i }}", command="{{ params.c }}", workers="{{ 4 }}")
    operator.image, operator.command, operator.workers = "a", ["python"], "4"
    specs = operator.given_manifest()["spec"]["mxReplicaSpecs"]
    assert {name: spec["replicas"] for name, spec in specs.items()} == {"Scheduler": 1, "Server": 4, "Worker": 4}


@pytest.mark.parametrize(
    ("servers", "replicas"),
    [
        (None, 1),
        ("3", 3),
        ({"replicas": "3"}, 3),
        ({"replicas": None}, 1),
    ],
)
def test_a_tuning_has_as_many_servers_as_a_template_has_left(servers, replicas):
    operator = MXNetTuneOperator(task_id="tune", image="a", servers="{{ params.servers }}")
    operator.servers = servers
    specs = operator.given_manifest()["spec"]["mxReplicaSpecs"]
    assert {name: spec["replicas"] for name, spec in specs.items()} == {
        "TunerTracker": 1,
        "TunerServer": replicas,
        "Tuner": 1,
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"servers": 0}, "servers: a tuning needs at least 1"),
        ({"servers": {"replicas": 0}}, "servers: a tuning needs at least 1"),
        ({"servers": Role(replicas=0)}, "servers: a tuning needs at least 1"),
        ({"servers": {"replicas": 0, "template": {}}}, "servers: a tuning needs at least 1"),
        ({"workers": 2}, "workers: a tuning has none.*servers="),
        ({"workers": 0}, "workers: a tuning has none"),
        ({"workers": Role(gpus=1)}, "workers: a tuning has none"),
        ({"schedulers": 1}, "schedulers: a tuning has none"),
    ],
)
def test_roles_that_a_tuning_does_not_have_and_none_to_measure_are_rejected(given, words):
    operator = MXNetTuneOperator(task_id="tune", image="a", **given)
    with pytest.raises(MXNetManifestError, match=words):
        operator.given_manifest()


def test_servers_that_a_template_left_as_words_are_rejected_by_their_own_name():
    operator = MXNetTuneOperator(task_id="tune", image="a", servers="{{ params.servers }}")
    operator.servers = "many"
    with pytest.raises(MXNetManifestError, match="servers: "):
        operator.given_manifest()


@pytest.mark.parametrize(("given", "codes"), [(99, {99}), ([7, 99], {7, 99}), ({1}, {1}), (None, set())])
def test_exit_codes_to_skip_are_one_or_several(given, codes):
    assert MXNetJobOperator(task_id="train", image="a", skip_on_exit_code=given).skip_on_exit_code == codes


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cmds": ["sh"]}, "cmds: write command"),
        ({"arguments": ["a"], "env_vars": {}}, "arguments: write args; env_vars: write env"),
        ({"pod_template_file": "pod.yaml"}, "pod_template_file: give an MXJob as manifest"),
        ({"is_delete_operator_pod": True}, 'is_delete_operator_pod: write on_finish_action="keep"'),
        ({"startup_timeout_seconds": 60}, "startup_timeout_seconds: write startup_timeout"),
        ({"secrets": [Secret("env", "KEY", "s3", "key")]}, r"secrets\[0\]: is Airflow's Secret.*secretKeyRef"),
        ({"wokers": 3}, r"wokers: did you mean workers\?"),
        ({"xyzzy": 3}, r"xyzzy(?!.*did you mean)"),
        ({"callbacks": [5]}, "callbacks must be classes derived from MXNetJobCallback, not 5"),
    ],
)
def test_an_argument_that_is_none_of_ours_is_refused_with_its_counterpart(given, words):
    with pytest.raises(TypeError, match=words):
        training(**given)
