"""Local cluster, all in this process: API server, kubelet, controller and dashboard."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from mxnet_operator.api.crd import definitions, legacy_definitions
from mxnet_operator.dashboard.server import Dashboard, new_token, page_template
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.apiserver.server import ApiServer
from mxnet_operator.local.certificates import issue_identity, kubeconfig
from mxnet_operator.local.claims import HomeLock, claim_subnet
from mxnet_operator.local.home import (
    ClusterFiles,
    ClusterState,
    installation,
    last_state,
    make_cluster_folder,
    write_private,
    write_state,
)
from mxnet_operator.local.images.store import ImageStore
from mxnet_operator.local.job_files import LocalJobFiles
from mxnet_operator.local.kubelet.kubelet import Kubelet
from mxnet_operator.local.kubelet.node import NodeOptions

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
class ClusterOptions(NodeOptions):
    """Options of a local cluster."""

    legacy: bool = False
    """Whether the CRDs of the overlay `legacy` are installed too."""


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
        ComponentDiedError: with the reason as its cause.
    """
    files = make_cluster_folder(home)
    async with contextlib.AsyncExitStack() as held:
        home_lock = held.enter_context(contextlib.closing(HomeLock(files.lock)))
        subnet, claim = claim_subnet(home)
        held.enter_context(claim)
        on_step("API server")
        last = last_state(files)
        crds = [*definitions(), *(legacy_definitions() if options.legacy else ())]
        server, port = await held.enter_async_context(_api_server(files, last.port if last else 0, crds))
        credentials = await asyncio.to_thread(load_credentials, str(files.kubeconfig))
        client, controllers_client = [await held.enter_async_context(Client(credentials)) for _ in range(2)]
        kubelet = Kubelet(client, files.pods, ImageStore(home), subnet, options)
        server.log_source = kubelet.log_source
        token = (last.dashboard_token if last else "") or new_token()
        dashboard = Dashboard(client, token, local=LocalJobFiles(files.pods, ImageStore(home)), uid_opens=True)
        held.push_async_callback(dashboard.stop)
        pages_port = await dashboard.start(last.pages_port if last else 0)
        controller = make_controller(controllers_client, page_template(pages_port))
        on_step("node and controller")
        components = {
            asyncio.create_task(kubelet.run()): "kubelet",
            asyncio.create_task(controller.run()): "controller",
        }
        try:
            await _first(_ready(client, controller.synced), stop, components)
            if not stop.is_set():
                started_at = time.time()
                state = ClusterState(
                    os.getpid(), started_at, port, subnet, pages_port, token, installation=installation()
                )
                write_state(files, state)
                on_ready(state)
                try:
                    await _first(_deleted(home_lock), stop, components)
                finally:
                    if home_lock.is_there():
                        write_state(files, msgspec.structs.replace(state, stopping=True))
        finally:
            await _stop(components)


async def _deleted(lock: HomeLock) -> None:
    """Wait until the home is deleted: nobody could find this cluster any more, nor stop it."""
    while lock.is_there():  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(_HOME_SECONDS)
    _log.warning("the folder of this cluster was deleted: it stops")


@contextlib.asynccontextmanager
async def _api_server(
    files: ClusterFiles, port: int, crds: Sequence[Mapping[str, Any]]
) -> AsyncIterator[tuple[ApiServer, int]]:
    """Run the API server on this port, or another if it is taken, and write its kubeconfig."""
    context, authority_pem = issue_identity()
    token = secrets.token_urlsafe(32)
    server = ApiServer(crds, token)
    try:
        port = await server.start(context, port=port)
    except OSError:
        server = ApiServer(crds, token)
        port = await server.start(context)
    try:
        write_private(files.kubeconfig, kubeconfig(port=port, authority_pem=authority_pem, token=token))
        yield server, port
    finally:
        await server.stop()


async def _ready(client: Client, synced: asyncio.Event) -> None:
    await synced.wait()
    while not any(node.get("status") for node in (await client.list(NODES.path()))["items"]):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def _first(goal: Coroutine[Any, Any, None], stop: asyncio.Event, components: Components) -> None:
    """Wait for the goal or `stop`, whichever comes first; raise if a component ends before."""
    waited: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait()), asyncio.create_task(goal)]
    try:
        done, _ = await asyncio.wait({*waited, *components}, return_when=asyncio.FIRST_COMPLETED)
        for task in done & components.keys():
            raise ComponentDiedError(f"the {components[task]} has stopped") from task.exception()
        for task in done:
            task.result()
    finally:
        for task in waited:
            task.cancel()


async def _stop(components: Components) -> None:
    for task in components:
        task.cancel()
    for result in await asyncio.gather(*components, return_exceptions=True):
        if isinstance(result, Exception):
            _log.debug("while stopping", exc_info=result)
