"""A finished job keeps what its result is the result of: the fixture `api` may be ours or a real one."""

import copy

import pytest
from apiserver_objects import JOBS, mxjob

REFUSAL = (
    "spec.mxReplicaSpecs: Invalid value: the job is finished, and its result is that of the replicas that it had:"
    " delete it, or make another job"
)


async def stored(api, namespace, state):
    """A job whose controller has said this last."""
    made = (await api.post(JOBS.format(namespace), mxjob("digits"))).ok()
    if state is None:
        return made
    path = f"{JOBS.format(namespace)}/digits/status"
    return (await api.merge(path, {"status": {"state": state}})).ok()


def with_args(job, args):
    changed = copy.deepcopy(job)
    for spec in changed["spec"]["mxReplicaSpecs"].values():
        spec["template"]["spec"]["containers"][0]["args"] = args
    return changed


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
async def test_what_a_finished_job_ran_can_not_be_changed(api, namespace, state):
    job = await stored(api, namespace, state)
    answer = await api.ask("PUT", f"{JOBS.format(namespace)}/digits", with_args(job, ["--lr", "0.7"]))
    assert answer.code == 422, answer.text
    assert [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]] == [REFUSAL]


@pytest.mark.parametrize("state", [None, "Created", "Running", "Restarting", "Suspended"])
async def test_what_an_unfinished_job_runs_can_be_changed(api, namespace, state):
    job = await stored(api, namespace, state)
    (await api.ask("PUT", f"{JOBS.format(namespace)}/digits", with_args(job, ["--lr", "0.7"]))).ok()


async def test_a_finished_jobs_run_policy_and_labels_can_be_changed(api, namespace):
    job = await stored(api, namespace, "Succeeded")
    job["metadata"]["labels"] = {"team": "a"}
    job["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": 60}
    (await api.ask("PUT", f"{JOBS.format(namespace)}/digits", job)).ok()
