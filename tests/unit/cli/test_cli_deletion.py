"""A run adopts its own job, and deletes it exactly as it was read: another run's is left."""

import json

import pytest
from scripted_api import answer, make_object, refuse, scripted_api

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.running.create_job import create_or_adopt, is_own
from mxnet_operator.cli.running.interrupted_job import OnInterrupt, finish_interrupted, part_as_step
from mxnet_operator.cli.running.run_outputs import Record
from mxnet_operator.cli.server.connection import Target
from mxnet_operator.kube.errors import ApiError

RUN = "example.com/run"
API = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob"}
DONE = answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
GONE = refuse(404, "NotFound", name="a")
CONFLICT = refuse(409, "Conflict", name="a")


def job_at(version, run="1", **metadata):
    job = make_object("a", version, spec={"mxReplicaSpecs": {}}, **API)
    job["metadata"] |= {"labels": {RUN: run}, **metadata}
    return job


def ours(job):
    return is_own(job, job_at(0), RUN)


async def parted(*turns, how=finish_interrupted):
    """What is said at the end, and the requests: the method, and of a deletion its preconditions."""
    record = Record(None)
    record.seen(job_at(1))
    async with scripted_api(*turns) as api, api.client() as client:
        if how is finish_interrupted:
            await finish_interrupted(client, record, OnInterrupt.DELETE, "interrupted", ours)
        else:
            await part_as_step(client, record, "n", Exit.TERMINATED, ours)
    bodies = [json.loads(body)["preconditions"] if method == "DELETE" else {} for method, _, _, _, body in api.asked]
    return record.message, list(zip([method for method, *_ in api.asked], bodies, strict=True))


def only(version):
    return {"uid": "uid-of-a", "resourceVersion": str(version)}


async def test_what_was_looked_at_is_deleted_and_what_has_changed_since_is_looked_at_again():
    nothing = answer({"kind": "MXJobList", "metadata": {"resourceVersion": "9"}, "items": []})
    said, asked = await parted(answer(job_at(5)), CONFLICT, answer(job_at(6)), DONE, nothing)
    assert said == "interrupted: deleting job a"
    assert asked == [("GET", {}), ("DELETE", only(5)), ("GET", {}), ("DELETE", only(6)), ("GET", {})]


async def test_a_step_of_a_deletion_leaves_a_job_that_became_another_run():
    said, asked = await parted(refuse(404, "NotFound"), answer(job_at(6, run="2")), how=part_as_step)
    assert said == "workflow n is gone: job a was not deleted: it no longer belongs to this run"
    assert [method for method, _ in asked] == ["GET", "GET"]


@pytest.mark.parametrize("turns", [[GONE], [answer(job_at(5)), GONE, GONE], [answer(job_at(5, uid="later"))]])
async def test_one_that_is_gone_and_a_later_one_of_its_name_are_not_deleted(turns):
    said, asked = await parted(*turns)
    assert said == "interrupted: deleting job a"
    assert [method for method, _ in asked] == ["GET", "DELETE", "GET"][: len(turns)]


async def test_a_server_that_always_finds_a_conflict_is_told_and_not_asked_for_ever():
    said, _ = await parted(*[answer(job_at(5)), CONFLICT] * 40)
    assert said == "interrupted: job a was not deleted: it kept changing"


async def test_a_quota_is_worth_another_attempt_at_an_adoption_and_a_missing_right_is_not():
    for message, raised in (("exceeded quota: few, used: 1", CommandError), ("User cannot create", ApiError)):
        async with scripted_api(refuse(403, "Forbidden", message)) as api, api.client() as client:
            with pytest.raises(raised, match=message) as caught:
                await create_or_adopt(client, job_at(0), Target(), RUN)
        assert getattr(caught.value, "code", None) == (Exit.TRY_AGAIN if raised is CommandError else 403)
