"""Where a job's volumes keep what its replicas wrote."""

import pytest

from mxnet_operator.readers.volumes import kept_volumes


def job(volume, **mount):
    container = {"name": "mxnet", "volumeMounts": [{"name": "v", "mountPath": "/models", **mount}]}
    template = {"spec": {"containers": [container], "volumes": [{"name": "v", **volume}]}}
    return {"spec": {"mxReplicaSpecs": {"Scheduler": {"template": template}, "Worker": {"template": template}}}}


CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}


@pytest.mark.parametrize(
    ("volume", "said"),
    [
        (CLAIM, "claim models at /models"),
        ({"hostPath": {"path": "/home/me/out"}}, "folder /home/me/out at /models"),
        ({"nfs": {"server": "store", "path": "/x"}}, "nfs v at /models"),
        ({"azureFile": {"secretName": "store", "shareName": "x"}}, "azureFile v at /models"),
    ],
)
def test_a_volume_that_outlives_the_pods_is_named_once_with_its_mount(volume, said):
    assert list(map(str, kept_volumes(job(volume)))) == [said]


@pytest.mark.parametrize(
    "lost",
    [
        job(CLAIM, readOnly=True),
        job({"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}),
        job({"emptyDir": {}}),
        job({}),
        job({"persistentVolumeClaim": None}),
        job({"configMap": {"name": "models"}}),
        {"spec": {"mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "mxnet"}]}}}}}},
    ],
)
def test_what_is_read_only_or_goes_with_its_pod_keeps_nothing(lost):
    assert kept_volumes(lost) == []
