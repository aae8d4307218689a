"""Stop and rerun from a page: only on the local cluster, with the cookie, and from a page of the same origin."""

import asyncio
from types import SimpleNamespace

import aiohttp
import pytest
from builders import make_mxjob
from controller_fixtures import submitted

from mxnet_operator.dashboard.server import Dashboard
from mxnet_operator.kube.errors import ApiError

JOB = {**submitted(make_mxjob("a").worker(1, command=["true"])), "status": {"state": "Running"}}
JOB_PATH = "/apis/kubeflow.org/v1/namespaces/team/mxjobs/a"
JOB["metadata"] |= {"namespace": "team", "uid": "u-1", "labels": {"kueue.x-k8s.io/queue-name": "q", "run": "7"}}


class Api:
    """The API server's answers to the dashboard, and what it was asked to change."""

    def __init__(self):
        self.changes = []

    async def get(self, path, **_):
        if path == JOB_PATH:
            return JOB
        raise ApiError(404, "NotFound", "not found")

    async def patch(self, path, body):
        self.changes.append(("patch", path, body))

    async def create(self, path, body):
        self.changes.append(("create", path, body))
        return {**body, "metadata": {**body["metadata"], "name": "a-x", "uid": "u-2"}}


@pytest.fixture
async def site():
    api = Api()
    local = SimpleNamespace()
    writable, readonly = Dashboard(api, "KEY", local=local, uid_opens=True), Dashboard(api, "KEY", uid_opens=True)
    ports = [await each.start() for each in (writable, readonly)]
    yield api, *ports
    await asyncio.gather(writable.stop(), readonly.stop())


async def post(port, action="stop", *, cookie="KEY", origin=None, uid="u-1", method="POST"):
    own = f"http://127.0.0.1:{port}"
    headers = {"Cookie": f"mxjob-dashboard-{port}={cookie}", "Origin": own if origin is None else origin}
    given = {key: value for key, value in headers.items() if value}
    address = f"{own}/jobs/team/a/{uid}/{action}"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, address, headers=given, allow_redirects=False) as answer,
    ):
        return answer.status, answer.headers.get("Location", "")


async def test_a_page_stops_and_reruns_the_job_it_shows(site):
    api, port, _ = site
    assert await post(port) == (303, "/jobs/team/a/u-1")
    assert await post(port, "rerun") == (303, "/jobs/team/a-x/u-2")
    (_, path, stop), (_, _, again) = api.changes
    assert path == JOB_PATH
    assert stop["metadata"] == {"uid": "u-1", "annotations": {"mxjob.kubeflow.org/stop": "true"}}
    assert again["metadata"] == {
        "generateName": "a-",
        "namespace": "team",
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
    }
    assert again["spec"] == JOB["spec"]


async def test_nobody_else_changes_a_job(site):
    api, port, readonly = site
    refusals = {
        "the uid alone": post(port, cookie=""),
        "a wrong token": post(port, cookie="KEZ"),
        "another port of this machine": post(port, origin="http://127.0.0.1:1"),
        "another site": post(port, origin="https://evil.com"),
        "a sandboxed frame": post(port, origin="null"),
        "no browser": post(port, origin=""),
        "another job": post(port, uid="u-9"),
        "an action that there isn't": post(port, "delete"),
        "a dashboard of another cluster": post(readonly),
        "an address that is followed": post(port, method="GET"),
    }
    for action in ("stop", "rerun"):
        refusals[f"{action} of another origin"] = post(port, action, origin="http://localhost:1")
    codes = {name: (await answer)[0] for name, answer in refusals.items()}
    assert set(codes.values()) <= {401, 403, 404, 405}, codes
    assert codes["an address that is followed"] == 405
    assert api.changes == []
