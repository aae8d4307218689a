"""Numbers of replicas stay in every form, on both servers: by a rule, and by its twin."""

import pytest
from older_jobs import FORMS, kind_of_form, older_job

from mxnet_operator.api.validation import validate_update

OF_KUBEFLOW = [form for form, (api_version, _, _) in FORMS.items() if api_version.startswith("kubeflow.org/")]
WHY = "processes of MXNet can't join or leave a running job"


def resized(job, count):
    """The job with so many of its last type."""
    for field in ("mxReplicaSpecs", "replicaSpecs"):
        specs = job["spec"].get(field, {})
        if specs:
            last = specs[-1] if isinstance(specs, list) else specs[list(specs)[-1]]
            last["replicas"] = count
    return job


@pytest.mark.parametrize("form", OF_KUBEFLOW)
async def test_a_job_of_any_form_keeps_its_size_and_changes_all_else(api, namespace, form):
    kind = kind_of_form(form)
    path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"
    manifest = older_job(form, "digits") | {"apiVersion": kind.api_version}
    stored = (await api.post(path, manifest)).ok()
    answer = await api.ask("PUT", f"{path}/digits", resized(stored, 3))
    assert answer.code == 422
    (cause,) = answer.body["details"]["causes"]
    assert cause["message"].endswith(WHY)
    labelled = resized(stored, 2) | {"metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    (await api.ask("PUT", f"{path}/digits", labelled)).ok()


@pytest.mark.parametrize("form", FORMS)
def test_the_twin_says_the_same_of_every_form(form):
    old = older_job(form, "digits")
    assert validate_update(old, older_job(form, "digits")) == []
    (error,) = validate_update(old, resized(older_job(form, "digits"), 3))
    assert error.message.endswith(WHY)


@pytest.mark.parametrize("suspended", [{"suspend": True}, {"runPolicy": {"suspend": True}}])
def test_a_suspended_job_may_be_resized_in_either_spelling(suspended):
    old, new = older_job("v1", "digits"), resized(older_job("v1", "digits"), 3)
    old["spec"] |= suspended
    assert validate_update(old, new) == []


def test_a_job_that_is_rewritten_in_another_form_is_no_resized_one():
    assert validate_update(older_job("v1alpha1", "digits"), older_job("v1", "digits")) == []
