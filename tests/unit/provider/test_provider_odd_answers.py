"""An answer that no API server gives is an outage to both hooks: waited out, and never the end of a triggerer."""

import asyncio

import pytest
from kubernetes import client
from odd_answers import ODD
from scripted_api import answer, make_object, make_status, scripted_api
from waiting import MOMENT

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import Outage
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_provider.hooks.api_errors import is_transient
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

REF = JobRef.of({"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": make_object("a", 1)["metadata"]})
CALLS = {
    "get_job": (REF,),
    "replica_pods": (REF,),
    "delete_job": (REF,),
    "patch_job": (REF, {}),
}
ONLY_SYNC = {
    "create_job": (make_object("a", 1, apiVersion="kubeflow.org/v1", kind="MXJob"),),
    "list_jobs": ("default", "a=b"),
    "warnings": (REF,),
}
BELIEVED = {odd: {"delete_job"} for odd in ("200 a Status", "200 items null", "200 a list without a version")}
"""What looks like an answer to these calls: a deletion is answered with a Status, an object, or a list of them."""


def configuration(url):
    found = client.Configuration()
    found.host = url
    return found


def sync_hook(url, **options):
    """The hook of a server whose address no connection says."""

    class Jobs(AsyncJobClient):
        async def _configuration(self):
            return configuration(url)

    hook = MXNetJobHook(**options)
    if url:
        hook.job_client = lambda: Jobs(hook, print)
    return hook


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Without the retries, which are for what `is_transient` says."""
    monkeypatch.setattr(Outage, "lasts_too_long", lambda *_: True)


@pytest.mark.parametrize("of_trigger", [True, False], ids=["trigger", "worker"])
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_answer_is_an_outage(odd, of_trigger):
    for name, arguments in (CALLS if of_trigger else CALLS | ONLY_SYNC).items():
        async with scripted_api(*[ODD[odd]] * 2) as api, Client(api.credentials(), attempts=1) as connection:
            hook = MXNetJobAsyncHook() if of_trigger else sync_hook(api.url)
            hook._open, error = connection, None
            call = getattr(hook, name)
            try:
                await (call(*arguments) if of_trigger else asyncio.to_thread(call, *arguments))
            except Exception as e:
                error = e
            assert (error is None) == (name in BELIEVED.get(odd, ())), (name, error)
            assert error is None or is_transient(error), error


async def test_the_log_of_a_pod_whose_node_has_no_address_is_asked_for_once():
    """The task of a failed job would wait two minutes for it."""
    refusal = make_status(500, "", "no preferred addresses found; known addresses: []")
    async with scripted_api(answer(refusal, 500)) as api:
        with pytest.raises(ApiError, match="no preferred addresses found"):
            async with asyncio.timeout(MOMENT):
                await asyncio.to_thread(sync_hook(api.url).last_lines, "digits-worker-0", "default", 9)
        assert len(api.asked) == 1


async def test_a_real_refusal_is_none():
    refusal = make_status(422, "Invalid", "no")
    async with scripted_api(answer(refusal, 422)) as api, Client(api.credentials()) as connection:
        hook = MXNetJobAsyncHook()
        hook._open = connection
        with pytest.raises(ApiError) as caught:
            await hook.get_job(REF)
    assert not is_transient(caught.value)
