"""Numbers of replicas stay while a job may run: the fixture `api` may be ours or a real one."""

import copy

import pytest
from apiserver_objects import JOBS, mxjob

REFUSAL = (
    "spec.mxReplicaSpecs: Invalid value: numbers of replicas can be changed only while runPolicy.suspend is true: "
    "processes of MXNet can't join or leave a running job"
)


def job(suspend=None, **counts):
    """The manifest of a job with so many replicas of each type, None for a type whose number is left open."""
    made = mxjob("digits")
    template = next(iter(made["spec"]["mxReplicaSpecs"].values()))["template"]
    made["spec"]["mxReplicaSpecs"] = {
        kind: {"template": copy.deepcopy(template)} | ({} if count is None else {"replicas": count})
        for kind, count in counts.items()
    }
    if suspend is not None:
        made["spec"]["runPolicy"] = {"suspend": suspend}
    return made


async def updated(api, namespace, before, after):
    """The answer to an update from one manifest to another."""
    stored = (await api.post(JOBS.format(namespace), before)).ok()
    change = {**after, "metadata": {**after["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}}
    return await api.ask("PUT", f"{JOBS.format(namespace)}/digits", change)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (job(Worker=2), job(Worker=3)),
        (job(Worker=2), job(Worker=1)),
        (job(Worker=None), job(Worker=2)),
        (job(Worker=2), job(Worker=None)),
        (job(suspend=False, Worker=2), job(suspend=False, Worker=3)),
        (job(Scheduler=1, Server=1, Worker=2), job(Scheduler=1, Server=2, Worker=2)),
        (job(Scheduler=1, Worker=2), job(Scheduler=0, Worker=2)),
        (job(Worker=2), job(Scheduler=1, Worker=2)),
        (job(Scheduler=1, Worker=2), job(Worker=2)),
        (job(TunerTracker=1, TunerServer=1, Tuner=1), job(TunerTracker=1, TunerServer=2, Tuner=1)),
        (job(worker=2), job(Worker=3)),
    ],
)
async def test_numbers_of_replicas_of_a_job_that_may_run_can_not_be_changed(api, namespace, before, after):
    answer = await updated(api, namespace, before, after)
    assert answer.code == 422, answer.text
    assert [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]] == [REFUSAL]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (job(suspend=True, Worker=2), job(suspend=True, Worker=3)),
        (job(suspend=True, Worker=2), job(suspend=False, Worker=1)),
        (job(suspend=True, Worker=2), job(Worker=3)),
        (job(Worker=2), job(suspend=True, Worker=3)),
        (job(suspend=True, Scheduler=1, Worker=1), job(suspend=True, Worker=1)),
        (job(Worker=None), job(Worker=1)),
        (job(worker=2), job(Worker=2)),
        (job(Server=0, Worker=2), job(Worker=2)),
        (job(Worker=2), job(suspend=True, Worker=2)),
    ],
)
async def test_they_can_be_while_it_is_suspended_and_so_can_whatever_leaves_them_as_they_are(
    api, namespace, before, after
):
    assert (await updated(api, namespace, before, after)).code == 200
