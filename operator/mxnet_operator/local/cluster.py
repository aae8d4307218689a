"""A cluster in one process: API server, scheduler and kubelet, and the controller that it is given."""

import asyncio
import contextlib
import logging
import os
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.apiserver import ApiServer
from mxnet_operator.local.certificates import issue_identity
from mxnet_operator.local.claims import HomeLock, claim_subnet
from mxnet_operator.local.home import ClusterFiles, make_cluster_folder, write_private
from mxnet_operator.local.images import ImageStore
from mxnet_operator.local.kubeconfig import kubeconfig
from mxnet_operator.local.kubelet import Kubelet
from mxnet_operator.local.state import ClusterState, last_state, write_state

NODE = "local"

Components = dict[asyncio.Task[Any], str]

_log = logging.getLogger(__name__)


class Controller(Protocol):
    """What runs the jobs; it is handed in, since the rooms `local` and `controller` don't know each other."""

    synced: asyncio.Event

    async def run(self) -> None:
        """Run until cancelled; `synced` is set once its caches are filled."""


@dataclass(frozen=True)
class ClusterOptions:
    """What a user may choose; None: what this machine has."""

    cpus: float | None = None
    gpus: int | None = None


class ComponentDiedError(Exception):
    """A part of the cluster ended by itself, which none should: the cluster ends with it."""


async def run_cluster(
    home: Path,
    options: ClusterOptions,
    make_controller: Callable[[Client], Controller],
    *,
    on_step: Callable[[str], None],
    on_ready: Callable[[ClusterState], None],
    stop: asyncio.Event,
) -> None:
    """Be the cluster of this home until `stop` is set, or a part of it dies.

    `on_step` hears what is being done before `on_ready` is called. When this returns, no process that the cluster
    started is left.

    Raises:
        UnsafeHomeError, AlreadyRunningError, NoFreeSubnetError: it can't start here.
        ComponentDiedError: with the reason as its cause.
    """
    files = make_cluster_folder(home)
    async with contextlib.AsyncExitStack() as held:
        held.enter_context(HomeLock(files.lock))
        subnet, claim = claim_subnet(home)
        held.enter_context(claim)
        on_step("API server")
        server, port = await held.enter_async_context(_api_server(files))
        credentials = await asyncio.to_thread(load_credentials, str(files.kubeconfig))
        client, controllers_client = [await held.enter_async_context(Client(credentials)) for _ in range(2)]
        kubelet = Kubelet(
            client, files.pods, ImageStore(home), subnet, node_name=NODE, cpus=options.cpus, gpus=options.gpus
        )
        server.log_source = kubelet.log_source
        controller = make_controller(controllers_client)
        on_step("node and controller")
        components = {
            asyncio.create_task(kubelet.run()): "kubelet",
            asyncio.create_task(controller.run()): "controller",
        }
        try:
            await _first(_ready(client, controller.synced), stop, components)
            if not stop.is_set():
                state = ClusterState(os.getpid(), time.time(), port, subnet)
                write_state(files, state)
                on_ready(state)
                await _first(None, stop, components)
        finally:
            await _stop(components, kubelet)


@contextlib.asynccontextmanager
async def _api_server(files: ClusterFiles) -> AsyncIterator[tuple[ApiServer, int]]:
    """An API server on the port of this home's last one, if it is free, and the kubeconfig that leads to it."""
    identity = issue_identity()
    token = secrets.token_urlsafe(32)
    last = last_state(files)
    server, port = await _listen(identity.context, token, last.port if last else 0)
    try:
        config = kubeconfig(port=port, authority_pem=identity.authority_pem, token=token)
        write_private(files.kubeconfig, config)
        yield server, port
    finally:
        await server.stop()


async def _listen(context: ssl.SSLContext, token: str, port: int) -> tuple[ApiServer, int]:
    for candidate in (port, 0):
        server = ApiServer([custom_resource_definition()], token)
        try:
            return server, await server.start(context, port=candidate)
        except OSError:
            if candidate == 0:
                raise
    raise AssertionError("port 0 is always free or an error")


async def _ready(client: Client, synced: asyncio.Event) -> None:
    await synced.wait()
    while not _node_is_ready(await client.list(NODES.path())):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def _node_is_ready(nodes: dict[str, object]) -> bool:
    items = nodes["items"]
    return isinstance(items, list) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for node in items
        for condition in node.get("status", {}).get("conditions", ())
    )


async def _first(goal: Coroutine[Any, Any, None] | None, stop: asyncio.Event, components: Components) -> None:
    """Wait for the goal or for `stop`, whichever comes first; a component that ends before is an error."""
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
