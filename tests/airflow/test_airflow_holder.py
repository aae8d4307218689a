"""Who holds the job of a task, and for how long it goes on without it: on a real API server."""

import asyncio
from datetime import timedelta

import pytest
from builders import make_mxjob
from controller_fixtures import submitted
from provider_fixtures import StampedLog, Store, Try, operator_world, server_in_thread
from waiting import eventually

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.job.task_memory import STORE_KEY


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with server_in_thread(tmp_path_factory.mktemp("server"), StampedLog()) as running:
        yield running


@pytest.fixture(params=["waiting", "deferred"])
def world(request, running):
    yield from operator_world(running, deferrable=request.param == "deferred")


@pytest.fixture
def waiting_world(running):
    yield from operator_world(running, deferrable=False)


def annotations_of(world, job):
    return world.hook.get_job(JobRef.of(job))["metadata"].get("annotations") or {}


def begun(world, ti, store, **arguments):
    """A try that waits for its job, once the job is its own."""
    operator = world.operator(**{"poll_interval": 0.05, **arguments})
    task = world.start(operator, ti, store)
    job = world.job_of(task)
    token = f"{ti.try_number}:{ti.id}"
    eventually(lambda: annotations_of(world, job)[names.HOLDER_ANNOTATION].startswith(token))
    return operator, task, job


def next_try(ti):
    return Try(run_id=ti.run_id, try_number=ti.try_number + 1, max_tries=ti.max_tries)


def test_a_job_carries_its_holder_and_a_lease_from_its_creation_on(waiting_world):
    ti = Try(max_tries=2)
    _, _, job = begun(waiting_world, ti, Store(), retry_delay=timedelta(minutes=5))
    annotations = job["metadata"]["annotations"]
    assert annotations[names.HOLDER_ANNOTATION] == f"1:{ti.id}"
    assert annotations[names.LEASE_DURATION_ANNOTATION] == "3900"
    assert annotations[names.LEASE_ACTION_ANNOTATION] == "delete"
    assert annotations[names.LEASE_RENEW_TIME_ANNOTATION]


@pytest.mark.parametrize(
    ("arguments", "has_holder", "action"),
    [
        ({"on_kill_action": "suspend"}, True, "suspend"),
        ({"on_kill_action": "keep"}, True, None),
        ({"lease": None}, True, None),
        ({"lease": timedelta(minutes=1)}, True, "delete"),
        ({"wait_for_completion": False}, False, None),
    ],
)
def test_only_a_job_that_ends_with_its_task_has_a_lease(world, arguments, has_holder, action):
    task = world.start(world.operator(**arguments))
    job = world.job_of(task)
    annotations = job["metadata"].get("annotations") or {}
    assert (names.HOLDER_ANNOTATION in annotations) is has_holder
    assert annotations.get(names.LEASE_ACTION_ANNOTATION) == action
    assert (names.LEASE_DURATION_ANNOTATION in annotations) is (action is not None)
    world.delete(job)


def test_who_may_not_patch_gets_a_job_without_holder_and_lease_and_a_word_about_it(world, monkeypatch, task_log):
    operator = world.operator()
    monkeypatch.setattr(operator.hook, "may_patch", lambda _ref: False)
    task = world.start(operator)
    job = world.job_of(task)
    assert "annotations" not in job["metadata"]
    assert any("may not patch mxjobs.kubeflow.org" in line for line in task_log())
    world.delete(job)


def test_who_may_not_patch_ends_its_job_all_the_same_when_its_task_is_killed(waiting_world, monkeypatch):
    operator = waiting_world.operator()
    monkeypatch.setattr(operator.hook, "may_patch", lambda _ref: False)
    job = waiting_world.job_of(waiting_world.start(operator))
    operator.on_kill()
    assert waiting_world.hook.get_job(JobRef.of(job)) is None


def test_the_right_to_patch_is_known_before_the_job_exists(world, monkeypatch):
    unknown = JobRef(name="no-such-job", namespace="default")
    assert world.hook.may_patch(unknown)

    async def forbidden(*_args, **_options):
        raise ApiError(403, "Forbidden", "no")

    monkeypatch.setattr(Client, "patch", forbidden)
    assert not world.hook.may_patch(unknown)


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({}, None),
        ({"execution_timeout": timedelta(hours=2)}, 3 * 3600),
        ({"execution_timeout": timedelta(hours=2), "wait_for_completion": False}, None),
        ({"execution_timeout": timedelta(hours=2), "on_kill_action": "keep"}, None),
    ],
)
def test_a_task_s_execution_timeout_becomes_the_job_s_deadline(world, arguments, seconds):
    task = world.start(world.operator(**arguments))
    job = world.job_of(task)
    assert (job["spec"].get("runPolicy") or {}).get("activeDeadlineSeconds") == seconds
    world.delete(job)


def test_a_manifest_s_own_deadline_stays(world):
    manifest = submitted(make_mxjob("held").worker(1).run_policy(activeDeadlineSeconds=77))
    task = world.start(world.operator(manifest=manifest, execution_timeout=timedelta(hours=2)))
    job = world.job_of(task)
    assert job["spec"]["runPolicy"]["activeDeadlineSeconds"] == 77
    world.delete(job)


