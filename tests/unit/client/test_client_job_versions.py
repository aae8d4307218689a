"""A job that is waited for is the one that it was, though another has its name by now."""

import contextlib
from typing import Any

import pytest
from scripted_api import answer, refuse, scripted_api, stream

from mxnet_operator.client.jobs import DeletedError, job_versions
from mxnet_operator.kube.client import Client


def listed(uid: str) -> dict[str, Any]:
    job = {
        "metadata": {"name": "digits", "namespace": "default", "uid": uid, "resourceVersion": "1"},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {}},
    }
    return {"metadata": {"resourceVersion": "1"}, "items": [job]}


async def becomes_another(client: Client) -> None:
    """Follow the job `first`, whose name another gets."""
    job = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": listed("first")["items"][0]["metadata"]}
    async with contextlib.aclosing(job_versions(client, job)) as changes:
        assert (await anext(changes))["metadata"]["uid"] == "first"
        with pytest.raises(DeletedError):
            await anext(changes)


async def test_one_that_was_made_anew_between_two_looks_is_another() -> None:
    async with (
        scripted_api(answer(listed("first")), stream(then="end"), answer(listed("second"))) as api,
        api.client() as client,
    ):
        await becomes_another(client)


async def test_an_expired_list_is_read_again_and_a_watch_asks_for_five_minutes_at_most() -> None:
    """A load balancer spreads only new connections over the servers."""
    async with (
        scripted_api(refuse(410, "Expired"), answer(listed("first")), stream(then="end"), answer(listed("x"))) as api,
        api.client() as client,
    ):
        await becomes_another(client)
        (limit,) = [query["timeoutSeconds"] for query in api.queries() if query.get("watch")]
        assert 60 <= int(limit) <= 300
