"""An API server whose every text tries to steer the terminal that it is shown on."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from kubeconfigs import write_kubeconfig
from served_requests import in_thread, served_requests

_JUNK = (
    "\x1b]52;c;Y2xpcA==\x07 \x1b]0;title\x07 \x1b[2J \x1b[1A\x1b[2K \x1b[31;8m \x1bP1$r\x1b\\ "
    "\x1b]8;;http://e\x1b\\link "
    "\x9b2J \x9d52;c;x\x9c \x00\x07\x08\x0b\x0c\x0e\x7f \x85\u2028\u2029 \u202e\u2066\u2069\u202a \U000e0041 "
    "[red]markup[/] [link=http://e]l[/] :bomb: \r"
)
JUNK = f"«{_JUNK}»"
"""Sequences and characters that a terminal obeys, markup of rich's, and nothing else, between marks."""

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_OF_RICH = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\x1b\[\d*[ABCDGK]|\r")
"""Styles, and what redraws lines."""


def steering(shown: str) -> list[str]:
    """What of an output would steer a terminal, but for what our own lines need."""
    marked = re.findall("«[^»…\n]*", shown)
    return [found for part in (*marked, _OF_RICH.sub("", shown)) for found in UNPRINTABLE.findall(part)]


def hostile_job(name: str = "digits", state: str = "Failed", junk: str = JUNK) -> dict[str, Any]:
    """A job that has ended in `state`, which a real API server would never store like that."""
    container = {"name": "mxnet", "image": junk, "resources": {"limits": {junk: junk}}}
    replica = {"replicas": 1, "restartPolicy": junk, "template": {"spec": {"containers": [container]}}}
    when = "2026-11-21T12:00:00Z"
    condition = {"status": "True", "reason": junk, "message": f"{junk}\n{junk}", "lastTransitionTime": when}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": "of-the-job",
            "resourceVersion": "1",
            "creationTimestamp": when,
            "labels": {junk: junk},
        },
        "spec": {"jobMode": junk, "runPolicy": {"cleanPodPolicy": junk}, "mxReplicaSpecs": {"Worker": replica}},
        "status": {
            "state": state,
            "result": junk,
            "startTime": when,
            "completionTime": when,
            "conditions": [{"type": state, **condition}, {"type": junk, **condition}],
        },
    }


def hostile_pod(log_of: str = "digits", junk: str = JUNK) -> dict[str, Any]:
    """The pod of worker 0, which has failed."""
    ended = {"exitCode": 3, "reason": junk, "message": f"{junk}\n{junk}", "finishedAt": "2026-11-21T12:00:09Z"}
    return {
        "metadata": {
            "name": f"{log_of}-worker-0",
            "namespace": "default",
            "uid": "of-the-pod",
            "resourceVersion": "1",
            "labels": {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"},
            "ownerReferences": [{"uid": "of-the-job"}],
        },
        "spec": {"nodeName": junk},
        "status": {
            "phase": "Failed",
            "message": junk,
            "containerStatuses": [{"name": "mxnet", "state": {"terminated": ended}}],
        },
    }


class HostileApi:
    """The server: `log` is what every replica wrote, `job` the job that is there."""

    def __init__(self, folder: Path) -> None:
        self.log = JUNK.encode() + b"\n"
        self.job = hostile_job()
        self.refuses = False
        """Whether all requests are refused, in a message of the same kind."""
        self._kubeconfig = folder / "kubeconfig"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Whatever is asked for."""
        if self.refuses:
            return self._status(403, f"forbidden: {JUNK}")
        path, query = request.path, request.query
        last = path.rpartition("/")[2]
        if last == "log":
            return web.Response(body=self._stamped() if query.get("timestamps") else self.log)
        found: dict[str, list[dict[str, Any]]] = {
            "pods": [hostile_pod(self.job["metadata"]["name"])],
            "events": [self._event()],
            "nodes": [{"status": {"capacity": {"cpu": JUNK}}}],
            "mxjobs": [self.job] if "/kubeflow.org/v1/" in path else [],
        }
        if query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            for each in found.get(last, []):
                await response.write(json.dumps({"type": "MODIFIED", "object": each}).encode() + b"\n")
            await asyncio.Event().wait()
        if request.method == "DELETE":
            return self._status(404, JUNK)
        if request.method == "POST":
            return web.json_response(self.job, status=201)
        if last in found:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": found[last]})
        for kind, objects in found.items():
            for each in objects:
                if path.endswith(f"/{kind}/{each.get('metadata', {}).get('name')}"):
                    return web.json_response(each)
        return self._status(404, f"not found: {JUNK}")

    def _event(self) -> dict[str, Any]:
        told = {"uid": "of-the-job", "kind": "MXJob", "name": JUNK}
        meta = {"name": "e", "uid": "e", "resourceVersion": "1", "creationTimestamp": "2026-11-21T12:00:01Z"}
        return {"metadata": meta, "involvedObject": told, "type": JUNK, "reason": JUNK, "message": f"{JUNK}\n{JUNK}"}

    def _stamped(self) -> bytes:
        lines = self.log.split(b"\n")
        stamped = [b"2026-11-21T12:00:02.%09dZ " % number + line for number, line in enumerate(lines[:-1], 1)]
        rest = [b"2026-11-21T12:00:03.000000001Z " + lines[-1]] if lines[-1] else [b""]
        return b"\n".join([*stamped, *rest])

    @staticmethod
    def _status(code: int, message: str) -> web.Response:
        body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": "No", "message": message}
        return web.json_response(body, status=code)

    @contextmanager
    def serving(self) -> Iterator[Path]:
        """Serve, in a thread; the kubeconfig to be used."""
        with in_thread(served_requests(self.answer)) as port:
            write_kubeconfig(self._kubeconfig, f"http://127.0.0.1:{port}", "t")
            yield self._kubeconfig
