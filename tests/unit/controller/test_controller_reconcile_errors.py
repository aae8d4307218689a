"""A job that the controller fails at says so: a condition and an Event of the job, never silence."""

import json
import re
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import EVENTS, JOBS, PODS, gang, submitted, world
from foreign_children import foreign_pod
from reconcilers import make_reconciler

from mxnet_operator.api import names
from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller import decoding, executor, reconcile
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.children import pods, services
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.projection import project_job, project_pod, project_service
from mxnet_operator.controller.reconcile_errors import AT_MOST_EVERY, FAILURES_BEFORE_REPORT
from mxnet_operator.integrations.argo import Argo
from mxnet_operator.integrations.argo.policy import READ_INTERVAL
from mxnet_operator.integrations.argo.pollers import CHECK_INTERVAL_WHERE_FORBIDDEN
from mxnet_operator.integrations.argo.workflows import Workflows
from mxnet_operator.integrations.child_kinds import KindsState
from mxnet_operator.kube import resources
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.local.apiserver import validation
from mxnet_operator.plan import state

KEY = "default/digits"
WORKFLOW = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/nightly"

STAGES = {
    "recognising": (decoding.job_formats, "errors"),
    "reading": (decoding.job_formats, "format_of"),
    "the workflow": (Workflows, "why_over"),
    "observing": (reconcile, "lags_behind"),
    "deciding": (reconcile, "plan"),
    "defaults": (state, "with_defaults"),
    "building a pod": (pods, "build_pod"),
    "building a Service": (services, "build_service"),
    "the hook": (executor, "wants_hook"),
    "the status": (reconcile.job_formats, "status_to_wire"),
}
OTHER_ERRORS = [OverflowError("date value out of range"), AttributeError("'str' has no 'get'"), StopIteration()]


class Looks:
    """A controller whose caches show everything at once, and whose looks a test takes one by one."""

    def __init__(self, w):
        self.w = w
        self.now, self.clock = datetime.now(UTC), 1000.0
        jobs, children = Indexer(), ChildCaches()
        self.caches = jobs, children.pods, children.by_resource[resources.SERVICES]
        writes = OwnWrites({MXJOBS: jobs, **children.by_resource})
        self.reconciler = make_reconciler(
            w.client,
            jobs,
            children,
            writes,
            integrations=((Argo(), lambda: KindsState("Absent")),),
            now=lambda: self.now,
            clock=lambda: self.clock,
        )

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)
        self.clock += seconds

    async def look(self):
        """What the next look ends in: an exception, or None."""
        paths = JOBS, PODS, PODS.replace("pods", "services")
        for cache, path, project in zip(self.caches, paths, (project_job, project_pod, project_service), strict=True):
            whole = (await self.w.api.get(path)).ok()
            for item in whole["items"]:
                raw = msgspec.Raw(json.dumps(item).encode())
                key = f"default/{item['metadata']['name']}"
                cache.store(key, item["metadata"]["resourceVersion"], project(raw))
            cache.advance(whole["metadata"]["resourceVersion"])
        try:
            await self.reconciler.reconcile(KEY)
        except Exception as error:
            return error
        return None

    async def condition(self):
        """Status, reason and message of ReconcileError, and the job's state."""
        status = (await self.w.api.get(f"{JOBS}/digits")).ok().get("status", {})
        found = [c for c in status.get("conditions", ()) if c["type"] == "ReconcileError"]
        one = found[0] if found else {"status": "", "reason": "", "message": ""}
        return one["status"], one["reason"], one["message"], status.get("state", "")

    async def events(self):
        events = (await self.w.api.get(EVENTS)).ok()["items"]
        return [event for event in events if event["reason"] == "ReconcileError"]


@asynccontextmanager
async def looks(tmp_path):
    async with world(tmp_path, start=False) as w:
        await w.submit(gang())
        yield Looks(w)


