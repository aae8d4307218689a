"""Local cluster: a control plane, and in this process the kubelet and the controller."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from mxnet_operator.api.definitions import definitions, legacy_definitions
from mxnet_operator.dashboard.server import Dashboard, new_token, page_template
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.claims import HomeLock, claim_subnet
from mxnet_operator.local.control_plane.plane import ControlPlane, in_process, kubernetes
from mxnet_operator.local.control_plane.programs import AbortedError
from mxnet_operator.local.home import ClusterFiles, ClusterState, last_state, make_cluster_folder, write_state
from mxnet_operator.local.images import ImageStore
from mxnet_operator.local.job_files import LocalJobFiles
from mxnet_operator.local.kubelet.kubelet import Kubelet

NODE = "local"
LOCAL, KUBERNETES = "local", "kubernetes"
"""Names of the control planes: the in-memory API server, and the programs of Kubernetes."""

_HOME_SECONDS = 2.0
"""Seconds between two looks at whether the home still exists."""

Components = dict[asyncio.Task[Any], str]

_log = logging.getLogger(__name__)


class Controller(Protocol):
    """Controller of the jobs, passed in because the packages `local` and `controller` don't import each other."""

    synced: asyncio.Event

    async def run(self) -> None:
        """Run until cancelled; `synced` is set once its caches are filled."""


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a local cluster; None stands for what this machine has."""

    cpus: float | None = None
    gpus: int | None = None
    control_plane: str = LOCAL
    legacy: bool = False
    """Whether the CRDs of the overlay `legacy` are installed too."""
    gpu_share: int = 1
    """Containers that may share a GPU."""
    resources: tuple[tuple[str, int], ...] = ()
    """Names and counts of further resources that the node offers."""
    node_labels: tuple[tuple[str, str], ...] = ()
    """Keys and values of labels of the node, in addition to every node's own labels."""


class ComponentDiedError(Exception):
    """A component of the cluster ended unexpectedly, which ends the cluster."""


async def run_cluster(
    home: Path,
    options: ClusterOptions,
    make_controller: Callable[[Client, str], Controller],
    *,
    on_step: Callable[[str], None],
    on_ready: Callable[[ClusterState], None],
    stop: asyncio.Event,
) -> None:
    """Run the cluster of this home until `stop` is set, the home is deleted or a component dies.

    `make_controller` is called with a client and the URL template of the job pages, `on_step` with each step of the
    start, then `on_ready`. On return, every process that the cluster started has ended.

    Raises:
        UnsafeHomeError, AlreadyRunningError, NoFreeSubnetError: it can't start here.
        MissingProgramsError, ProgramError: the control plane's programs are missing, or don't start.
        ComponentDiedError: with the reason as its cause.
    """
    files = make_cluster_folder(home)
    async with contextlib.AsyncExitStack() as held:
        home_lock = held.enter_context(HomeLock(files.lock))
        subnet, claim = claim_subnet(home)
        held.enter_context(claim)
        on_step("API server" if options.control_plane == LOCAL else "control plane")
        try:
            plane = await held.enter_async_context(_control_plane(files, options, stop))
        except AbortedError:
            return
        credentials = await asyncio.to_thread(load_credentials, str(files.kubeconfig))
        client, controllers_client = [await held.enter_async_context(Client(credentials)) for _ in range(2)]
        kubelet = Kubelet(
            client,
            files.pods,
            ImageStore(home),
            subnet,
            node_name=NODE,
            cpus=options.cpus,
            gpus=options.gpus,
            gpu_share=options.gpu_share,
            resources=dict(options.resources),
            node_labels=dict(options.node_labels),
            kubernetes=plane.kubelet_context,
        )
        plane.use_logs(kubelet.log_source)
        last = last_state(files)
        token = (last.dashboard_token if last else "") or new_token()
        dashboard = Dashboard(client, token, local=LocalJobFiles(files.pods, ImageStore(home)), uid_opens=True)
        held.push_async_callback(dashboard.stop)
        pages_port = await dashboard.start(last.pages_port if last else 0)
        controller = make_controller(controllers_client, page_template(pages_port))
        on_step("node and controller")
        components = {
            asyncio.create_task(kubelet.run()): "kubelet",
            asyncio.create_task(controller.run()): "controller",
            asyncio.create_task(plane.died()): "control plane",
        }
        try:
            await _first(_ready(client, controller.synced), stop, components)
            if not stop.is_set():
                started_at = time.time()
                state = ClusterState(
                    os.getpid(),
                    started_at,
                    plane.port,
                    subnet,
                    options.control_plane,
                    plane.programs,
                    pages_port,
                    dashboard_token=token,
                )
                write_state(files, state)
                on_ready(state)
                try:
                    await _first(_deleted(home_lock), stop, components)
                finally:
                    if home_lock.is_there():
                        write_state(files, msgspec.structs.replace(state, stopping=True))
        finally:
            await _stop(components, kubelet)


async def _deleted(lock: HomeLock) -> None:
    """Wait until the home is deleted: nobody could find this cluster any more, nor stop it."""
    while lock.is_there():  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(_HOME_SECONDS)
    _log.warning("the folder of this cluster was deleted: it stops")


def _control_plane(
    files: ClusterFiles, options: ClusterOptions, stop: asyncio.Event
) -> contextlib.AbstractAsyncContextManager[ControlPlane]:
    last = last_state(files)
    port = last.port if last else 0
    crds = [*definitions(), *(legacy_definitions() if options.legacy else ())]
    return kubernetes(files, port, stop, crds) if options.control_plane == KUBERNETES else in_process(files, port, crds)


async def _ready(client: Client, synced: asyncio.Event) -> None:
    await synced.wait()
    while not _node_is_ready(await client.list(NODES.path())):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def _node_is_ready(nodes: dict[str, object]) -> bool:
    items = nodes["items"]
    return isinstance(items, list) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for node in items
        if not node.get("spec", {}).get("taints")  # kube-controller-manager takes notice a moment later
        for condition in node.get("status", {}).get("conditions", ())
    )


async def _first(goal: Coroutine[Any, Any, None] | None, stop: asyncio.Event, components: Components) -> None:
    """Wait for the goal or `stop`, whichever comes first; raise if a component ends before."""
    waited: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if goal is not None:
        waited.append(asyncio.create_task(goal))
    try:
        done, _ = await asyncio.wait({*waited, *components}, return_when=asyncio.FIRST_COMPLETED)
        for task in done & components.keys():
            raise ComponentDiedError(f"the {components[task]} has stopped") from task.exception()
        for task in done:
            task.result()
    finally:
        for task in waited:
            task.cancel()


async def _stop(components: Components, kubelet: Kubelet) -> None:
    for task, name in components.items():
        if name != "kubelet":
            task.cancel()
    await kubelet.stop()
    for task in components:
        task.cancel()
    for result in await asyncio.gather(*components, return_exceptions=True):
        if isinstance(result, Exception):
            _log.debug("while stopping", exc_info=result)
