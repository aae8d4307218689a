"""Control planes of the local cluster: the API server in this process, or the programs of Kubernetes."""

import asyncio
import contextlib
import hashlib
import secrets
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import trustme

from mxnet_operator.local.apiserver import ApiServer
from mxnet_operator.local.apiserver.logs import LogSource
from mxnet_operator.local.certificates import issue_identity, kubeconfig
from mxnet_operator.local.control_plane.programs import Programs, find_programs
from mxnet_operator.local.control_plane.server import (
    ADMINISTRATORS,
    CONTROLLER_MANAGER,
    SCHEDULER,
    User,
    add_crds,
    start_api_server,
    start_controllers,
)
from mxnet_operator.local.home import ClusterFiles, write_private
from mxnet_operator.local.kubelet.processes import Processes, ended
from mxnet_operator.local.kubelet.reaper import CLUSTER_MARKER


@dataclass(frozen=True)
class ControlPlane:
    """Running control plane, which the home's kubeconfig names."""

    port: int
    use_logs: Callable[[LogSource], None]
    """Sets the source of container logs."""
    died: Callable[[], Coroutine[Any, Any, None]]
    """Waits until a part of the control plane has ended, then returns or raises."""
    programs: tuple[int, ...] = ()
    """Process ids of its programs."""
    kubelet_context: ssl.SSLContext | None = None
    """TLS context of the kubelet's log server, if the control plane reads logs over HTTPS."""


@contextlib.asynccontextmanager
async def in_process(files: ClusterFiles, port: int, crds: Sequence[Mapping[str, Any]]) -> AsyncIterator[ControlPlane]:
    """Run an API server on this port, if it is free, that serves these CRDs, and write its kubeconfig."""
    identity = issue_identity()
    token = secrets.token_urlsafe(32)
    server, port = await _listen(identity.context, token, port, crds)

    def use_logs(source: LogSource) -> None:
        server.log_source = source

    async def died() -> None:
        await asyncio.Event().wait()  # it shares our fate

    try:
        config = kubeconfig(port=port, authority_pem=identity.authority_pem, token=token)
        write_private(files.kubeconfig, config)
        yield ControlPlane(port, use_logs, died)
    finally:
        await server.stop()


async def _listen(
    context: ssl.SSLContext, token: str, port: int, crds: Sequence[Mapping[str, Any]]
) -> tuple[ApiServer, int]:
    for candidate in (port, 0):
        server = ApiServer(crds, token)
        try:
            return server, await server.start(context, port=candidate)
        except OSError:
            if candidate == 0:
                raise
    raise AssertionError("port 0 is always free or an error")


ADMINISTRATOR = "mxjob-local"

_CONTROLLERS = "*,-endpoint,-endpointslice,-endpointslicemirroring"
"""--controllers of kube-controller-manager: all but the controllers that fail on pods with loopback addresses."""


@contextlib.asynccontextmanager
async def kubernetes(
    files: ClusterFiles, port: int, stop: asyncio.Event, crds: Collection[dict[str, Any]]
) -> AsyncIterator[ControlPlane]:
    """Run etcd, kube-apiserver (on this port, if it is free), kube-controller-manager and kube-scheduler.

    `crds` are installed before it is ready.

    Raises:
        MissingProgramsError: they are not on this machine.
        ProgramError: one doesn't start.
        AbortedError: `stop` was set before they were ready.
    """
    paths = find_programs()
    folder = files.control_plane
    marker = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:32]
    processes = Processes(marker)
    await processes.start()
    programs = Programs(paths, folder, {CLUSTER_MARKER: marker})
    try:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        authority = trustme.CA(organization_name="mxjob local cluster")
        port = programs.port(port)
        starting = asyncio.to_thread(_start, programs, authority, files, port, crds)
        await _unless(stop, programs, asyncio.create_task(starting))
        ids = tuple(each.process.pid for each in programs.started)
        yield ControlPlane(port, _ignore, lambda: _died(programs), ids, _kubelet_context(authority))
    finally:
        await asyncio.to_thread(programs.stop)
        await processes.stop()
        await asyncio.to_thread(shutil.rmtree, folder / "etcd", ignore_errors=True)


def _start(
    programs: Programs, authority: trustme.CA, files: ClusterFiles, port: int, crds: Collection[dict[str, Any]]
) -> None:
    users = [
        User(name, secrets.token_urlsafe(32), groups)
        for name, groups in ((ADMINISTRATOR, ADMINISTRATORS), (CONTROLLER_MANAGER, ""), (SCHEDULER, ""))
    ]
    server = start_api_server(programs, authority, users, port=port, anonymous_auth="false")
    add_crds(programs, server, crds)
    start_controllers(programs, server, controllers=_CONTROLLERS)
    config = kubeconfig(port=port, authority_pem=authority.cert_pem.bytes(), token=server.token)
    write_private(files.kubeconfig, config)


async def _unless(stop: asyncio.Event, programs: Programs, starting: "asyncio.Task[None]") -> None:
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not starting.done():
            programs.aborted.set()
    await starting


async def _died(programs: Programs) -> None:
    """Wait until one of the programs ends; raises ProgramError then."""
    waiting = [asyncio.create_task(ended(each.process)) for each in programs.started]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
    for program in programs.started:
        program.check()


def _kubelet_context(authority: trustme.CA) -> ssl.SSLContext:
    """Build the kubelet's TLS context, which admits only client certificates of this control plane."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _ignore(_: LogSource) -> None:
    """Do nothing: this API server reads logs from the kubelet by HTTPS."""
