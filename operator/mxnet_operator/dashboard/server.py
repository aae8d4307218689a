"""Web server of the dashboard on loopback: pages and their live changes; on the local cluster also stop and rerun."""

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.kinds import ALL
from mxnet_operator.client.job_actions import again, request_stop
from mxnet_operator.client.jobs import in_v1_words, pod_name, pods_of, replicas, resource_of_job
from mxnet_operator.client.pod_log import log_lines
from mxnet_operator.client.stored_jobs import stored_job, stored_jobs
from mxnet_operator.client.training import running_trainings
from mxnet_operator.dashboard import job_list, job_page
from mxnet_operator.dashboard.job_feed import JobFeed, LocalFiles
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import PODS, is_path_segment
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.report.document import document

_LOG = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_JOB: Final = "/jobs/{namespace}/{name}/{uid}"
_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # a browser sends no Origin with a form where it is no-referrer
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HEAD: Final = (
    '<link rel="stylesheet" href="/static/dashboard.css"><script src="/static/idiomorph.min.js" defer></script>'
    '<script src="/static/dashboard.js" defer></script>'
)
_PAUSE: Final = 0.25
"""Seconds between two messages to a page, so that changes travel together."""
_REDRAW: Final = 1.0
"""Seconds between two drawings of a page."""
_TICK: Final = 5.0
"""Seconds after which what is unfinished is drawn anew: time lines grow, trainings progress."""


def new_token() -> str:
    return secrets.token_urlsafe(24)


def page_template(port: int) -> str:
    """Return the URL template of job pages, for Airflow's `[mxnet] job_url_template`."""
    return f"http://127.0.0.1:{port}{_JOB}"


