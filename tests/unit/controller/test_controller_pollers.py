"""A controller before the pods that poll for jobs: it completes the results of the dead, as Argo 4.1.2 leaves them."""

import copy
from datetime import timedelta

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import submitted

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.pollers import (
    CHECK_INTERVAL,
    CHECK_INTERVAL_OF_FINISHED_JOBS,
    CHECK_INTERVAL_WHERE_FORBIDDEN,
    Pollers,
)
from mxnet_operator.integrations.argo.workflows import Workflows
from mxnet_operator.integrations.integration import ReaderContext
from mxnet_operator.kube.errors import ApiError, ApiUnavailable

PODS = "/api/v1/namespaces/default/pods"
WORKFLOW = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/nightly"
RESULT = "/apis/argoproj.io/v1alpha1/namespaces/default/workflowtaskresults/nightly-1"
REPORTED = "workflows.argoproj.io/report-outputs-completed"
COMPLETE = {"metadata": {"labels": {REPORTED: "true"}}}
QUERY = {"labelSelector": "workflows.argoproj.io/workflow=nightly,workflows.argoproj.io/completed=false"}


def dead(*containers, annotations=None, phase="Failed"):
    """A pod of Argo's that was killed; the server selects it by its labels, so that they aren't looked at."""
    given = {"workflows.argoproj.io/node-id": "nightly-1"} if annotations is None else annotations
    return {
        "metadata": {"name": "nightly-train-1", "annotations": given},
        "spec": {"containers": [{"name": name} for name in containers or ("main",)]},
        "status": {"phase": phase},
    }


class Server:
    """An API server with the pods, the result and the workflow that a test gives it; and a recorder."""

    def __init__(self):
        self.pods = [dead()]
        self.answers = {RESULT: {"metadata": {"labels": {REPORTED: "false"}}}, WORKFLOW: {"metadata": {}, "spec": {}}}
        self.asked, self.queries, self.written, self.told = [], [], [], []

    async def get_as(self, path, as_a, params=None):
        if path == PODS:
            self.queries.append(params)
            return msgspec.json.decode(msgspec.json.encode(await self.get(path)), type=as_a)
        return msgspec.convert(await self.get(path), as_a)

    async def get(self, path, shape=None):
        self.asked.append(path)
        answer = self.pods if path == PODS else self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return {"items": answer} if path == PODS else copy.deepcopy(answer)

    async def patch(self, path, body):
        self.written.append((path, body))
        self.answers[path] = body

    async def record(self, job, event):
        self.told.append((job.name, event))


class Looker:
    """Looks at a job at the times that a test says."""

    def __init__(self):
        self.server = Server()
        self.now = 1000.0
        around = ReaderContext(client=self.server, record=self.server.record, clock=lambda: self.now)
        self.pollers = Pollers(around, Workflows(around))

    async def look(self, manifest=None, after=timedelta(0)):
        self.now += after.total_seconds()
        return await self.pollers.check(msgspec.convert(manifest or job(), MXJob))


def job(state=None, workflow="nightly", name="digits"):
    manifest = submitted(make_mxjob(name).worker(1))
    if workflow:
        manifest["metadata"]["labels"] = {"workflows.argoproj.io/workflow": workflow}
    if state:
        manifest["status"] = {"conditions": [{"type": state, "status": "True", "reason": "x", "message": "x"}]}
    return manifest


@pytest.fixture
def looker():
    return Looker()


async def test_a_pod_that_cannot_be_read_keeps_no_job_from_being_reconciled(looker):
    looker.server.pods.append({"metadata": {"name": "odd"}, "status": {"phase": 1}})
    assert await looker.look() == CHECK_INTERVAL


async def test_the_result_of_a_killed_poller_is_completed_once_and_the_jobs_user_told(looker):
    looker.server.pods.insert(0, dead(annotations={}))  # of nobody's
    assert await looker.look() == CHECK_INTERVAL
    assert looker.server.written == [(RESULT, COMPLETE)]
    assert looker.server.queries == [QUERY]
    ((name, event),) = looker.server.told
    assert (name, event.reason) == ("digits", "PollerReplaced")
    await looker.look(after=CHECK_INTERVAL)
    assert len(looker.server.written) == len(looker.server.told) == 1


@pytest.mark.parametrize("left", [[], [dead()]], ids=["nothing", "a dead pod"])
async def test_the_result_of_a_poller_that_was_there_is_completed_once_whatever_is_left_of_it(looker, left):
    server = looker.server
    server.pods = [dead(phase="Running")]
    await looker.look()
    server.pods = ApiUnavailable("no route to host")
    await looker.look(after=CHECK_INTERVAL)
    assert server.written == []
    server.pods = left
    for _ in range(2):
        await looker.look(after=CHECK_INTERVAL)
    assert server.written == [(RESULT, COMPLETE)]
    assert server.asked.count(RESULT) == 1 + len(left), "it is forgotten then"
    assert [event.reason for _, event in server.told] == ["PollerReplaced"]


