"""A controller before jobs that go with their Argo Workflows: which it asks for, how often, and what it may not see."""

from datetime import timedelta

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import submitted

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.policy import READ_INTERVAL
from mxnet_operator.integrations.argo.workflows import READ_INTERVAL_WHERE_FORBIDDEN, Workflows
from mxnet_operator.integrations.integration import ReaderContext
from mxnet_operator.kube.errors import ApiError, ApiUnavailable

KEY = "default/digits"
PATH = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/nightly"
GOES_ON = {"metadata": {"uid": "w"}, "spec": {}}
SHUT_DOWN = {"metadata": {"uid": "w"}, "spec": {"shutdown": "Terminate"}}


class Answers:
    """A client and a recorder: what is asked, and what is told."""

    def __init__(self, answer):
        self.answer = answer
        self.asked, self.told = [], []

    async def get(self, path, shape):
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def record(self, job, event):
        self.told.append((job.name, event))


class Asker:
    """Looks at a job at the times that a test says."""

    def __init__(self, answer):
        self.server = Answers(answer)
        self.now = 1000.0
        self.workflows = Workflows(ReaderContext(client=self.server, record=self.server.record, clock=lambda: self.now))

    async def look(self, manifest, after=timedelta(0)):
        self.now += after.total_seconds()
        raw = msgspec.json.encode(manifest)
        return await self.workflows.why_over(KEY, msgspec.json.decode(raw, type=MXJob), raw)


def job(asks="true", uid="j", kind="Workflow", api_version="argoproj.io/v1alpha1"):
    manifest = submitted(make_mxjob("digits").worker(1))
    manifest["metadata"] |= {
        "uid": uid,
        "annotations": {names.DELETE_WITH_WORKFLOW_ANNOTATION: asks},
        "ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "nightly", "uid": "w"}],
    }
    return manifest


async def test_a_workflow_that_is_shut_down_is_named_with_how():
    asker = Asker(SHUT_DOWN)
    assert await asker.look(job()) == "nightly is being shut down (Terminate)"
    assert await asker.look(job()) == "nightly is being shut down (Terminate)", "whoever could not delete it asks again"
    assert asker.server.asked == [PATH, PATH]


async def test_one_that_goes_on_is_asked_for_once_however_often_the_job_is_looked_at():
    asker = Asker(GOES_ON)
    for _ in range(5):
        assert await asker.look(job()) == ""
    assert asker.server.asked == [PATH]
    asker.server.answer = SHUT_DOWN
    assert await asker.look(job(), after=READ_INTERVAL) != ""


async def test_a_job_made_anew_under_the_name_is_asked_for_at_once():
    asker = Asker(GOES_ON)
    await asker.look(job())
    await asker.look(job(uid="another"))
    asker.workflows.forget(KEY)
    await asker.look(job(uid="another"))
    assert asker.server.asked == [PATH] * 3


@pytest.mark.parametrize(
    "manifest",
    [job(asks="false"), job(kind="CronWorkflow"), job(api_version="example.com/v1")],
    ids=["does not ask", "another kind's", "another group's"],
)
async def test_no_other_job_costs_a_request(manifest):
    asker = Asker(SHUT_DOWN)
    assert await asker.look(manifest) == ""
    assert asker.server.asked == []


async def test_who_may_not_read_workflows_tells_the_jobs_user_what_to_install_and_asks_seldom():
    asker = Asker(ApiError(403, "Forbidden", "workflows.argoproj.io is forbidden"))
    assert await asker.look(job()) == ""
    assert await asker.look(job(), after=READ_INTERVAL) == ""
    ((name, event),) = asker.server.told
    assert (name, event.type, event.reason) == ("digits", "Warning", "WorkflowForbidden")
    assert "workflows.argoproj.io is forbidden" in event.message
    assert "operator/manifests/base/rbac.yaml" in event.message
    asker.server.answer = SHUT_DOWN
    assert await asker.look(job(), after=READ_INTERVAL_WHERE_FORBIDDEN) != ""


@pytest.mark.parametrize(
    "answer",
    [
        ApiError(404, "NotFound", 'workflows.argoproj.io "nightly" not found'),
        ApiError(404, "NotFound", "the server could not find the requested resource"),
        ApiError(500, "InternalError", "etcd"),
        ApiUnavailable("connection refused"),
    ],
    ids=["gone", "not served yet", "broken", "away"],
)
async def test_no_answer_ends_no_job_and_keeps_none_from_going_on(answer):
    """A workflow that is gone takes its job along by Kubernetes' own garbage collection."""
    assert await Asker(answer).look(job()) == ""
