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
from kubectl import kubectl


class LocalSite:
    """The local cluster, whose pods are processes that look for a file."""

    has_logs = True

    def __init__(self, cluster: LocalCluster) -> None:
        self.kubeconfig = cluster.kubeconfig
        self.kubectl = cluster.kubectl

    def end(self, gate: Path, pods: list[str], code: int) -> None:
        gate.write_text(f"{code}\n")


class KubernetesSite:
    """A real Kubernetes API with our controller, whose pods KWOK pretends to run."""

    has_logs = False

    def __init__(self, server: Server) -> None:
        self.kubeconfig = server.kubeconfig()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [kubectl(), *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            check=False,
        )

    def end(self, gate: Path, pods: list[str], code: int) -> None:
        for pod in pods:
            self.kubectl("annotate", "--overwrite", "pod", pod, f"{EXIT_CODE}={code}")


Site = LocalSite | KubernetesSite


@contextlib.contextmanager
def kubernetes_site(server: Server, log: Path) -> Iterator[KubernetesSite]:
    """The site with a node and a controller, which ends with the context."""
    site = KubernetesSite(server)
    node = {"apiVersion": "v1", "kind": "Node", **fake_node("airflow")}
    done = site.kubectl("create", "-f", "-", stdin=json.dumps(node))
    assert done.returncode == 0, done.stderr
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig("controller"))}
    addresses = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"]
    with log.open("wb") as output:
        controller = subprocess.Popen(
            [*PROGRAM, "run", *addresses], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield site
    finally:
        controller.terminate()
        controller.wait(60)
        site.kubectl("delete", "node", "airflow")


def objects(site: Site, *arguments: str) -> list[dict[str, Any]]:
    """What `kubectl get` lists."""
    done = site.kubectl("get", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found
