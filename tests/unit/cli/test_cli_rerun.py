"""The manifest of a job that runs another one again."""

import pytest

from mxnet_operator.client.job_actions import again

POLICY = {"suspend": True, "backoffLimit": 3, "activeDeadlineSeconds": 60}


def stored(**metadata):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "digits", "namespace": "team", "uid": "1", "resourceVersion": "7", **metadata},
        "spec": {"runPolicy": POLICY, "mxReplicaSpecs": {"Worker": {"replicas": 2}}},
        "status": {"state": "Failed"},
    }


def test_the_spec_is_the_same_but_that_it_runs():
    job = stored(
        ownerReferences=[{"uid": "2"}],
        finalizers=["example.com/stay"],
        annotations={"mxjob.kubeflow.org/stop": "true", "a": "b"},
        labels={"dag_id": "train", "kueue.x-k8s.io/queue-name": "q"},
    )
    assert again(job) == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"generateName": "digits-", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {
            "runPolicy": {"backoffLimit": 3, "activeDeadlineSeconds": 60},
            "mxReplicaSpecs": {"Worker": {"replicas": 2}},
        },
    }
    assert job["spec"]["runPolicy"] == POLICY


@pytest.mark.parametrize(
    ("name", "generated_from", "prefix"),
    [("digits-x7k2p", "digits-", "digits-"), ("a" * 39 + "-bcd", None, "a" * 39 + "-"), ("a.b", None, "a.b-")],
)
def test_the_name_is_generated_as_the_first_one_was_and_never_too_long(name, generated_from, prefix):
    job = stored(name=name, **({"generateName": generated_from} if generated_from else {}))
    assert again(job)["metadata"]["generateName"] == prefix