class Dashboard:
    """Web server of the dashboard, a client of an API server.

    Args:
        client: Client to read with.
        token: What the address of a first visit has to hold; a cookie takes its place.
        namespace: Namespace whose jobs are listed; None: all.
        local: Reader of the local cluster's files: pages list them, and can stop and rerun a job. None: read-only.
        uid_opens: Whether a job's page opens to who knows the job's uid, without the token.
    """

    def __init__(
        self,
        client: Client,
        token: str,
        *,
        namespace: str | None = None,
        local: LocalFiles | None = None,
        uid_opens: bool = False,
    ) -> None:
        self._client = client
        self._token = token
        self._namespace = namespace
        self._local = local
        self._uid_opens = uid_opens
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """Address of the list of jobs, with the token."""
        return f"http://127.0.0.1:{self._port}/?token={self._token}"

    async def start(self, port: int = 0) -> int:
        """Start to listen on loopback, on this port if it is free; returns the port."""
        app = web.Application(middlewares=[self._guard])
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/", self._list)
        app.router.add_get("/changes", self._list_changes)
        app.router.add_get(_JOB, self._job)
        app.router.add_get(f"{_JOB}/changes", self._job_changes)
        app.router.add_get(f"{_JOB}/logs/{{replica}}", self._download)
        app.router.add_static("/static", Path(__file__).parent / "static", follow_symlinks=True)
        if self._local is not None:
            app.router.add_post(f"{_JOB}/stop", self._stop_job)
            app.router.add_post(f"{_JOB}/rerun", self._rerun)
        # a page that is closed takes its watches with it at once
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
        except OSError:
            if not port:
                raise
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        return self._port

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer only requests to loopback by its own names, and with the token: no page of another site gets in."""
        if request.host.rpartition(":")[0] not in _HOSTS and request.host not in _HOSTS:
            return web.Response(status=403, text="This server answers to 127.0.0.1 and localhost only.\n")
        if "token" in request.query:
            if not _same(request.query["token"], self._token):
                return _unknown_visitor()
            answer = web.Response(status=303, headers={"Location": f"/{quote(request.path.lstrip('/'))}"})
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="Lax")
            return answer
        is_open = request.path.startswith("/static/") or (self._uid_opens and "uid" in request.match_info)
        changes = request.method not in {"GET", "HEAD"}
        if (changes or not is_open) and not self._is_known(request):
            return _unknown_visitor()
        if changes and request.headers.get("Origin") != f"http://{request.host}":  # other ports get the cookie, too
            return web.Response(status=403, text="Only the dashboard's own pages may change a job.\n")
        try:
            return await handler(request)
        except (ApiError, ApiUnavailable) as error:
            _LOG.warning("%s: %s", request.path, error)
            return web.Response(status=503, text=f"The cluster does not answer: {error}\n")
        except ConnectionError as error:
            _LOG.debug("%s: %s", request.path, error)  # the browser has left
            return web.Response()

    @property
    def _cookie(self) -> str:
        return f"mxjob-dashboard-{self._port}"  # browsers share cookies between the ports of a host

    def _is_known(self, request: web.Request) -> bool:
        return _same(request.cookies.get(self._cookie, ""), self._token)

    async def _list(self, request: web.Request) -> web.Response:
        jobs = [in_v1_words(job) for job in await stored_jobs(self._client, self._namespace, {})]
        view = job_list.View.of(request.query)
        return _page("MXJobs", job_list.body(job_list.parts(jobs, {}, view), self._client.server, view))

    async def _list_changes(self, request: web.Request) -> web.StreamResponse:
        stream, view = await _Stream.open(request), job_list.View.of(request.query)
        async with (
            stream.until_outage(),
            contextlib.aclosing(job_list.all_jobs(self._client, self._namespace, _TICK)) as changes,
        ):
            trainings: dict[str, TrainingLog] = {}
            reading: asyncio.Task[dict[str, TrainingLog]] | None = None
            read = -_TICK
            try:
                async for jobs in changes:
                    if reading is not None and reading.done():
                        trainings, reading = reading.result(), None
                    if reading is None and time.monotonic() - read >= _TICK:
                        reading, read = asyncio.create_task(running_trainings(self._client, jobs)), time.monotonic()
                        await asyncio.wait({reading}, timeout=_PAUSE)  # a log that doesn't come holds up no list
                    await stream.draw(job_list.parts(jobs, trainings, view))
                    await asyncio.sleep(_REDRAW)
            finally:
                if reading is not None:
                    reading.cancel()
        return stream.response

    async def _job(self, request: web.Request) -> web.Response:
        job = await self._find(request)
        feed = JobFeed(self._client, job, "", self._local)
        await feed.read()
        found = job_page.parts(feed, is_live=False, may_change=self._may_change(request))
        title = f"{job['metadata']['name']}: {job_state(job) or 'new'}"
        return _page(title, job_page.body(found, job, back=self._is_known(request)))

    async def _job_changes(self, request: web.Request) -> web.StreamResponse:
        job = await self._find(request)
        replica = request.query.get("log", "")
        replica = _checked(job, replica) if replica else ""
        stream = await _Stream.open(request)
        async with stream.until_outage(), JobFeed(self._client, job, replica, self._local) as feed:
            may_change = self._may_change(request)
            drawn, now = 0.0, time.monotonic
            await asyncio.sleep(_REDRAW / 2)  # the log's figures, at first
            while not feed.is_deleted:
                lines, feed.lines = feed.lines, []
                await stream.log(lines)
                is_due = feed.is_new or (job_state(feed.job) not in TERMINAL and now() - drawn >= _TICK)
                if feed.is_complete and is_due and now() - drawn >= _REDRAW:
                    drawn, feed.is_new = now(), False
                    await stream.draw(job_page.parts(feed, may_change=may_change))
                await feed.wait(_REDRAW if feed.is_new else _TICK)
                await asyncio.sleep(_PAUSE)
            await stream.draw(job_page.parts(feed))
            await stream.send("end", "")
        return stream.response

    async def _download(self, request: web.Request) -> web.StreamResponse:
        job = await self._find(request)
        replica = _checked(job, request.match_info["replica"])
        name, namespace = pod_name(job["metadata"]["name"], replica), job["metadata"]["namespace"]
        pod = await self._client.find(PODS.path(namespace, name))
        if pod is None or not pods_of(job, [pod]):
            raise web.HTTPNotFound(text=f"{replica} has no pod, and so no log.\n")
        response = web.StreamResponse(headers={"Content-Disposition": f'attachment; filename="{name}.log"'})
        response.content_type = "text/plain"
        await response.prepare(request)
        async for line in log_lines(self._client, namespace, name):
            await response.write(line.encode("utf-8", "surrogateescape"))
        return response

    def _may_change(self, request: web.Request) -> bool:
        return self._local is not None and self._is_known(request)

    async def _stop_job(self, request: web.Request) -> web.Response:
        job = await self._find(request)
        if job_state(job) not in TERMINAL:
            await request_stop(self._client, job)
        return _see(job)

    async def _rerun(self, request: web.Request) -> web.Response:
        job = await self._stored(request)
        path = resource_of_job(job).path(job["metadata"]["namespace"])
        return _see(await self._client.create(path, again(job)))

    async def _find(self, request: web.Request) -> dict[str, Any]:
        """Find the job of an address in the words of v1; raises HTTPNotFound."""
        return in_v1_words(await self._stored(request))

    async def _stored(self, request: web.Request) -> dict[str, Any]:
        """Find the job of an address, of whatever kind, as it is stored.

        Raises:
            HTTPNotFound: there is none of that name with that uid.
        """
        where = request.match_info
        if is_path_segment(where["namespace"]) and is_path_segment(where["name"]):
            of_kinds = (stored_job(self._client, kind, where["namespace"], where["name"]) for kind in ALL)
            for job in await asyncio.gather(*of_kinds):
                if job is not None and _same(job["metadata"]["uid"], where["uid"]):
                    return job
        raise web.HTTPNotFound(text="There is no such job: it was deleted, or the cluster was started anew.\n")


class _Stream:
    """Server-sent events of one page."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response
        self._drawn: dict[str, str] = {}

    @classmethod
    async def open(cls, request: web.Request) -> "_Stream":
        response = web.StreamResponse()
        response.content_type = "text/event-stream"
        await response.prepare(request)
        return cls(response)

    @contextlib.asynccontextmanager
    async def until_outage(self) -> AsyncIterator[None]:
        """End the stream if the API server is unavailable: the browser connects again."""
        try:
            yield
        except (ApiError, ApiUnavailable) as error:
            _LOG.warning("%s", error)

    async def send(self, event: str, data: Any) -> None:
        await self.response.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())

    async def draw(self, found: dict[str, str]) -> None:
        """Send the parts that differ from what was sent before; at least a comment, which shows who has left."""
        for name, part in found.items():
            if self._drawn.get(name) != part:
                self._drawn[name] = part
                await self.send("part", [name, part])
        await self.response.write(b":\n\n")

    async def log(self, lines: list[str]) -> None:
        if lines:
            await self.send("log", "".join(lines))


def _see(job: dict[str, Any]) -> web.Response:
    where = job["metadata"]
    place = _JOB.format(**{key: quote(where[key]) for key in ("namespace", "name", "uid")})
    return web.Response(status=303, headers={"Location": place})


def _page(title: str, sections: Iterable[str]) -> web.Response:
    return web.Response(text=document(title, sections, head=_HEAD), content_type="text/html")


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def _checked(job: dict[str, Any], replica: str) -> str:
    if replica not in replicas(job):
        raise web.HTTPNotFound(text="The job has no such replica.\n")
    return replica


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), known.encode(errors="replace"))


def _unknown_visitor() -> web.Response:
    text = "Open the dashboard by the address that was printed with it: mxjob dashboard, or mxjob local status.\n"
    return web.Response(status=401, text=text)
