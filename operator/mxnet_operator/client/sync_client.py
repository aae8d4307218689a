"""Client for notebooks and scripts: `AsyncMXJobClient` without the `await`."""

from pathlib import Path
from typing import Any

from mxnet_operator.client.async_client import AsyncMXJobClient, Manifest
from mxnet_operator.client.blocking import BlockingFace, blocking, blocking_iterator
from mxnet_operator.client.outage import RETRY_SECONDS
from mxnet_operator.description import MXJobDescription


class MXJobClient(BlockingFace):
    """Client for MXJobs on the cluster of a kubeconfig, or of the pod that runs it.

    Use it in `with`, or call `close`. Jobs go on when the client is closed, and when Ctrl-C ends a call.
    It works in notebooks, and threads may share it. Calls on a closed client raise RuntimeError.

    Every method may raise ApiError (the server rejects the request) and ApiUnavailable (the server can't be reached)
    of `mxnet_operator.kube.errors`. Creating the client may raise CredentialsError.

    Args:
        kubeconfig: Kubeconfig file. Default: `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
        context: Context of the kubeconfig. Default: the current one.
        namespace: Namespace of jobs that name none. Default: the context's.
        retry_timeout: Seconds for which a request is repeated while the server can't be reached.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        retry_timeout: float = RETRY_SECONDS,
    ) -> None:
        self._async: AsyncMXJobClient
        super().__init__(
            AsyncMXJobClient(kubeconfig=kubeconfig, context=context, namespace=namespace, retry_timeout=retry_timeout)
        )

    submit = blocking(AsyncMXJobClient.submit)
    get = blocking(AsyncMXJobClient.get)
    wait = blocking(AsyncMXJobClient.wait)
    logs = blocking_iterator(AsyncMXJobClient.logs)
    result = blocking(AsyncMXJobClient.result)
    metrics = blocking(AsyncMXJobClient.metrics)
    delete = blocking(AsyncMXJobClient.delete)

    def manifest(
        self,
        job: MXJobDescription | None = None,
        manifest: Manifest | None = None,
        *,
        allow_unknown_fields: bool = False,
    ) -> dict[str, Any]:
        """Return the manifest that `submit` would send, without sending it; see `AsyncMXJobClient.manifest`."""
        return self._async.manifest(job, manifest, allow_unknown_fields=allow_unknown_fields)
