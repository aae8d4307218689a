"""The folder of a volume that a container's mount names by `subPath`."""

import pytest

from mxnet_operator.local.kubelet.volumes import mounts

OF_USER = [{"hostPath": {"path": "/x"}}, {"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "c"}}]
WRITTEN = [{"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}, {"projected": {}}, {"downwardAPI": {}}]


def mounted(volume, folder, sub_path):
    pod = {"spec": {"volumes": [{"name": "v", **volume}]}}
    container = {"name": "mxnet", "volumeMounts": [{"name": "v", "mountPath": "/data", "subPath": sub_path}]}
    return mounts(pod, container, {"v": folder})["/data"]


@pytest.mark.parametrize("volume", OF_USER, ids=lambda each: next(iter(each)))
def test_a_sub_path_that_is_not_there_is_made(tmp_path, volume):
    assert mounted(volume, tmp_path, "runs/1") == tmp_path / "runs/1"
    assert (tmp_path / "runs/1").is_dir()


@pytest.mark.parametrize("volume", [*OF_USER, *WRITTEN], ids=lambda each: next(iter(each)))
def test_a_sub_path_that_is_a_file_is_left(tmp_path, volume):
    (tmp_path / "file").write_text("kept")
    assert mounted(volume, tmp_path, "file").read_text() == "kept"


@pytest.mark.parametrize("volume", WRITTEN, ids=lambda each: next(iter(each)))
def test_nothing_is_made_among_files_that_the_kubelet_writes(tmp_path, volume):
    mounted(volume, tmp_path, "missing")
    assert list(tmp_path.iterdir()) == []
