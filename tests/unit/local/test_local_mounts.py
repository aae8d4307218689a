"""The folder of a volume that a container's mount names by `subPath`."""

from mxnet_operator.local.kubelet.volumes import mounts


def mounted(folder, sub_path):
    container = {"name": "mxnet", "volumeMounts": [{"name": "v", "mountPath": "/data", "subPath": sub_path}]}
    return mounts(container, {"v": folder})["/data"]


def test_a_sub_path_that_is_not_there_is_made(tmp_path):
    assert mounted(tmp_path, "runs/1") == tmp_path / "runs/1"
    assert (tmp_path / "runs/1").is_dir()


def test_a_sub_path_that_is_a_file_is_left(tmp_path):
    (tmp_path / "file").write_text("kept")
    assert mounted(tmp_path, "file").read_text() == "kept"