@pytest.mark.parametrize(
    ("stage", "error"),
    [*((stage, KeyError("spec")) for stage in STAGES), *(("deciding", error) for error in OTHER_ERRORS)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_an_exception_at_any_stage_is_told_once_and_taken_back_when_it_works_again(
    tmp_path, monkeypatch, stage, error
):
    async with looks(tmp_path) as w:
        with monkeypatch.context() as patched:
            patched.setattr(*STAGES[stage], _raising(error))
            raised = type(await w.look())
            assert raised in (type(error), RuntimeError)  # what a coroutine makes of a StopIteration
            status, reason, message, state = await w.condition()
            assert (status, reason, state) == ("True", raised.__name__, "Created")
            assert reason in message
            writes = len(w.w.writes)
            for _ in range(3):
                await w.look()
                w.wait(AT_MOST_EVERY)
            told = [write for write in w.w.writes[writes:] if "/status" in write[1] or "/events" in write[1]]
            assert told == [] or stage == "the status"  # with nothing to write, it works again for a while
        for _ in range(4):
            assert await w.look() is None
        assert (await w.condition())[0] == "False"
        assert (await w.condition())[3] == "Created"
        (event,) = await w.events()
        assert (event["type"], event["message"]) == ("Warning", message)
        assert len((await w.w.api.get(PODS)).ok()["items"]) == 5


async def test_words_that_change_with_every_attempt_are_written_once_a_minute(tmp_path, monkeypatch):
    async with looks(tmp_path) as w:
        numbers = iter(range(1000))

        def odd(*_, **__):
            raise ValueError(f"attempt {next(numbers)}")

        monkeypatch.setattr(reconcile, "plan", odd)
        for _ in range(90):
            await w.look()
            w.wait(2)
        assert len([write for write in w.w.writes if "/status" in write[1]]) == 3
        assert len(await w.events()) == 3


async def test_a_clock_that_is_set_back_keeps_no_error_from_being_told(tmp_path, monkeypatch):
    async with looks(tmp_path) as w:
        monkeypatch.setattr(reconcile, "plan", _raising(ValueError("before")))
        await w.look()
        w.now -= timedelta(hours=1)
        monkeypatch.setattr(reconcile, "plan", _raising(ValueError("after")))
        w.wait(AT_MOST_EVERY)
        await w.look()
        assert "after" in (await w.condition())[2]


async def test_a_clock_that_is_set_back_keeps_no_workflow_and_no_poller_from_being_looked_at(tmp_path, monkeypatch):
    looked = []

    job = gang()
    job["metadata"] |= {
        "labels": {"workflows.argoproj.io/workflow": "nightly"},
        "annotations": {names.DELETE_WITH_WORKFLOW_ANNOTATION: "true"},
        "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "nightly", "uid": "w"}],
    }
    async with world(tmp_path, start=False) as w:
        await w.submit(job)
        found = Looks(w)
        get, get_as = w.client.get, w.client.get_as

        async def counted(path, *args, **kwargs):
            looked.append(path)
            return await get(path, *args, **kwargs)

        async def counted_as(path, shape, params=None):
            of_pollers = "workflow=nightly" in str(params) and "status.phase" not in str(params)
            looked.append("pollers" if of_pollers else path)
            return await get_as(path, shape, params)

        monkeypatch.setattr(w.client, "get", counted)
        monkeypatch.setattr(w.client, "get_as", counted_as)
        await found.look()
        asked = Counter(looked)
        assert asked["pollers"] == asked[WORKFLOW] == 1
        found.now -= timedelta(hours=1)
        found.wait(max(READ_INTERVAL, CHECK_INTERVAL_WHERE_FORBIDDEN).total_seconds())
        await found.look()
        asked = Counter(looked)
        assert asked["pollers"] == asked[WORKFLOW] == 2


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (ApiError(500, "InternalError", 'failed calling webhook "x": connection refused'), True),
        (ApiError(403, "Forbidden", "cannot list pods"), True),
        (ApiError(409, "AlreadyExists", 'pods "digits-worker-0" already exists'), True),
        (ApiError(409, "Conflict", "the object has been modified"), False),
        (ApiError(429, "TooManyRequests", "slow down"), False),
        (ApiError(503, "ServiceUnavailable", "overloaded"), False),
        (ApiUnavailable("no route to host"), False),
    ],
)
async def test_an_answer_of_the_server_is_told_once_it_persists(tmp_path, monkeypatch, error, is_told):
    async with looks(tmp_path) as w:
        monkeypatch.setattr(Workflows, "why_over", _raising(error))
        for _ in range(FAILURES_BEFORE_REPORT - 1):
            await w.look()
        assert w.w.writes == []
        for _ in range(FAILURES_BEFORE_REPORT):
            await w.look()
        status, _, message, _ = await w.condition()
        assert (status, str(error) in message) == (("True", True) if is_told else ("", False))
        assert len(await w.events()) == is_told


