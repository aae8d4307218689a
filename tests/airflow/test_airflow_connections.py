"""The connections that docs/airflow.md shows: each leads workers and triggers to the cluster."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from airflow.configuration import conf
from api_gateway import gateway_to
from kubernetes.config import incluster_config
from provider_fixtures import OperatorWorld, Try, server_in_thread, terminated

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.kube.errors import ApiError
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

DOCUMENTED = [
    json.loads(found)
    for found in re.findall(
        r'`({"conn_type".*?}})`', (Path(__file__).resolve().parents[2] / "docs" / "airflow.md").read_text()
    )
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with server_in_thread(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=["waiting", "deferred"])
def world(request, running):
    with ThreadPoolExecutor(1) as threads:
        world = OperatorWorld(running, threads, deferrable=request.param == "deferred")
        yield world
        world.close()


@pytest.fixture
def pod(running, tmp_path, monkeypatch):
    """What a pod finds of its cluster: its service account's files, and the API server's address."""
    config = yaml.safe_load(Path(running.kubeconfig).read_text())
    (tmp_path / "token").write_text(config["users"][0]["user"]["token"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(
        incluster_config, "SERVICE_CERT_FILENAME", config["clusters"][0]["cluster"]["certificate-authority"]
    )
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(running.port))


def succeeds(world, **arguments):
    """Run a job to its end over a connection."""
    task = world.start(world.operator(config_file=None, **arguments), Try())
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 0.9}))
    world.write_status(job, "Succeeded", completionTime="2026-11-21T12:00:09Z")
    return task.result()["result"] == {"accuracy": 0.9}


def test_a_connection_within_the_cluster_works_as_documented(world, pod, monkeypatch):
    (connection,) = [each for each in DOCUMENTED if each["extra"].get("in_cluster")]
    connection["extra"]["namespace"] = "default"
    monkeypatch.setenv("AIRFLOW_CONN_INSIDE", json.dumps(connection))
    assert succeeds(world, kubernetes_conn_id="inside")


def test_a_connection_by_kubeconfig_works_as_documented(world, running, tmp_path, monkeypatch):
    (connection,) = [each for each in DOCUMENTED if "kube_config_path" in each["extra"]]
    config = yaml.safe_load(Path(running.kubeconfig).read_text())
    config["contexts"].append({**config["contexts"][0], "name": connection["extra"]["cluster_context"]})
    config["current-context"] = "another"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    connection["extra"]["kube_config_path"] = str(path)
    monkeypatch.setenv("AIRFLOW_CONN_OUTSIDE", json.dumps(connection))
    assert succeeds(world, kubernetes_conn_id="outside")


@pytest.mark.parametrize("default", [True, False])
def test_whether_tasks_are_deferred_is_airflow_s_default_unless_they_say(default, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", str(default))
    assert conf.getboolean("operators", "default_deferrable") is default
    job, sensor = {"task_id": "train", "image": "i"}, {"task_id": "sense", "job_name": "j"}
    assert MXNetJobOperator(**job).deferrable is default
    assert MXNetJobSensor(**sensor).deferrable is default
    assert MXNetJobOperator(deferrable=not default, **job).deferrable is not default
    assert MXNetJobSensor(deferrable=not default, **sensor).deferrable is not default


def test_a_worker_reads_a_token_that_was_replaced_anew_and_once(running, tmp_path):
    with gateway_to(running.kubeconfig, tmp_path) as gateway:
        hook = MXNetJobHook(config_file=str(gateway.kubeconfig))
        ref = JobRef(name="none", namespace="default", uid="u")
        assert hook.get_job(ref) is None
        gateway.rotate("second-token")
        assert hook.get_job(ref) is None
        gateway.tokens = set()
        gateway.asked.clear()
        with pytest.raises(ApiError) as refused:
            hook.get_job(ref)
        assert (refused.value.code, len(gateway.asked)) == (401, 2)
