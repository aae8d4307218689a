"""Argo's workflow-controller on a real API server, a node for its pods, and our controller for the jobs.

The jobs' pods run on KWOK's fake nodes, or on our kubelet; Argo's run argoexec as itself, with their ServiceAccount's
token, so that its rights are really asked for.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import tenacity
import yaml
from apiserver_fixtures import Api
from argo_pods import ARGOEXEC_IMAGE, SCHEDULER_NAME, ArgoPods, why_not
from control_plane import control_plane
from control_plane_fixtures import real_api
from controller_fixtures import ControllerWorld, RecordingClient
from hera.workflows import Workflow
from kubernetes_programs import CONTROL_PLANE, kubectl, programs_or_skip, source_of
from left_overs import folder_prefix
from program_processes import Program, Programs
from waiting import SECONDS

from mxnet_argo import MXJobRunner, MXJobSpec, MXJobStep, delete_jobs_on_exit
from mxnet_operator.api.crd import definitions
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.readers.argo_workflow import WORKFLOW_LABEL

ARGO = ("workflow-controller", "argoexec")
NAMESPACE = "ml"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
COMMAND = ["python", "train.py"]
TEMPLATES = Path(__file__).parents[2] / "argo" / "templates"


@pytest.fixture(scope="package")
def argo_server() -> Iterator[tuple[Any, Program]]:
    """A control plane with Argo's and our CRDs, namespace, accounts, and templates; and the controller of Argo."""
    if reason := why_not():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    paths = programs_or_skip((*CONTROL_PLANE, *ARGO))
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as name,
        control_plane(paths, Path(name), [*definitions(), *argo_crds()]) as server,
    ):
        install_argo(server)
        with workflow_controller(server, paths) as controller:
            yield server, controller


def ctl(server: Any, *arguments: str) -> None:
    """kubectl as the administrator; it has to succeed."""
    command = [kubectl(), f"--kubeconfig={server.kubeconfig()}", f"--cache-dir={server.folder}/cache", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)


def argo_crds() -> list[dict[str, Any]]:
    """The full ones, by which the API server checks every field of a workflow."""
    folder = source_of("workflow-controller") / "manifests" / "base" / "crds" / "full"
    return [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(folder.glob("argoproj.io_*.yaml"))]


