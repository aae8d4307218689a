"""Gangs on two fake nodes of eight GPUs each, on a control plane with a gang scheduler, and what they hold."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from builders import make_mxjob
from control_plane import control_plane
from controller_fixtures import PODS, ControllerWorld, submitted
from fake_nodes import fake_node
from kubernetes_programs import CONTROL_PLANE, programs_or_skip, source_of
from left_overs import folder_prefix

from mxnet_operator.api import names
from mxnet_operator.api.crd import definitions

GPU = names.GPU
TWELVE = (7, 6, 5, 7, 3, 6, 4, 7, 5, 6, 3, 7)
"""Workers of the gangs of docs/gangs.md: 66 GPUs in all, of which there are 16."""
ONE_GPU = {"limits": {GPU: "1"}}
NATIVE_GATES = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
NATIVE_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
NATIVE_WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
COSCHEDULING_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_ACCESS = {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["get", "list", "watch", "patch"]}


@contextlib.contextmanager
def native_control_plane(gates: str = NATIVE_GATES) -> Iterator[Any]:
    """A control plane whose kube-scheduler places pod groups of scheduling.k8s.io."""
    paths = programs_or_skip(CONTROL_PLANE)
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder,
        control_plane(
            paths,
            Path(folder),
            definitions(),
            feature_gates=gates,
            runtime_config="scheduling.k8s.io/v1alpha2=true",
            scheduler={"feature_gates": gates},
            controller_manager={"feature_gates": "GenericWorkload=true"},
        ) as server,
    ):
        yield server


@contextlib.contextmanager
def coscheduling_control_plane() -> Iterator[Any]:
    """A control plane whose scheduler is that of scheduler-plugins, with the plug-in Coscheduling."""
    paths = programs_or_skip((*CONTROL_PLANE, "scheduler-plugins"))
    paths["kube-scheduler"] = paths["scheduler-plugins"]
    crd = yaml.safe_load((source_of("scheduler-plugins") / "manifests" / "coscheduling" / "crd.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name:
        folder = Path(name)
        plugins = {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        }
        arguments = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 0}}]
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(folder / "system-kube-scheduler.kubeconfig")},
            "profiles": [
                {"schedulerName": name, "plugins": plugins, "pluginConfig": arguments}
                for name in ("default-scheduler", "scheduler-plugins-scheduler")
            ],
        }
        config = folder / "scheduler.yaml"
        config.write_text(yaml.safe_dump(configuration))
        with control_plane(paths, folder, [*definitions(), crd], scheduler={"config": config}) as server:
            role = {"metadata": {"name": "coscheduling"}, "rules": [_ACCESS]}
            server.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"}
            binding = {
                "metadata": {"name": "coscheduling"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coscheduling"},
                "subjects": [subject],
            }
            server.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
            yield server


def two_nodes() -> tuple[dict[str, Any], ...]:
    """The manifests of two nodes with eight GPUs each."""
    return tuple(fake_node(name, **{GPU: "8"}) for name in ("node-1", "node-2"))


def gang(name: str, workers: int, **run_policy: Any) -> Any:
    """The builder of a gang: a scheduler, a server, and so many workers of one GPU."""
    builder = make_mxjob(name).scheduler().server(1).worker(workers, resources=ONE_GPU).restart("ExitCode")
    return builder.run_policy(**run_policy) if run_policy else builder


def the_twelve() -> dict[str, dict[str, Any]]:
    """The manifests of the twelve gangs."""
    return {f"gang-{index}": submitted(gang(f"gang-{index}", workers)) for index, workers in enumerate(TWELVE)}


class Gangs:
    """What the gangs of a namespace hold, followed by a watch; `sizes` has the pods of each by its name.

    Of `killed`, a worker is killed when they run whole for the first time.
    """

    def __init__(self, world: ControllerWorld, sizes: dict[str, int], killed: Iterable[str] = ()) -> None:
        self.world, self.sizes, self.killed = world, sizes, set(killed)
        self.pods: dict[str, dict[str, Any]] = {}
        self._ended: set[str] = set()

    @property
    def incomplete(self) -> dict[str, int]:
        """The gangs that hold GPUs and of which some pod has no node, with how many of their pods have one."""
        placed = Counter(job_of(pod) for pod in self.pods.values() if pod["spec"].get("nodeName"))
        return {name: placed[name] for name in self.gpus if placed[name] < self.sizes[name]}

    @property
    def gpus(self) -> Counter[str]:
        """How many GPUs each gang holds, but for pods that are terminating."""
        return Counter(
            job_of(pod)
            for pod in self.pods.values()
            if "-worker-" in pod["metadata"]["name"] and pod["spec"].get("nodeName") and is_unfinished(pod)
        )

    async def follow(self) -> None:
        """Keep `pods` as they are on the server, and have whole gangs end after each event, until cancelled."""
        path = self.world.path(PODS)
        listed = (await self.world.api.get(path)).ok()
        self.pods = {pod["metadata"]["name"]: pod for pod in listed["items"]}
        async with self.world.api.watch(path, resourceVersion=listed["metadata"]["resourceVersion"]) as events:
            while True:
                await self._end_what_is_whole()
                event = await events.next()
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    self.pods.pop(name, None)
                elif event["type"] != "BOOKMARK":
                    self.pods[name] = event["object"]

    async def _end_what_is_whole(self) -> None:
        """Have a gang whose pods all run end well, as training does once all its processes have met.

        None ends while another holds GPUs and lacks some: one that waits for more gets none.
        """
        if self.incomplete:
            return
        for name, size in self.sizes.items():
            running = [each for each, pod in self.pods.items() if job_of(pod) == name and runs(pod)]
            uids = {self.pods[each]["metadata"]["uid"] for each in running}
            if len(running) == size and not uids & self._ended:
                self._ended |= uids
                if name in self.killed:
                    self.killed.discard(name)
                    await self.world.move([f"{name}-worker-0"], "Failed", exit_code=137, missing_ok=True)
                    continue
                await self.world.move(sorted(running), "Succeeded", exit_code=0, missing_ok=True)


def job_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"][names.LABEL_JOB_NAME])


def is_unfinished(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def runs(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