async def test_a_result_that_is_complete_or_gone_is_left_alone(looker):
    looker.server.answers[RESULT] = COMPLETE
    await looker.look()
    looker.server.answers[RESULT] = ApiError(404, "NotFound", "not found")
    assert await looker.look(after=CHECK_INTERVAL) == CHECK_INTERVAL
    assert looker.server.written == looker.server.told == []


async def test_after_the_jobs_end_its_workflow_is_looked_after_until_that_is_over(looker):
    """A poller may be killed, and its job succeed before the next one comes."""
    assert await looker.look(job("Succeeded")) == CHECK_INTERVAL_OF_FINISHED_JOBS
    assert looker.server.written == [(RESULT, COMPLETE)]
    looker.server.answers[WORKFLOW] = {"metadata": {}, "spec": {}, "status": {"phase": "Succeeded"}}
    assert await looker.look(job("Succeeded"), after=CHECK_INTERVAL_OF_FINISHED_JOBS) is None


async def test_a_job_of_no_workflow_costs_no_request(looker):
    assert await looker.look(job(workflow="")) is None
    assert looker.server.asked == []


async def test_who_may_not_complete_it_tells_the_jobs_user_what_to_do_and_asks_seldom(looker):
    looker.server.answers[RESULT] = ApiError(403, "Forbidden", "workflowtaskresults.argoproj.io is forbidden")
    assert await looker.look() == CHECK_INTERVAL_WHERE_FORBIDDEN
    ((name, event),) = looker.server.told
    assert (name, event.type, event.reason) == ("digits", "Warning", "PollerForbidden")
    assert "workflowtaskresults.argoproj.io is forbidden" in event.message
    assert "operator/manifests/components/argo/rbac.yaml" in event.message
    assert event.message.endswith(f"kubectl label -n default workflowtaskresult nightly-1 {REPORTED}=true --overwrite")


def polling(name, *containers):
    """A pod whose manifest has a job, within the template that Argo hands to it."""
    pod = dead(*containers, phase="Running")
    template = msgspec.json.encode({"resource": {"manifest": f'kind: MXJob\nmetadata:\n  name: "{name}"\n'}}).decode()
    pod["spec"]["initContainers"] = [{"name": "init", "env": [{"name": "ARGO_TEMPLATE", "value": template}]}]
    return pod


def trains(percentage, epochs=30, **fields):
    return job(**fields) | {"status": {"training": {"progressPercentage": percentage, "epochs": epochs}}}


async def test_progress_goes_to_the_live_poller_of_a_job_once_for_each_epoch(looker):
    server = looker.server
    pending = polling("digits") | {"status": {"phase": "Pending"}}
    server.pods = [polling("other-1"), polling("digits", "main", "wait"), pending]
    await looker.look(trains(3))
    assert server.written == []
    server.pods.append(polling("digits"))
    server.queries.clear()
    for percentage in (3, 6, 6, 100):
        await looker.look(trains(percentage))
    assert server.written == [(RESULT, {"progress": "2/30"}), (RESULT, {"progress": "30/30"})]
    assert server.queries == [QUERY] * 2
    looker.pollers.forget("default/digits")
    await looker.look(trains(100))
    assert len(server.written) == 3, "another job of the name"


async def test_a_poller_that_is_gone_may_have_succeeded_so_a_missing_right_is_told_of_dead_ones_only(looker):
    server = looker.server
    server.answers[RESULT] = ApiError(403, "Forbidden", "no")
    server.pods = [dead(phase="Running")]
    await looker.look()
    server.pods = []
    await looker.look(after=CHECK_INTERVAL)
    assert (server.asked.count(RESULT), server.told) == (1, [])


@pytest.mark.parametrize("answer", [ApiError(403, "Forbidden", "no"), ApiError(404, "NotFound", "no")])
async def test_progress_that_can_not_be_written_costs_nothing_else(looker, answer):
    async def refuse(path, body):
        raise answer

    server = looker.server
    server.pods, server.patch = [polling("digits")], refuse
    for _ in range(2):
        assert await looker.look(trains(50)) == CHECK_INTERVAL
    assert (len(server.queries), server.told) == (2, [])


async def test_no_progress_is_written_for_an_ended_job_or_of_unknown_epochs(looker):
    looker.server.pods = [polling("digits")]
    ended = job("Succeeded")
    ended["status"]["training"] = trains(50)["status"]["training"]
    for each in (ended, trains(50, 0), trains(None)):
        await looker.look(each)
    assert looker.server.written == []


@pytest.mark.parametrize("path", [RESULT, WORKFLOW])
async def test_a_server_that_does_not_answer_is_asked_again_and_the_job_goes_on(looker, path):
    looker.server.answers[path] = ApiUnavailable("no route to host")
    assert await looker.look(job("Succeeded")) == CHECK_INTERVAL_OF_FINISHED_JOBS