def install_argo(server: Any) -> None:
    rbac = source_of("workflow-controller") / "manifests" / "namespace-install" / "workflow-controller-rbac"
    config = {
        "metricsConfig": yaml.safe_dump({"enabled": False}),
        "executor": yaml.safe_dump({"env": [{"name": "RESOURCE_STATE_CHECK_INTERVAL", "value": "500ms"}]}),
        "workflowDefaults": yaml.safe_dump({"spec": {"schedulerName": SCHEDULER_NAME}}),
    }
    name = "workflow-controller-configmap"
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    server.ask("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "argo"}})
    server.ask("POST", f"{CORE}/configmaps", {"metadata": {"name": name}, "data": config})
    for kind in ("role", "rolebinding"):
        made = yaml.safe_load((rbac / f"workflow-controller-{kind}.yaml").read_text())
        server.ask("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/{kind}s", made)
    may_see_cluster_templates(server)
    # again, as long as the server's discovery lags behind the new CRDs
    retrying = tenacity.Retrying(stop=tenacity.stop_after_delay(SECONDS), wait=tenacity.wait_fixed(0.5), reraise=True)
    retrying(ctl, server, "-n", NAMESPACE, "apply", "-k", str(TEMPLATES))
    retrying(ctl, server, "apply", "-k", str(TEMPLATES / "cluster"))


def may_see_cluster_templates(server: Any) -> None:
    """Argo's own rule, which a controller of one namespace lacks, and one of a whole cluster has."""
    manifests = source_of("workflow-controller") / "manifests" / "quick-start" / "base"
    made = list(yaml.safe_load_all((manifests / "cluster-workflow-template-rbac.yaml").read_text()))
    for each in made:
        if "server" not in each["metadata"]["name"]:
            for subject in each.get("subjects", ()):
                subject["namespace"] = NAMESPACE
            server.ask("POST", f"/apis/rbac.authorization.k8s.io/v1/{each['kind'].lower()}s", each)


@contextlib.contextmanager
def workflow_controller(server: Any, paths: dict[str, str]) -> Iterator[Program]:
    """Argo's controller, with its own account's rights, for one namespace."""
    answer = server.ask("POST", f"{CORE}/serviceaccounts/argo/token", {"spec": {"expirationSeconds": 24 * 3600}})
    environment = {
        "KUBECONFIG": str(server.kubeconfig("argo", answer["status"]["token"])),
        "LEADER_ELECTION_DISABLE": "true",
        "DEFAULT_REQUEUE_TIME": "1s",
        "ARGO_PROGRESS_PATCH_TICK_DURATION": "1s",
        # Or a retry after a killed executor is sometimes not noticed for 20 minutes (docs/facts/argo.md, retries).
        "INFORMER_WRITE_BACK": "false",
    }
    programs = Programs(paths, server.folder, environment, ready_seconds=SECONDS)
    try:
        yield programs.start(
            "workflow-controller",
            namespaced="true",
            namespace=NAMESPACE,
            managed_namespace=NAMESPACE,
            executor_image=ARGOEXEC_IMAGE,
            loglevel="info",
        )
    finally:
        programs.stop()


class Argo:
    """What a test does with Argo: submit a workflow, wait for what becomes of it, look at its jobs.

    `jobs_world` is our controller's side: it makes the jobs' pods, and the test says what becomes of those.
    """

    def __init__(self, api: Api, server: Any, controller: Program, pods: Any, jobs_world: ControllerWorld) -> None:
        self.api = api
        self.server = server
        self._controller = controller
        self.pods = pods
        self.jobs_world = jobs_world

    def path(self, plural: str, name: str = "") -> str:
        group = "apis/kubeflow.org/v1" if plural == "mxjobs" else "apis/argoproj.io/v1alpha1"
        group = "api/v1" if plural in {"pods", "services", "events"} else group
        return f"/{group}/namespaces/{NAMESPACE}/{plural}{f'/{name}' if name else ''}"

    async def submit(self, workflow: Any) -> str:
        """Create a workflow, a Hera object or a manifest; its name."""
        manifest = workflow if isinstance(workflow, dict) else workflow.to_dict()
        manifest["metadata"].pop("namespace", None)
        return str((await self.api.post(self.path("workflows"), manifest)).ok()["metadata"]["name"])

    async def until(self, plural: str, holds: Callable[[Any], Any], **query: Any) -> dict[str, dict[str, Any]]:
        """The objects of a kind by name, once `holds` is true of them."""
        found: dict[str, dict[str, Any]] = await self.api.until(self.path(plural), holds, **query)
        return found

    async def finished(self, name: str) -> dict[str, Any]:
        """The workflow, once it is over."""
        phases = {"Succeeded", "Failed", "Error"}
        query = {"fieldSelector": f"metadata.name={name}"}
        found = await self.until(
            "workflows", lambda all_: any(w.get("status", {}).get("phase") in phases for w in all_.values()), **query
        )
        return found[name]

    async def jobs(self, workflow: Any, count: int = 1) -> dict[str, dict[str, Any]]:
        """The jobs of a run, once there are so many, and each has its pods."""

        def there(found: dict[str, dict[str, Any]]) -> bool:
            return len(found) == count and all(job.get("status", {}).get("state") for job in found.values())

        return await self.until("mxjobs", there, **self._of(workflow))

    async def job(self, workflow: Any) -> dict[str, Any]:
        """The only job of a run, once its pods exist."""
        (job,) = (await self.jobs(workflow)).values()
        return job

    async def no_jobs(self, workflow: Any) -> None:
        """Wait until a run has none left."""
        await self.jobs_world.eventually(
            self.path("mxjobs"),
            lambda jobs: all(
                job["metadata"].get("labels", {}).get(WORKFLOW_LABEL) != workflow for job in jobs.values()
            ),
        )

    async def end(self, job: dict[str, Any], exit_code: int = 0, message: str = "") -> None:
        """Have a job's pods run, and end with this code; Worker 0, or the Tuner, leaves the message."""
        name = job["metadata"]["name"]
        pods = await self.until(
            "pods", lambda found: len(found) == replicas(job), labelSelector=f"training.kubeflow.org/job-name={name}"
        )
        await self.jobs_world.move(list(pods), "Running")
        (main,) = [pod for pod in pods if pod in {f"{name}-worker-0", f"{name}-tuner-0"}]
        if not exit_code and main.endswith("-worker-0"):
            await self.jobs_world.move([pod for pod in pods if pod != main], "Succeeded", 0)
        await self.jobs_world.move([main], "Failed" if exit_code else "Succeeded", exit_code, message)

    async def end_each(
        self, workflow: Any, count: int, end: Callable[[dict[str, Any]], Awaitable[None]], at_once: int = 1
    ) -> int:
        """Have `end(job)` end each of so many jobs of a run; how many were unfinished at once, at most.

        None ends before as many as `at_once` are there.
        """
        ending: dict[str, asyncio.Task[None]] = {}
        unfinished: set[str] = set()
        most = 0
        all_there = asyncio.Event()

        async def ended(job: dict[str, Any]) -> None:
            await all_there.wait()
            await end(job)

        async with asyncio.timeout(2 * SECONDS), self.api.watch(self.path("mxjobs"), **self._of(workflow)) as events:
            while len(ending) < count or unfinished:
                job = (await events.next())["object"]
                name, state = job["metadata"]["name"], job.get("status", {}).get("state")
                (unfinished.discard if state in {"Succeeded", "Failed"} else unfinished.add)(name)
                most = max(most, len(unfinished))
                if most >= at_once:
                    all_there.set()
                if state and name not in ending:
                    ending[name] = asyncio.create_task(ended(job))
        await asyncio.gather(*ending.values())
        return most

    async def poller(self, workflow: Any, other_than: str = "") -> str:
        """The name of the pod that polls for the job of a workflow."""

        def running(found: dict[str, dict[str, Any]]) -> list[str]:
            return [name for name, pod in found.items() if name != other_than and pod["status"]["phase"] == "Running"]

        label = {"labelSelector": f"workflows.argoproj.io/workflow={workflow},workflows.argoproj.io/completed=false"}
        return running(await self.until("pods", running, **label))[0]

    async def evict(self, poller: str) -> str:
        """What `kubectl drain` does with a poller's pod; the name of the pod of the next attempt, once that runs."""
        evicted = (await self.api.get(self.path("pods", poller))).ok()["metadata"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": poller}}
        (await self.api.post(f"{self.path('pods', poller)}/eviction", eviction)).ok()
        return await self.next_poller(evicted)

    async def lose(self, poller: str) -> dict[str, Any]:
        """Delete a poller whose node has lost its power, with the finalizer that Argo removes; the pod's metadata."""
        path = self.path("pods", poller)
        await self.pods.lose(poller)
        (await self.api.merge(path, {"metadata": {"finalizers": None}})).ok()
        lost: dict[str, Any] = (await self.api.delete(path, gracePeriodSeconds=0)).ok()["metadata"]
        return lost

    async def next_poller(self, gone: dict[str, Any]) -> str:
        """The name of the pod that polls after the one with this metadata, once that runs.

        It may be the same name, where Argo thinks that it never came to make the first.
        """

        def running(found: dict[str, dict[str, Any]]) -> list[str]:
            pods = [pod for pod in found.values() if pod["metadata"]["uid"] != gone["uid"]]
            return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]

        of_workflow = f"{WORKFLOW_LABEL}={gone['labels'][WORKFLOW_LABEL]}"
        label = {"labelSelector": f"{of_workflow},workflows.argoproj.io/completed=false"}
        return running(await self.until("pods", running, **label))[0]

    def kill(self, poller: str) -> None:
        """End a poller as the kernel does that has no memory left: with everything in its container."""
        os.kill(self.pods.process(poller), signal.SIGKILL)

    @contextlib.contextmanager
    def stands_still(self) -> Iterator[None]:
        """Keep Argo's controller from running until the context ends."""
        os.kill(self._controller.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._controller.process.pid, signal.SIGCONT)

    async def command(self, *arguments: str, stdin: str = "") -> str:
        """What Argo's own command prints, which asks the API server as the administrator; it has to succeed."""
        process = await asyncio.create_subprocess_exec(
            programs_or_skip(["argo"])["argo"],
            *("-n", NAMESPACE, *arguments),
            env={**os.environ, "KUBECONFIG": str(self.server.kubeconfig())},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        assert process.returncode == 0, (arguments, out.decode(), err.decode())
        return out.decode()

    async def shut_down(self, workflow: Any, how: str) -> None:
        """`argo stop` or `argo terminate`, while the step runs."""
        await self.poller(workflow)
        await self.command(how.lower(), workflow)

    async def account(self, name: str, job_verbs: list[str], *more_rules: dict[str, Any]) -> str:
        """A ServiceAccount for workflows that may do this with MXJobs, and report what its steps came to."""
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
        rules = [
            {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]},
            {"apiGroups": ["kubeflow.org"], "resources": ["mxjobs"], "verbs": job_verbs},
            *more_rules,
        ]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        (await self.api.post(f"{CORE}/serviceaccounts", {"metadata": {"name": name}})).ok()
        (await self.api.post(f"{rbac}/roles", {"metadata": {"name": name}, "rules": rules})).ok()
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        (await self.api.post(f"{rbac}/rolebindings", binding)).ok()
        return name

    @staticmethod
    def _of(workflow: Any) -> dict[str, Any]:
        return {"labelSelector": f"{WORKFLOW_LABEL}={workflow}"}


def replicas(job: dict[str, Any]) -> int:
    """How many pods a job has."""
    return sum(spec.get("replicas", 1) for spec in job["spec"]["mxReplicaSpecs"].values())


def node_of(workflow: Any, template: Any) -> dict[str, Any]:
    """The node of a workflow that ran a template; of a retried one, the attempts' parent."""
    nodes = [node for node in workflow["status"]["nodes"].values() if node.get("templateName") == template]
    retried = [node for node in nodes if node["type"] == "Retry"]
    found: dict[str, Any]
    (found,) = retried or nodes
    return found


def attempts_at(workflow: Any, template: Any) -> list[dict[str, Any]]:
    """The node of each attempt at a step, the first one first."""
    return [workflow["status"]["nodes"][child] for child in node_of(workflow, template)["children"]]


def messages_of(workflow: Any, template: Any) -> list[str]:
    """What each attempt at a step ended with, the first one first."""
    return [attempt.get("message", "") for attempt in attempts_at(workflow, template)]


def outputs_of(node: dict[str, Any]) -> dict[str, Any]:
    """A node's output parameters by name."""
    return {each["name"]: each.get("value") for each in node.get("outputs", {}).get("parameters", [])}


def uids(jobs: dict[str, dict[str, Any]]) -> list[str]:
    """Which jobs they are."""
    return [job["metadata"]["uid"] for job in jobs.values()]


def _retries_soon(step: Any) -> None:
    step.retry_strategy.backoff.duration = "1s"


def keeping(claim: str) -> dict[str, Any]:
    """Fields of a job whose replicas have a claim at /models and a folder of their own at /tmp/own."""
    mounted = {claim: "/models", "own": "/tmp/own"}
    return {
        "volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}}, {"name": "own", "emptyDir": {}}],
        "volume_mounts": [{"name": name, "mountPath": path} for name, path in mounted.items()],
    }


def one_training(**fields: Any) -> Any:
    """A workflow that is one training of a lone worker, with the exit handler; its retries come soon."""
    with Workflow(generate_name="one-", entrypoint="train", service_account_name="mxjob-workflow") as made:
        step = MXJobStep(**{"name": "train", "spec": MXJobSpec(image="i", command=COMMAND, servers=0), **fields})
    _retries_soon(step)
    delete_jobs_on_exit(made)
    return made


def one_runner(*, cleanup: Any = True, **fields: Any) -> Any:
    """The same by a runner; without clean-up nobody else deletes its job."""
    spec = MXJobSpec(image="i", command=COMMAND, servers=0)
    with Workflow(generate_name="runner-", entrypoint="train", service_account_name="mxjob-workflow") as made:
        given = {"name": "train", "image": "mxjob:test", "spec": spec, "delete_with_workflow": cleanup, **fields}
        step = MXJobRunner(**given)
    _retries_soon(step)
    if cleanup:
        delete_jobs_on_exit(made)
    return made


def by_template(name: str, *, cluster: bool = False, **parameters: Any) -> dict[str, Any]:
    """A workflow by a template that `kubectl apply -k` has made, of argo/templates or of its folder `cluster`."""
    given = [{"name": key.replace("_", "-"), "value": value} for key, value in parameters.items()]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": f"{name}-"},
        "spec": {"workflowTemplateRef": {"name": name, "clusterScope": cluster}, "arguments": {"parameters": given}},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def argo(argo_server: tuple[Any, Program], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """Argo at work; workflows, jobs and pods of the module's tests go at its end."""
    argoexec = programs_or_skip(ARGO)["argoexec"]
    server, controller = argo_server
    credentials = load_credentials(str(server.kubeconfig()))
    async with (
        real_api(server, None) as api,
        Client(credentials) as client,
        RecordingClient(credentials) as ours,
        ArgoPods(client, server, Path(argoexec), tmp_path_factory.mktemp("pods")) as pods,
    ):
        jobs_world = ControllerWorld(api, ours, server.kubeconfig(), NAMESPACE)
        await jobs_world.start()
        made = Argo(api, server, controller, pods, jobs_world)
        try:
            yield made
        finally:
            for plural in ("cronworkflows", "workflows", "mxjobs"):
                await api.delete(made.path(plural))
            await api.delete(made.path("pods"), {"gracePeriodSeconds": 0})
            await jobs_world.stop()
