"""A job of an older format is replaced by its converted manifest, with the real kubectl on the local API server."""

import json

import pytest
from older_jobs import older_job

from mxnet_operator.api.conversion import convert


def old(job_format):
    """The job as its user wrote it."""
    job = older_job(job_format, "digits")
    job["spec"].pop("cleanPodPolicy", None)  # v1beta1's default is filled in by the server
    return job


@pytest.mark.parametrize("job_format", ["flat-v1", "v1beta1", "v1alpha1"])
async def test_kubectl_replace_rewrites_it_in_place(kubectl, job_format):
    await kubectl.ok("apply", "-f", "-", stdin=old(job_format))
    uid = await kubectl.ok("get", "mxjob", "digits", "-o", "jsonpath={.metadata.uid}")
    written = convert(old(job_format)).manifest
    assert await kubectl.ok("replace", "-f", "-", stdin=written) == "mxjob.kubeflow.org/digits replaced\n"
    stored = json.loads(await kubectl.ok("get", "mxjob", "digits", "-o", "json"))
    assert stored["metadata"]["uid"] == uid
    assert stored["spec"].keys() == written["spec"].keys()
    assert convert(stored) is None


@pytest.mark.parametrize("job_format", ["flat-v1", "v1alpha1"])
async def test_kubectl_apply_does_so_too_where_it_made_the_job(kubectl, job_format):
    await kubectl.ok("apply", "-f", "-", stdin=old(job_format))
    written = convert(old(job_format)).manifest
    assert await kubectl.ok("apply", "-f", "-", stdin=written) == "mxjob.kubeflow.org/digits configured\n"
    stored = json.loads(await kubectl.ok("get", "mxjob", "digits", "-o", "json"))
    assert stored["spec"].keys() == written["spec"].keys()


async def test_kubectl_apply_is_refused_where_the_server_had_filled_a_field_in(kubectl):
    await kubectl.ok("apply", "-f", "-", stdin=old("v1beta1"))
    refusal = await kubectl.refused("apply", "-f", "-", stdin=convert(old("v1beta1")).manifest)
    assert "another format than runPolicy: cleanPodPolicy (write spec.runPolicy.cleanPodPolicy)" in refusal
