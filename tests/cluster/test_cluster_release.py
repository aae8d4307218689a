"""What `make release` makes, used as a stranger would: the wheel, install.yaml and the chart."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from control_plane import control_plane
from control_plane_fixtures import real_api
from controller_fixtures import PODS, ControllerWorld, gang
from deployment import Administrator, of_kind, policies_in_force, rendered, started
from helm import helm
from jobs import worker_job
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix
from locked_python import locked_python

from mxnet_operator.local.images.environment import installed_interpreter
from mxnet_operator.local.images.uv_process import clean_environment, uv_program

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes("helm", "kubectl")]

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "mxnet-operator"
IMAGE = "registry.test/mxnet-operator"
BEFORE = "b237a66a"
"""The commit of the release before, 0.1.0."""
GUARDED = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}, labels: {{pod-security.kubernetes.io/enforce: restricted}}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: all, namespace: {NAMESPACE}}}
spec: {{hard: {{pods: "4", requests.cpu: "1", limits.memory: 4Gi}}}}
---
apiVersion: v1
kind: LimitRange
metadata: {{name: all, namespace: {NAMESPACE}}}
spec: {{limits: [{{type: Container, max: {{memory: 2Gi}}}}]}}
"""


@pytest.fixture(scope="module")
def release():
    """The folder that `make release` makes."""
    programs = [str(Path(path).parent) for path in programs_or_skip(["helm", "kubectl"]).values()]
    path = os.pathsep.join([*programs, os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder:
        command = ["make", "release", f"DIST={folder}/dist"]
        made = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PATH": path, "IMAGE_NAME": IMAGE}, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr.decode()
        yield Path(folder) / "dist"


def file_of(release, pattern):
    """The only file of the release of this name."""
    (found,) = release.glob(pattern)
    return found


def uv(*arguments):
    """What uv writes to stderr, after it succeeded."""
    done = subprocess.run(
        [uv_program(), *map(str, arguments)],
        env=clean_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_every_file_is_there_and_has_its_checksum(release):
    listed = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=release, capture_output=True, text=True, check=True
    )
    checked = {line.partition(":")[0] for line in listed.stdout.splitlines()}
    assert checked == {path.name for path in release.iterdir()} - {"SHA256SUMS"}
    assert {"install.yaml", "notes.md", "sbom.cdx.json"} < checked
    assert {Path(name).suffix for name in checked} >= {".whl", ".gz", ".tgz"}
    assert (release / "notes.md").read_text().strip()
    version = file_of(release, "*.whl").name.split("-")[1]
    assert f" image: {IMAGE}:{version}\n" in (release / "install.yaml").read_text()


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_wheel_runs_alone_in_each_python(release, tmp_path, python):
    if (system := installed_interpreter(python)) is None and "CI" not in os.environ:
        pytest.skip(f"there is no Python {python}")
    uv("venv", "--python", system, tmp_path / "venv")
    interpreter = tmp_path / "venv" / "bin" / "python"
    uv("pip", "install", "--python", interpreter, f"{file_of(release, '*.whl')}[local,argo]")
    uv("pip", "check", "--python", interpreter)
    job = tmp_path / "job.json"
    job.write_text(json.dumps(worker_job("a", "pass")))
    checked = subprocess.run(
        [tmp_path / "venv" / "bin" / "mxjob", "validate", "-f", job], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("airflow", ["2.11", "3.1", "newest"])
def test_the_wheel_changes_no_package_of_an_airflow(release, airflow):
    python = sys.executable if airflow == "newest" else locked_python(f"airflow-{airflow}")
    wheel = f"mxnet-operator[airflow] @ {file_of(release, '*.whl').as_uri()}"
    told = uv("pip", "install", "--dry-run", "--reinstall-package", "mxnet-operator", "--python", python, wheel)
    changes = {
        line.split()[1].partition("==")[0] for line in told.splitlines() if line.startswith((" + ", " - ", " ~ "))
    }
    assert changes == {"mxnet-operator"}
    uv("pip", "check", "--python", python)


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


@pytest.fixture
async def ask(server, tmp_path):
    """The administrator at a kubectl, of a cluster that restricts what the controller's namespace takes."""
    administrator = Administrator(server)
    (tmp_path / "guarded.yaml").write_text(GUARDED)
    await administrator("apply", "-f", tmp_path / "guarded.yaml")
    return administrator


PODS_ADMITTED = ("jsonpath={.status.replicas}=2", "deployment/mxnet-operator", f"--namespace={NAMESPACE}")


async def test_install_yaml_is_admitted_where_a_namespace_restricts_its_pods(ask, release):
    await ask("apply", "-f", release / "install.yaml")
    await ask.wait(*PODS_ADMITTED)
    await ask("delete", "--wait", "-f", release / "install.yaml")


async def test_the_chart_is_installed_upgraded_and_removed_and_the_jobs_stay(ask, run_helm, release, tmp_path):
    chart = file_of(release, "*.tgz")
    run_helm("install", "mxnet", chart, f"--namespace={NAMESPACE}", "--set=components.kueue=true")
    await ask.wait(*PODS_ADMITTED)
    for crd in of_kind(rendered("standalone"), "CustomResourceDefinition"):
        await ask("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    (tmp_path / "job.json").write_text(json.dumps(worker_job("kept", "pass")))
    await ask("create", "-f", tmp_path / "job.json")
    deployment = ("get", "deployment/mxnet-operator", f"--namespace={NAMESPACE}")
    replicas = (*deployment, "-o", "jsonpath={.spec.replicas}")
    assert await ask(*replicas) == "2"
    assert "mxnet-operator-kueue" in await ask("get", "clusterrole/mxnet-operator-kueue", "-o", "name")

    run_helm("upgrade", "mxnet", chart, f"--namespace={NAMESPACE}", "--set=replicas=3")
    assert await ask(*replicas) == "3"
    assert "(NotFound)" in await ask("get", "clusterrole/mxnet-operator-kueue", fails=True)

    run_helm("uninstall", "mxnet", f"--namespace={NAMESPACE}")
    assert "(NotFound)" in await ask(*deployment, fails=True)
    assert "NotFound" in await ask("get", "clusterrole/mxnet-operator", fails=True)
    assert "kept" in await ask("get", "mxjobs.kubeflow.org", "--all-namespaces", "-o", "name")


@pytest.fixture
def before(tmp_path):
    """The source of the release before."""
    command = ["git", "archive", BEFORE, "operator"]
    archived = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(tmp_path / "before", filter="data")
    return tmp_path / "before" / "operator"


async def test_an_upgrade_from_the_release_before_and_the_way_back_leave_running_jobs_alone(
    server, ask, release, before, monkeypatch
):
    """Jobs begin under one release and end under the other, after either was installed over the other."""
    uids = {}
    overlay = before / "manifests" / "overlays" / "standalone"
    objects = {"old": rendered(overlay), "new": rendered("standalone")}

    @contextlib.asynccontextmanager
    async def controller(which, *source):
        await ask("apply", "--server-side", "--force-conflicts", *source)
        await policies_in_force(server, objects[which])
        with monkeypatch.context() as patched:
            if which == "old":
                patched.setenv("PYTHONPATH", str(before))
            with started(server, objects[which], before):
                yield

    async def begin(*jobs):
        for name in jobs:
            await world.submit(gang(name))
            pods = await world.eventually(PODS, lambda found, name=name: len(of(found, name)) == 5)
            uids[name] = of(pods, name)
            await world.move(uids[name], "Running")
            await world.state(name, "Running")

    async def end(*jobs):
        for name in jobs:
            assert of(await world.eventually(PODS, bool), name) == uids[name]
            await world.move(uids[name], "Succeeded", 0, missing_ok=True)
            job = await world.state(name, "Succeeded")
            assert not job["status"].get("restarts")

    def of(pods, job):
        return {name: pod["metadata"]["uid"] for name, pod in pods.items() if name.startswith(f"{job}-")}

    async with real_api(server) as api:
        world = ControllerWorld(api, None, server.kubeconfig())
        async with controller("old", "-k", overlay):
            await begin("ends-in-the-new", "ends-in-the-old")
        async with controller("new", "-f", release / "install.yaml"):
            await begin("of-the-new")
            await end("ends-in-the-new")
        async with controller("old", "-k", overlay):
            await begin("of-the-old")
            await end("of-the-new", "ends-in-the-old", "of-the-old")
    await ask("delete", "--wait", "--ignore-not-found", "-f", release / "install.yaml")


if subprocess.run(["git", "cat-file", "-e", BEFORE], cwd=ROOT, capture_output=True, check=False).returncode:
    # A shallow clone has no release before.
    del test_an_upgrade_from_the_release_before_and_the_way_back_leave_running_jobs_alone
