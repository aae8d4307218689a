"""A job that is waited for is the one that it was, though another has its name by now."""

import contextlib

import pytest
from scripted_api import answer, scripted_api, stream

from mxnet_operator.client.jobs import DeletedError, job_versions


def listed(uid: str) -> dict[str, object]:
    job = {
        "metadata": {"name": "digits", "namespace": "default", "uid": uid, "resourceVersion": "1"},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {}},
    }
    return {"metadata": {"resourceVersion": "1"}, "items": [job]}


async def test_one_that_was_made_anew_between_two_looks_is_another() -> None:
    async with (
        scripted_api(answer(listed("first")), stream(then="end"), answer(listed("second"))) as api,
        api.client() as client,
    ):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": listed("first")["items"][0]["metadata"]}
        async with contextlib.aclosing(job_versions(client, job)) as changes:
            assert (await anext(changes))["metadata"]["uid"] == "first"
            with pytest.raises(DeletedError):
                await anext(changes)