def _raising(error):
    def raises(*_, **__):
        raise error

    return raises


def lax_crd():
    """A CRD that took anything, and no rules: what a job stored under it may hold."""
    crd = custom_resource_definition()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return crd


@pytest.mark.parametrize(
    "change",
    [
        {"template": {"spec": {"containers": [{"name": "other", "image": "i"}]}}},  # 1.8.1 took it, and did nothing
        {"template": {"spec": {"containers": "mxnet"}}},
        {"template": "mxnet"},
    ],
    ids=json.dumps,
)
async def test_a_stored_job_that_can_never_run_fails_once_its_pods_have_ended_and_is_collected(
    tmp_path, monkeypatch, change
):
    monkeypatch.setattr(validation, "HAVE_RULES", frozenset())
    async with world(tmp_path, crds=[lax_crd()]) as w:
        manifest = submitted(make_mxjob("digits").gang().run_policy(cleanPodPolicy="All"))
        await w.submit(manifest)
        pods = await w.pods(5)
        await w.move(pods, "Running")
        await w.state("digits", "Running")
        await w.stop()
        await respecify(w, change)
        await w.start()
        path = r"spec\.mxReplicaSpecs(\.Worker|\[Worker\])\.template"
        assert re.search(path, (await w.event("ReconcileError"))["message"])
        assert await stopped(w) == []
        await w.move(pods, "Succeeded", exit_code=0)
        job = await w.state("digits", "Failed")
        assert re.search(path, job["status"]["conditions"][-1]["message"])
        await w.eventually(PODS, lambda pods: not pods)
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}})).ok()
        await w.eventually(JOBS, lambda jobs: not jobs)


async def test_a_running_job_that_is_not_valid_goes_on_once_its_spec_is_corrected(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "HAVE_RULES", frozenset())
    async with world(tmp_path, crds=[lax_crd()]) as w:
        await w.submit(gang("digits"))
        pods = await w.pods(5)
        await w.move(pods, "Running")
        await w.state("digits", "Running")
        await respecify(w, {"template": "mxnet"})
        await w.event("ReconcileError")
        assert await stopped(w) == []
        await respecify(w, {"template": {"spec": WORKER}})
        jobs = await w.eventually(JOBS, lambda jobs: _condition(jobs["digits"], "ReconcileError") == "False")
        assert jobs["digits"]["status"]["state"] == "Running"
        await w.move(pods, "Succeeded", exit_code=0)
        job = await w.state("digits", "Succeeded")
        assert job["status"].get("restarts", 0) == 0


@pytest.mark.parametrize("labels", [True, False], ids=["labelled", "without labels"])
async def test_a_job_of_another_operator_that_is_not_valid_keeps_its_pods_running(tmp_path, monkeypatch, labels):
    monkeypatch.setattr(validation, "HAVE_RULES", frozenset())
    async with world(tmp_path, crds=[lax_crd()], start=False) as w:
        manifest = gang("digits")
        manifest["spec"]["runPolicy"] = {"cleanPodPolicy": "none"}
        made = await w.submit(manifest)
        await w.api.post(PODS, foreign_pod(made, "Worker", 0, labels=labels))
        await w.move(["digits-worker-0"], "Running")
        created = {"type": "Created", "status": "True", "reason": "MXJobCreated", "message": "m"}
        (await w.api.merge(f"{JOBS}/digits/status", {"status": {"conditions": [created]}})).ok()
        await w.start()
        assert "cleanPodPolicy" in (await w.event("ReconcileError"))["message"]
        assert await stopped(w) == []
        assert (await w.api.get(f"{JOBS}/digits")).ok()["status"]["state"] == "Created"


WORKER = {"containers": [{"name": "mxnet", "image": "i"}]}


async def respecify(w, worker):
    """Change the Workers of the job."""
    (await w.api.merge(f"{JOBS}/digits", {"spec": {"mxReplicaSpecs": {"Worker": worker}}})).ok()


async def stopped(w):
    """The pods that were deleted, or told to end."""
    pods = (await w.api.get(PODS)).ok()["items"]
    ended = (p for p in pods if "deletionTimestamp" in p["metadata"] or "activeDeadlineSeconds" in p["spec"])
    return [pod["metadata"]["name"] for pod in ended]


def _condition(job, condition_type):
    found = (c["status"] for c in job["status"]["conditions"] if c["type"] == condition_type)
    return next(found, "")
