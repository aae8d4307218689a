"""Leases of jobs as a controller measures them: on its own clock, and only while it hears the API server."""

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, gang, world

from mxnet_operator.api import names
from mxnet_operator.api.job_lease import JobLease, annotations_of
from mxnet_operator.api.types import MXJob
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.memory import JobMemory
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.plan.actions import DeleteJob, SuspendJob

DURATION = 60


class Measured:
    """Leases on a clock that the test moves; `heard_since` is what the watch says."""

    def __init__(self):
        self.now = 1000.0
        self.heard_since = 0.0
        self.leases = Leases(lambda: self.heard_since, lambda: self.now)
        self.memory = JobMemory()

    def left(self, renewed="1", uid="a", holder="1:x"):
        made = make_mxjob("digits").worker(1).obj()
        annotations = annotations_of(JobLease(DURATION, "delete", holder, renewed))
        metadata = msgspec.structs.replace(made.metadata, uid=uid, annotations=annotations)
        left = self.leases.left(self.memory, msgspec.structs.replace(made, metadata=metadata))
        return left.total_seconds()


@pytest.mark.parametrize("change", [{"renewed": "2"}, {"uid": "b"}, {"holder": "2:y"}])
def test_it_begins_anew_with_each_renewal_holder_and_job(change):
    m = Measured()
    m.left()
    m.now += 59
    assert m.left(**change) == DURATION
    m.now += 59
    assert m.left(**change) == 1


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "yesterday", ""])
def test_what_the_holder_s_clock_says_means_nothing(renewed):
    m = Measured()
    assert m.left(renewed) == DURATION


def test_nothing_runs_out_while_the_watch_is_away_and_all_begins_anew_when_it_is_back():
    m = Measured()
    m.left()
    m.heard_since = None
    m.now += 10 * DURATION
    assert m.left() == DURATION
    m.heard_since = m.now = m.now + 5
    assert m.left() == DURATION
    m.now += DURATION
    assert m.left() == 0


def test_a_leader_that_begins_measures_anew_what_it_saw_as_one_that_led_before():
    m = Measured()
    m.left()
    m.now += 10 * DURATION
    m.memory.begin_term()
    assert m.left() == DURATION


def test_a_job_without_a_lease_has_nothing_left_to_run_out():
    assert Leases().left(JobMemory(), make_mxjob("digits").worker(1).obj()) is None


def leased(name="digits", **annotations):
    manifest = gang(name)
    manifest["metadata"]["annotations"] = {
        names.HOLDER_ANNOTATION: "1:x",
        names.LEASE_DURATION_ANNOTATION: "1",
        **annotations,
    }
    return manifest


async def test_a_job_that_nobody_renews_is_deleted_with_its_pods_and_an_event_says_why(tmp_path):
    async with world(tmp_path) as w:
        await w.submit(leased())
        told = await w.event("LeaseExpired")
        await w.eventually(JOBS, lambda jobs: not jobs)
        await w.pods(0)
        assert told["type"] == "Warning"
        assert "1:x" in told["message"]


async def test_a_job_that_is_to_be_suspended_says_for_whose_sake(tmp_path):
    async with world(tmp_path) as w:
        await w.submit(leased(**{names.LEASE_ACTION_ANNOTATION: "suspend"}))
        job = await w.state("digits", "Suspended")
        assert job["metadata"]["annotations"][names.SUSPENDED_BY_AIRFLOW_ANNOTATION] == "true"
        await w.pods(0)
        await w.event("LeaseExpired")


@pytest.mark.parametrize("end", [DeleteJob, SuspendJob])
async def test_a_renewal_that_the_cache_has_not_seen_keeps_the_job(tmp_path, end):
    """The version that was decided about is the request's precondition, so the server tells of the renewal."""
    async with world(tmp_path, start=False) as w:
        seen = await w.submit(leased())
        renewal = {"metadata": {"annotations": {names.LEASE_RENEW_TIME_ANNOTATION: "now"}}}
        (await w.api.merge(w.path(f"{JOBS}/digits"), renewal)).ok()
        caches = {MXJOBS: Indexer()}
        metadata = seen["metadata"]
        job = msgspec.convert({**gang(), "metadata": metadata}, MXJob)
        outcome = await Executor(w.client, OwnWrites(caches)).carry_out(
            job, [end(metadata["name"], metadata["uid"], metadata["resourceVersion"])]
        )
        assert outcome.error.code == 409
        (left,) = (await w.api.get(JOBS)).ok()["items"]
        assert not left["spec"].get("runPolicy", {}).get("suspend")
