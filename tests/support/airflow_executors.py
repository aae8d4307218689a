"""Whole Airflows of the newest release whose tasks other executors run than LocalExecutor."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml
from airflow_releases import link_provider
from airflow_server import PARTS, AirflowServer, airflow_server
from cluster_fixtures import LocalCluster
from locked_python import locked_python
from postgres import Postgres
from redis_broker import redis_broker

from mxnet_operator.local.images import BASE_IMAGE

WORKERS = "airflow-workers"
"""The namespace of KubernetesExecutor's pods."""


class KubernetesExecutorServer(AirflowServer):
    """An Airflow whose workers are pods of the local cluster: processes that see this machine's files."""

    def __init__(self, home: Path, *args: Any, **environment: Any) -> None:
        template = home / "pod_template.yaml"
        environment["AIRFLOW__KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE"] = str(template)
        super().__init__(home, *args, **environment)
        given = {name: value for name, value in self.environment.items() if name.startswith(("AIRFLOW", "PYTHON"))}
        given |= {
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",  # as in the template that Airflow brings
            "PATH": f"{Path(self.python).parent}:/usr/bin:/bin",  # the command that the executor gives is `python`
            "MXJOB_FAILFAST": "off",
        }
        container = {"name": "base", "env": [{"name": name, "value": value} for name, value in given.items()]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "worker"},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        template.write_text(yaml.safe_dump(pod))


@contextlib.contextmanager
def kubernetes_executor_airflow(
    home: Path, dags: Path, postgres: Postgres, cluster: LocalCluster
) -> Iterator[AirflowServer]:
    """A running Airflow with KubernetesExecutor, on the local cluster."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKERS}})
    repository, _, tag = BASE_IMAGE.partition(":")
    environment = {
        "CORE__EXECUTOR": "KubernetesExecutor",
        "KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "KUBERNETES_EXECUTOR__CONFIG_FILE": str(cluster.kubeconfig),
        "KUBERNETES_EXECUTOR__NAMESPACE": WORKERS,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": repository,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG": tag,
    }
    with airflow_server(
        home,
        dags,
        postgres.airflow(),
        of=KubernetesExecutorServer,
        **{f"AIRFLOW__{name}": value for name, value in environment.items()},
    ) as server:
        yield server


class CeleryExecutorServer(AirflowServer):
    """An Airflow with one Celery worker, which takes eight tasks at a time."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        **PARTS,
        "worker": ("celery", "worker", "--skip-serve-logs", "--concurrency", "8"),
    }


@contextlib.contextmanager
def celery_executor_airflow(home: Path, dags: Path, postgres: Postgres) -> Iterator[AirflowServer]:
    """A running Airflow with CeleryExecutor, whose broker delivers again what takes longer than 45 seconds.

    By default that is a day, which no test waits for. It is longer than a task lives in other tests on a busy machine:
    the end of what was delivered again, and starts nothing, is to Airflow the end of a task that was cleared meanwhile,
    whose next try begins while the first still runs.
    """
    python = str(locked_python("airflow-celery"))
    packages = home / "packages"
    link_provider(packages)
    with redis_broker() as broker:
        environment = {
            "CORE__EXECUTOR": "CeleryExecutor",
            "CELERY__BROKER_URL": broker,
            "CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "45",
            "CELERY_BROKER_TRANSPORT_OPTIONS__UNACKED_RESTORE_INTERVAL": "1",
            "CELERY_BROKER_TRANSPORT_OPTIONS__UNACKED_RESTORE_THROTTLE": "1",
        }
        with airflow_server(
            home,
            dags,
            postgres.airflow(python),
            of=CeleryExecutorServer,
            python=python,
            PYTHONPATH=str(packages),
            **{f"AIRFLOW__{name}": value for name, value in environment.items()},
        ) as server:
            yield server