def test_a_worker_renews_the_lease_while_it_waits(waiting_world):
    _, _, job = begun(waiting_world, Try(), Store(), lease=1)
    first = annotations_of(waiting_world, job)[names.LEASE_RENEW_TIME_ANNOTATION]
    eventually(lambda: annotations_of(waiting_world, job)[names.LEASE_RENEW_TIME_ANNOTATION] != first)


@pytest.mark.parametrize("action", ["delete", "suspend"])
def test_a_worker_that_comes_back_leaves_the_job_to_the_retry(waiting_world, task_log, action):
    """Its supervisor stood still for longer than Airflow waits, and then ends it."""
    ti, store = Try(max_tries=1), Store()
    lost, first, job = begun(waiting_world, ti, store, on_kill_action=action)
    again, second, same = begun(waiting_world, next_try(ti), store, on_kill_action=action)
    assert same["metadata"]["uid"] == job["metadata"]["uid"]
    lost.on_kill()
    with pytest.raises(MXNetJobError):
        first.result()
    found = waiting_world.hook.get_job(JobRef.of(job))
    assert not (found["spec"].get("runPolicy") or {}).get("suspend")
    assert any("is left alone: try 2 of its task waits for it now" in s for s in task_log())
    again.on_kill()
    with pytest.raises(MXNetJobError):
        second.result()
    ended = waiting_world.hook.get_job(JobRef.of(job))
    assert (ended is None) if action == "delete" else ended["spec"]["runPolicy"]["suspend"]


def test_a_worker_that_stood_still_before_it_took_the_job_over_never_does(waiting_world):
    """Of three tries the second stands still between its look at the job and its patch; the third is faster."""
    ti, store = Try(max_tries=2), Store()
    _, _, job = begun(waiting_world, ti, store)
    late, latest = next_try(ti), next_try(next_try(ti))
    early_store = Store(store)
    begun(waiting_world, latest, store)
    task = waiting_world.start(waiting_world.operator(), late, early_store)
    with pytest.raises(MXNetJobError, match="try 3 of its task waits for it now, and this is an earlier one"):
        task.result()
    assert annotations_of(waiting_world, job)[names.HOLDER_ANNOTATION] == f"3:{latest.id}"


def test_a_finished_job_is_not_removed_by_a_try_that_was_given_up_on(waiting_world, task_log):
    """The retry, which looks a moment later, would find it gone and unfinished."""
    ti, store = Try(max_tries=1), Store()
    _, first, job = begun(waiting_world, ti, store, on_finish_action="delete")
    begun(waiting_world, next_try(ti), store, on_finish_action="keep", poll_interval=3600)
    waiting_world.write_status(job, "Succeeded")
    assert first.result()["state"] == "Succeeded"
    assert waiting_world.hook.get_job(JobRef.of(job)) is not None
    assert any("is not deleted: try 2 of its task waits for it now" in line for line in task_log())


def test_a_cleared_task_ends_the_job_that_another_try_held(waiting_world):
    ti, store = Try(), Store()
    _, _, job = begun(waiting_world, ti, store)
    store.set(STORE_KEY, {**store.get(STORE_KEY), "waits_in": "trigger"})
    cleared = Try(run_id=ti.run_id, try_number=2, max_tries=1)
    _, _, new = begun(waiting_world, cleared, store)
    assert new["metadata"]["uid"] != job["metadata"]["uid"]
    assert waiting_world.hook.get_job(JobRef.of(job)) is None


def test_a_deletion_that_meets_a_change_looks_again_and_deletes(waiting_world, monkeypatch):
    operator, task, job = begun(waiting_world, Try(), Store(), poll_interval=3600)
    delete, conflicts = operator.hook.delete_job, []

    def changed_meanwhile(ref, **options):
        if not conflicts:
            conflicts.append(options)
            waiting_world.write_status(job, "Running", "changed")
        return delete(ref, **options)

    monkeypatch.setattr(operator.hook, "delete_job", changed_meanwhile)
    operator.on_kill()
    assert waiting_world.hook.get_job(JobRef.of(job)) is None
    with pytest.raises(MXNetJobError):
        task.result()


def test_a_job_that_a_retry_takes_between_the_look_and_the_deletion_is_left(waiting_world, task_log, monkeypatch):
    ti, store = Try(max_tries=1), Store()
    lost, first, job = begun(waiting_world, ti, store, poll_interval=3600)
    delete, taken = AsyncJobClient.delete_job, []

    async def taken_meanwhile(client, ref, **options):
        if not taken:
            taken.append(await asyncio.to_thread(begun, waiting_world, next_try(ti), store, poll_interval=3600))
        return await delete(client, ref, **options)

    monkeypatch.setattr(AsyncJobClient, "delete_job", taken_meanwhile)
    lost.on_kill()
    with pytest.raises(MXNetJobError):
        first.result()
    assert waiting_world.hook.get_job(JobRef.of(job)) is not None
    assert any("try 2 of its task waits for it now" in line for line in task_log())
