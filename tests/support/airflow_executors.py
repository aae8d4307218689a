"""Whole Airflows with other executors than LocalExecutor alone."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from airflow_server import PARTS, AirflowServer
from cluster_fixtures import LocalCluster
from debian import unpacked
from kubernetes_programs import MissingProgramError
from left_overs import folder_prefix
from waiting import SECONDS, eventually

from mxnet_operator.local.images.store import BASE_IMAGE

WORKERS = "airflow-workers"
"""The namespace of KubernetesExecutor's pods."""
_REDIS = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")


class KubernetesExecutorServer(AirflowServer):
    """An Airflow with pods of the local cluster for some tasks: processes that see this machine's files."""

    def __init__(self, home: Path, *args: Any, **environment: Any) -> None:
        template = home / "pod_template.yaml"
        environment["AIRFLOW__KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE"] = str(template)
        super().__init__(home, *args, **environment)
        given = {name: value for name, value in self.environment.items() if name.startswith(("AIRFLOW", "PYTHON"))}
        given |= {
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


def kubernetes_executor(cluster: LocalCluster) -> dict[str, str]:
    """The environment of an Airflow that has KubernetesExecutor, on the local cluster, beside its default executor."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKERS}})
    repository, _, tag = BASE_IMAGE.partition(":")
    environment = {
        "CORE__EXECUTOR": "LocalExecutor,KubernetesExecutor",
        "KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "KUBERNETES_EXECUTOR__CONFIG_FILE": str(cluster.kubeconfig),
        "KUBERNETES_EXECUTOR__NAMESPACE": WORKERS,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": repository,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG": tag,
    }
    return {f"AIRFLOW__{name}": value for name, value in environment.items()}


class CeleryExecutorServer(AirflowServer):
    """An Airflow with one Celery worker, which takes eight tasks at a time."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        **PARTS,
        "worker": ("celery", "worker", "--skip-serve-logs", "--concurrency", "8"),
    }


@contextlib.contextmanager
def celery_executor() -> Iterator[dict[str, str]]:
    """The environment of an Airflow with CeleryExecutor, while its broker runs."""
    with _redis_broker() as broker:
        yield {"AIRFLOW__CORE__EXECUTOR": "CeleryExecutor", "AIRFLOW__CELERY__BROKER_URL": broker}


@contextlib.contextmanager
def _redis_broker() -> Iterator[str]:
    """The address of a running server, as Celery takes it; the test is skipped where there is none, or fails in CI."""
    program, environment = _redis()
    # Not in pytest's folders: a socket's path is at most some 100 characters long.
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), dir="/tmp") as folder:
        socket = Path(folder) / "socket"
        options = {"port": "0", "unixsocket": str(socket), "dir": folder, "save": "", "logfile": f"{folder}/log"}
        server = subprocess.Popen(
            [program, *(word for name, value in options.items() for word in (f"--{name}", value))],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
        )
        try:
            eventually(socket.exists)
            yield f"redis+socket://{socket}"
        finally:
            server.terminate()
            server.wait(SECONDS)


def _redis() -> tuple[str, dict[str, str]]:
    """The path of the program, and the variables that it needs."""
    if installed := shutil.which("redis-server"):
        return installed, {}
    try:
        usr = unpacked(_REDIS) / "usr"
    except MissingProgramError as error:
        pytest.fail(str(error), pytrace=False) if os.environ.get("CI") else pytest.skip(str(error))
    (library,) = usr.glob("lib/*/liblzf.so.1")
    return str(usr / "bin" / "redis-server"), {"LD_LIBRARY_PATH": str(library.parent)}
