"""HTTP server of the job pages, on loopback; a page is found by the job's uid.

A browser has no bearer token, and can't be made to trust the cluster's own certificate authority. The uid is random
(122 bits) and in no process's arguments: another user of the machine can reach the port, but can ask for nothing
(docs/decisions/0017-a-job-page-is-found-by-its-uid.md).
"""

import asyncio
import hmac
import logging
from typing import Any, Final

from aiohttp import web

from mxnet_operator.api import names
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import PODS, Resource
from mxnet_operator.local.job_pages.page import LAST_LINES, JobView, html, replica_view
from mxnet_operator.readers.pods import is_owned_by

_JOBS: Final = Resource(names.GROUP, names.VERSION, names.PLURAL)
_PATH: Final = "/jobs/{namespace}/{name}/{uid}"
_LOG_BYTES: Final = 4 * 1024 * 1024
_MOST_LOGS: Final = 20
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_log = logging.getLogger(__name__)


def page_template(port: int) -> str:
    """Return the URL template of job pages, for Airflow's `[mxnet] job_url_template`."""
    return f"http://127.0.0.1:{port}{_PATH}"


class JobPages:
    """Web server of job pages, a client of the API server.

    Args:
        client: Client to read jobs, pods and logs with.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> int:
        """Start to listen on loopback, on this port if it is free; returns the port."""
        app = web.Application()
        app.router.add_get(_PATH, self._page)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
        except OSError:
            if not port:
                raise
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        bound: int = self._runner.addresses[0][1]
        return bound

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _page(self, request: web.Request) -> web.Response:
        where = request.match_info
        try:
            view = await self._view(where["namespace"], where["name"], where["uid"])
        except (ApiError, ApiUnavailable) as e:
            _log.warning("the page of job %s/%s: %s", where["namespace"], where["name"], e)
            return web.Response(status=503, text="The cluster does not answer; its log says why.\n", headers=_HEADERS)
        if view is None:
            text = "There is no such job: it was deleted, or the cluster was started anew.\n"
            return web.Response(status=404, text=text, headers=_HEADERS)
        return web.Response(text=html(view), content_type="text/html", headers=_HEADERS)

    async def _view(self, namespace: str, name: str, uid: str) -> JobView | None:
        job = await self._client.find(_JOBS.path(namespace, name))
        if job is None:
            return None
        if not hmac.compare_digest(job["metadata"]["uid"].encode(), uid.encode(errors="replace")):
            return None
        selector = f"{names.LABEL_JOB_NAME}={name}"
        pods = (await self._client.list(PODS.path(namespace), {"labelSelector": selector}))["items"]
        own = [pod for pod in pods if is_owned_by(pod, uid)]
        own.sort(key=lambda pod: str(pod["metadata"]["name"]))
        logs = await asyncio.gather(*(self._log(namespace, pod) for pod in own[:_MOST_LOGS]))
        logs += [("", None)] * (len(own) - len(logs))
        return JobView(job, [replica_view(pod, *log) for pod, log in zip(own, logs, strict=True)])

    async def _log(self, namespace: str, pod: dict[str, Any]) -> tuple[str, str | None]:
        """Read the begin of a log, for the curve, and if there is more of it, its last lines."""
        path = PODS.path(namespace, pod["metadata"]["name"], "log")
        query = {"container": names.CONTAINER, "limitBytes": str(_LOG_BYTES)}
        try:
            begin = await self._read(path, query)
            is_cut = len(begin) >= _LOG_BYTES
            last = await self._read(path, {**query, "tailLines": str(LAST_LINES)}) if is_cut else None
        except (ApiError, ApiUnavailable):
            return "", None  # not started, or gone
        return _text(begin), None if last is None else _text(last)

    async def _read(self, path: str, query: dict[str, str]) -> bytes:
        return b"".join([chunk async for chunk in self._client.stream(path, query)])


def _text(log: bytes) -> str:
    return log.decode("utf-8", errors="replace")
