"""Read-only web pages of the local cluster's jobs, for links from Airflow: state, replicas, curve, logs."""

import asyncio
import hmac
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from aiohttp import web

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state, terminal_message
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import PODS, Resource
from mxnet_operator.readers.pods import is_owned_by, label_of, main_state, status_of, terminated_of, waiting_of
from mxnet_operator.readers.training_log import TIME_COST, parse_epoch_line
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_operator.report.document import document

_LOG = logging.getLogger(__name__)

_REFRESH_SECONDS: Final = 3
LAST_LINES: Final = 300
"""Lines of a log that are shown."""
_WIDTH, _HEIGHT, _MARGIN = 860, 260, 44
_LOG_STYLE: Final = "pre { overflow: auto; max-height: 24rem; margin: 0; font: .85rem/1.5 ui-monospace, monospace; }"
_COLOURS: Final = ("#0b5cad", "#8a6d1f", "#0d5c3c", "#7b3fa0")


@dataclass(frozen=True)
class ReplicaView:
    """View of one pod of a job."""

    pod: str
    label: str
    state: str
    started_at: str
    finished_at: str
    log: str
    """The log, from its begin to where it may be cut."""
    last: str | None = None
    """The last lines of a log that is cut."""


@dataclass(frozen=True)
class JobView:
    """View of a job for its page."""

    job: Mapping[str, Any]
    replicas: Sequence[ReplicaView]


def replica_view(pod: Mapping[str, Any], log: str, last: str | None = None) -> ReplicaView:
    """Build the view of a pod, from its API object and its log, with the `last` lines of one that is cut."""
    status, (init_container, ended) = status_of(pod), terminated_of(pod)
    running, (_, waiting) = main_state(status).running, waiting_of(status)
    running_since = f"{running.started_at:%Y-%m-%dT%H:%M:%SZ}" if running and running.started_at else ""
    words = waiting.reason or status.phase
    if ended:
        who = f"init container {init_container} " if init_container else ""
        words = f"{who}exited with code {ended.get('exitCode')}"
    return ReplicaView(
        pod=pod["metadata"]["name"],
        label=label_of(pod),
        state=words,
        started_at=str(ended.get("startedAt") or running_since),
        finished_at=str(ended.get("finishedAt") or ""),
        log=log,
        last=last,
    )


def html(view: JobView) -> str:
    """Build the page; until the job has finished it reloads itself every few seconds."""
    metadata, state = view.job["metadata"], job_state(view.job) or "new"
    return document(
        metadata["name"],
        metadata["namespace"],
        state,
        terminal_message(view.job) or " ".join(waiting_reasons(view.job)),
        (_curve(view), _table(view), *map(_log, view.replicas)),
        meta="" if state in TERMINAL else f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">',
        style=_LOG_STYLE,
    )


def _table(view: JobView) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Replica", "Pod", "State", "Started", "Ended"))
    rows = "\n".join(
        f'<tr><th scope="row">{escape(replica.label)}</th><td><code>{escape(replica.pod)}</code></td>'
        f"<td>{escape(replica.state)}</td><td>{escape(replica.started_at)}</td>"
        f"<td>{escape(replica.finished_at)}</td></tr>"
        for replica in view.replicas
    )
    return (
        f'<section><h2>Replicas</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _log(replica: ReplicaView) -> str:
    lines = (replica.log if replica.last is None else replica.last).splitlines()
    left_out = max(len(lines) - LAST_LINES, 0)
    count = f"{left_out} earlier" if replica.last is None else "Earlier"
    note = f'<p class="quiet">{count} lines are not shown.</p>' if left_out or replica.last is not None else ""
    text = escape("\n".join(lines[-LAST_LINES:])) or "(nothing yet)"
    label = escape(replica.label)
    return f'<section><h2>Log of {label}</h2>{note}<pre id="{label}">{text}</pre></section>'


def _curve(view: JobView) -> str:
    courses = _courses(view)
    if not courses:
        return ""
    epochs = [epoch for course in courses.values() for epoch in course]
    values = [value for course in courses.values() for value in course.values()]
    low, high, last = min(*values, 0.0), max(*values, 1.0), max(*epochs, 1)

    def at(epoch: int, value: float) -> str:
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * epoch / last
        y = _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * (value - low) / (high - low)
        return f"{x:.1f},{y:.1f}"

    lines = "".join(
        f'<polyline fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2" '
        f'points="{" ".join(at(epoch, value) for epoch, value in sorted(course.items()))}"/>'
        for number, course in enumerate(courses.values())
    )
    axis = (
        f'<polyline fill="none" stroke="#5b6770" points="{at(0, high)} {at(0, low)} {at(last, low)}"/>'
        f'<text class="quiet" x="4" y="{_MARGIN}">{high:.3g}</text>'
        f'<text class="quiet" x="4" y="{_HEIGHT - _MARGIN}">{low:.3g}</text>'
        f'<text class="quiet" x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 14}">epoch {last}</text>'
    )
    now = ", ".join(f"{escape(name)} {course[max(course)]:.4g}" for name, course in courses.items())
    words = f"After epoch {max(epochs)}: {now}"
    if any(replica.last is not None for replica in view.replicas):
        words += " (a log is too long for this page: its later epochs are not in the curve)"
    return (
        f'<section><h2>Training</h2><figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}">'
        f"{axis}{lines}</svg><figcaption>{words}</figcaption></figure></section>"
    )


def _courses(view: JobView) -> dict[str, dict[int, float]]:
    """Collect the figures from 0 to 1 by epoch of the first replica with any; larger ones would flatten the curve."""
    for replica in sorted(view.replicas, key=lambda each: not each.label.startswith(names.WORKER.lower())):
        courses: dict[str, dict[int, float]] = {}
        for line in replica.log.splitlines():
            for metric in parse_epoch_line(line):
                if 0 <= metric.value <= 1 and metric.name != TIME_COST:
                    courses.setdefault(metric.name, {})[metric.epoch] = metric.value
        if courses:
            return dict(list(courses.items())[: len(_COLOURS)])
    return {}


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
            _LOG.warning("the page of job %s/%s: %s", where["namespace"], where["name"], e)
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
