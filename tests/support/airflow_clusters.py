"""Clusters on which Airflow's tasks run in tests, and how a test says there that a job is over."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster_fixtures import LocalCluster
from control_plane import Server
from controller_fixtures import PROGRAM
from fake_nodes import EXIT_CODE, fake_node
from kubernetes import client, config
from waiting import SECONDS, eventually

from mxnet_operator.api import names

_MXJOBS = (names.GROUP, names.VERSION)


class TargetCluster:
    """A cluster as its administrator sees it; used by many threads at once."""

    has_logs: bool
    job_pages: str = ""
    """Template of the addresses of the pages that jobs have; empty where they have none."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        api = config.new_client_from_config(str(kubeconfig))
        self._jobs, self.core = client.CustomObjectsApi(api), client.CoreV1Api(api)

    def jobs(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """The MXJobs that a label selector finds."""
        found = self._jobs.list_namespaced_custom_object(*_MXJOBS, namespace, names.PLURAL, label_selector=selector)
        return list(found["items"])

    def create(self, job: dict[str, Any]) -> None:
        """Create an MXJob by hand."""
        self._jobs.create_namespaced_custom_object(*_MXJOBS, job["metadata"]["namespace"], names.PLURAL, job)

    def delete(self, job: dict[str, Any]) -> None:
        """Delete an MXJob by hand."""
        metadata = job["metadata"]
        self._jobs.delete_namespaced_custom_object(*_MXJOBS, metadata["namespace"], names.PLURAL, metadata["name"])

    def end(self, gate: Path, namespace: str, selector: str, code: int) -> None:
        """Let the pods that a label selector finds end with this code."""
        raise NotImplementedError


class LocalTarget(TargetCluster):
    """The local cluster, whose pods are processes that look for a file."""

    has_logs = True

    def end(self, gate: Path, namespace: str, selector: str, code: int) -> None:
        gate.write_text(f"{code}\n")


class KubernetesTarget(TargetCluster):
    """A real Kubernetes API with our controller, whose pods KWOK pretends to run."""

    has_logs = False

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of one's own, in which pods may run."""
        name: str = self.core.create_namespace({"metadata": {"generateName": "test-"}}).metadata.name
        eventually(lambda: self.core.list_namespaced_service_account(name).items)
        yield name
        self.core.delete_namespace(name)

    def end(self, gate: Path, namespace: str, selector: str, code: int) -> None:
        annotated = {"metadata": {"annotations": {EXIT_CODE: str(code)}}}
        for pod in self.core.list_namespaced_pod(namespace, label_selector=selector).items:
            with contextlib.suppress(client.ApiException):  # it is gone already
                self.core.patch_namespaced_pod(pod.metadata.name, namespace, annotated)


def local_target(cluster: LocalCluster) -> LocalTarget:
    """The local cluster of the test run."""
    target = LocalTarget(cluster.kubeconfig)
    target.job_pages = json.loads(cluster.mxjob("local", "status", "--json").stdout)["jobPages"]
    return target


@contextlib.contextmanager
def kubernetes_target(server: Server, log: Path) -> Iterator[KubernetesTarget]:
    """The cluster with a node and a controller, which ends with the context."""
    target = KubernetesTarget(server.kubeconfig())
    target.core.create_node({"apiVersion": "v1", "kind": "Node", **fake_node("airflow")})
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig("controller"))}
    addresses = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"]
    with log.open("wb") as output:
        controller = subprocess.Popen(
            [*PROGRAM, "run", *addresses], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield target
    finally:
        controller.terminate()
        controller.wait(SECONDS)
        target.core.delete_node("airflow")
