"""The chart on a real API server: installed, upgraded and removed by Helm as an administrator would."""

import json
import tempfile
from pathlib import Path

import pytest
from control_plane import control_plane
from deployment import Administrator, of_kind, rendered
from helm import CHART, helm
from jobs import worker_job
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes("helm", "kubectl")]

NAMESPACE = "mxnet-operator"


@pytest.fixture(scope="module")
def server():
    """A control plane without a CRD."""
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder,
        control_plane(programs_or_skip(CONTROL_PLANE), Path(folder), []) as running,
    ):
        yield running


@pytest.fixture
def run_helm(server, tmp_path):
    """helm as the administrator, with its own files in a folder of the test."""

    def run(*arguments):
        done = helm(*arguments, HOME=str(tmp_path), KUBECONFIG=str(server.kubeconfig()))
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    return run


async def test_a_release_is_installed_upgraded_and_removed_and_the_jobs_stay(server, run_helm, tmp_path):
    ask = Administrator(server)
    run_helm("install", "mxnet", CHART, f"--namespace={NAMESPACE}", "--create-namespace", "--set=components.kueue=true")
    for crd in of_kind(rendered("standalone"), "CustomResourceDefinition"):
        await ask("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    (tmp_path / "job.json").write_text(json.dumps(worker_job("kept", "pass")))
    await ask("create", "-f", tmp_path / "job.json")
    deployment = ("get", "deployment/mxnet-operator", f"--namespace={NAMESPACE}")
    replicas = (*deployment, "-o", "jsonpath={.spec.replicas}")
    assert await ask(*replicas) == "2"
    assert "mxnet-operator-kueue" in await ask("get", "clusterrole/mxnet-operator-kueue", "-o", "name")

    run_helm("upgrade", "mxnet", CHART, f"--namespace={NAMESPACE}", "--set=replicas=3")
    assert await ask(*replicas) == "3"
    assert "(NotFound)" in await ask("get", "clusterrole/mxnet-operator-kueue", fails=True)

    run_helm("uninstall", "mxnet", f"--namespace={NAMESPACE}")
    assert "(NotFound)" in await ask(*deployment, fails=True)
    assert "NotFound" in await ask("get", "clusterrole/mxnet-operator", fails=True)
    assert "kept" in await ask("get", "mxjobs.kubeflow.org", "--all-namespaces", "-o", "name")
