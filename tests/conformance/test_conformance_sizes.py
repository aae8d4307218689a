"""Numbers of replicas stay in every format, on both servers: by a rule, and by its twin."""

import copy

import pytest
from builders import make_mxjob
from controller_fixtures import submitted
from older_jobs import FORMATS, kind_of_format, older_job

from mxnet_operator.api import job_formats
from mxnet_operator.api.rules import TOO_LONG
from mxnet_operator.api.validation import validate_update

OF_KUBEFLOW = [
    job_format for job_format, (api_version, _, _) in FORMATS.items() if api_version.startswith("kubeflow.org/")
]
SHORT_ENOUGH = "a" * 52
"""A name that fits with one digit of an index and not with three; with that of a Worker and not of a Scheduler."""
WHY = "processes of MXNet can't join or leave a running job"


def resized(job, count):
    """The job with so many of its last type."""
    for field in ("mxReplicaSpecs", "replicaSpecs"):
        specs = job["spec"].get(field, {})
        if specs:
            last = specs[-1] if isinstance(specs, list) else specs[list(specs)[-1]]
            last["replicas"] = count
    return job


@pytest.mark.parametrize("job_format", OF_KUBEFLOW)
async def test_a_job_of_any_format_keeps_its_size_and_changes_all_else(api, namespace, job_format):
    kind = kind_of_format(job_format)
    path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"
    manifest = older_job(job_format, "digits") | {"apiVersion": kind.api_version}
    stored = (await api.post(path, manifest)).ok()
    answer = await api.ask("PUT", f"{path}/digits", resized(stored, 3))
    assert answer.code == 422
    (cause,) = answer.body["details"]["causes"]
    assert cause["message"].endswith(WHY)
    labelled = resized(stored, 2) | {"metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    (await api.ask("PUT", f"{path}/digits", labelled)).ok()


@pytest.mark.parametrize("job_format", FORMATS)
def test_the_twin_says_the_same_of_every_format(job_format):
    old = older_job(job_format, "digits")
    assert validate_update(old, older_job(job_format, "digits")) == []
    (error,) = validate_update(old, resized(older_job(job_format, "digits"), 3))
    assert error.message.endswith(WHY)


GANG = {"Scheduler": 1, "Server": 2, "Worker": 4}
TUNING = {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}
CHANGES = (
    (GANG, {"Scheduler": 1, "Server": 2, "worker": 4}, True),
    (GANG, {"Scheduler": None, "Server": 2, "Worker": 4}, True),
    (GANG, GANG | {"Tuner": 0}, True),
    (GANG, GANG | {"Worker": 3}, False),
    (GANG, GANG | {"Tuner": 1}, False),
    (GANG, {"Scheduler": 1, "Server": 2, "Tuner": 4}, False),
    (GANG, {"Scheduler": 1, "Worker": 4}, False),
    (TUNING, TUNING | {"TunerServer": 2}, False),
    ({"Worker": None}, {"Worker": 1}, True),
    ({"Worker": None}, {"Worker": 2}, False),
    ({"Worker": 2}, {"Worker": None}, False),
    ({"worker": 2}, {"Worker": 3}, False),
)
"""Counts, those that replace them, and whether a running job takes the change; None is the default of 1."""


@pytest.mark.parametrize("suspends", [(None, False), (True, False), (False, True)])
async def test_both_servers_and_the_twin_judge_a_change_of_counts_alike(api, namespace, suspends):
    path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/mxjobs"

    def job(name, counts, suspend):
        made = submitted(make_mxjob(name).worker(1).run_policy(**({} if suspend is None else {"suspend": suspend})))
        made["metadata"]["namespace"] = namespace
        worker = made["spec"]["mxReplicaSpecs"]["Worker"]
        specs = {each: {"template": worker["template"]} for each in counts}
        made["spec"]["mxReplicaSpecs"] = specs
        for each, count in counts.items():
            specs[each] |= {} if count is None else {"replicas": count}
        return made

    before, after = suspends
    for number, (old, counts, is_allowed) in enumerate(CHANGES):
        name = f"digits-{number}"
        stored = (await api.post(path, job(name, old, before))).ok()
        new = job(name, counts, after)
        new["metadata"] = stored["metadata"]
        answer = await api.ask("PUT", f"{path}/{name}?dryRun=All", new)
        expected = is_allowed or bool(before or after)
        assert (answer.code == 200, validate_update(stored, new) == []) == (expected, expected), (old, counts)


@pytest.mark.parametrize("suspended", [{"suspend": True}, {"runPolicy": {"suspend": True}}])
def test_a_suspended_job_may_be_resized_in_either_spelling(suspended):
    old, new = older_job("v1", "digits"), resized(older_job("v1", "digits"), 3)
    old["spec"] |= suspended
    assert validate_update(old, new) == []


def test_a_job_that_is_rewritten_in_another_format_is_no_resized_one():
    assert validate_update(older_job("v1alpha1", "digits"), older_job("v1", "digits")) == []


@pytest.mark.parametrize("added", [{"Worker": 1001}, {"Scheduler": 1}])
async def test_a_suspended_job_that_gets_replicas_with_too_long_names_is_found_wrong(api, namespace, added):
    """By the controller: a rule of the CRD would be evaluated at each write of a status."""
    path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/mxjobs"
    manifest = submitted(make_mxjob(SHORT_ENOUGH).worker(4).run_policy(suspend=True))
    manifest["metadata"]["namespace"] = namespace
    stored = (await api.post(path, manifest)).ok()
    spec = stored["spec"]
    worker = spec["mxReplicaSpecs"]["Worker"]
    changed = spec["mxReplicaSpecs"] | {name: worker | {"replicas": count} for name, count in added.items()}
    new = stored | {"spec": spec | {"mxReplicaSpecs": changed}}
    new = (await api.ask("PUT", f"{path}/{SHORT_ENOUGH}", new)).ok()
    (error,) = job_formats.errors(new)
    assert (error.path, error.detail) == ("metadata.name", f"Invalid value: {TOO_LONG}")
    assert job_formats.errors(resized(copy.deepcopy(stored), 10)) == []


@pytest.mark.parametrize("job_format", FORMATS)
def test_a_job_whose_pods_names_never_fitted_may_be_changed(job_format):
    old, new = (older_job(job_format, "a" * 60) for _ in range(2))
    new["metadata"]["labels"] = {"a": "b"}
    assert validate_update(old, new) == []
