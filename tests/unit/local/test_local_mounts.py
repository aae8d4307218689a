"""The folder of a volume that a container's mount names by `subPath` or `subPathExpr`."""

import pytest

from mxnet_operator.local.apiserver.keyed_objects import CONFIG_MAP
from mxnet_operator.local.kubelet.volumes import MountError, make_volumes, mounts


def mounted(folder, sub_path=None, **fields):
    container = {
        "name": "mxnet",
        "volumeMounts": [{"name": "v", "mountPath": "/data", "subPath": sub_path, **fields}],
    }
    return mounts(container, {"v": folder}, {"A": "a", "UP": "..", "ROOT": "/etc", "EMPTY": ""})["/data"]


def test_a_sub_path_that_is_not_there_is_made(tmp_path):
    assert mounted(tmp_path, "runs/1") == tmp_path / "runs/1"
    assert (tmp_path / "runs/1").is_dir()


def test_a_sub_path_that_is_a_file_is_left(tmp_path):
    (tmp_path / "file").write_text("kept")
    assert mounted(tmp_path, "file").read_text() == "kept"


# As kubelet's ExpandContainerVolumeMounts has it.
@pytest.mark.parametrize(
    ("expression", "path"),
    [("$(A)", "a"), ("runs/$(A)/$(A)", "runs/a/a"), ("$$(A)", "$(A)"), ("plain", "plain"), ("", "")],
)
def test_an_expression_is_expanded_by_the_containers_variables(tmp_path, expression, path):
    assert mounted(tmp_path, subPathExpr=expression) == tmp_path / path


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("$(NONE)/$(A)", "missing value for NONE"),
        ("$(EMPTY)/$(ALSO)", "missing value for ALSO, EMPTY"),
        ("$(UP)/x", "must stay within its volume"),
        ("$(ROOT)", "must stay within its volume"),
    ],
)
def test_one_that_leads_nowhere_is_refused(tmp_path, expression, why):
    with pytest.raises(MountError, match=why):
        mounted(tmp_path, subPathExpr=expression)


def test_an_optional_volume_has_the_keys_that_exist_and_another_is_refused(tmp_path):
    items = [{"key": key, "path": f"{key}.txt"} for key in ("a", "b")]
    settings = {"name": "settings", "items": items, "optional": True}
    volumes = [{"name": "s", "configMap": settings}, {"name": "k", "secret": {"secretName": "none", "optional": True}}]
    pod, objects = {"spec": {"volumes": volumes}}, {(CONFIG_MAP, "settings"): {"data": {"a": "1"}}}
    made = make_volumes(pod, tmp_path, objects, {})
    assert {name: [each.name for each in folder.iterdir()] for name, folder in made.items()} == {
        "s": ["a.txt"],
        "k": [],
    }
    settings["optional"] = False
    with pytest.raises(MountError, match="non-existent config key: b"):
        make_volumes(pod, tmp_path, objects, {})
