"""Control plane with the in-memory API server, in the cluster's process; the kubelet binds the pods."""

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mxnet_operator.local.apiserver import ApiServer
from mxnet_operator.local.apiserver.logs import LogSource
from mxnet_operator.local.certificates import issue_identity
from mxnet_operator.local.control_plane.plane import ControlPlane
from mxnet_operator.local.home import ClusterFiles, write_private
from mxnet_operator.local.kubeconfig import kubeconfig


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
