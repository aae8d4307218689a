"""Volumes, and the paths that lead to them."""

from pathlib import Path

import pytest
from kubelet_fixtures import IMAGE, make_pod, state, statuses

from mxnet_operator.kube.resources import CONFIGMAPS
from mxnet_operator.local.kubelet.paths import Paths

PATHS = Paths({"/data": Path("/real/d"), "/data/in": Path("/real/i"), "/dev/termination-log": Path("/real/t")})


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("/data", "/real/d"),
        ("/data/", "/real/d/"),
        ("/data/train.csv", "/real/d/train.csv"),
        ("/data/in/x", "/real/i/x"),
        ("--input=/data/x", "--input=/real/d/x"),
        ("cat /data/a /data/in/b > /dev/termination-log", "cat /real/d/a /real/i/b > /real/t"),
        ('{"path": "/data"}', '{"path": "/real/d"}'),
        ("file:/data:/data/in", "file:/real/d:/real/i"),
        ("/database", "/database"),
        ("/data-2/x", "/data-2/x"),
        ("/data.old", "/data.old"),
        ("/home/data/x", "/home/data/x"),
        ("data/x", "data/x"),
    ],
)
def test_container_paths_are_rewritten_where_they_begin_and_end(text, rewritten):
    assert PATHS.rewrite(text) == rewritten


async def test_the_containers_of_a_pod_share_an_empty_dir(node):
    mount = {"volumeMounts": [{"name": "shared", "mountPath": "/cache"}]}
    waits = "while ! test -p /cache/pipe; do sleep 0.05; done; cat /cache/pipe"
    pod = make_pod("pair", "mkfifo /cache/pipe; echo through > /cache/pipe", container=mount)
    pod["spec"]["volumes"] = [{"name": "shared", "emptyDir": {}}]
    pod["spec"]["containers"].append({"name": "reader", "image": IMAGE, "command": ["sh", "-c", waits], **mount})
    await node.create(pod)
    await node.ended("pair")
    assert await node.log("pair", container="reader") == "through\n"


async def test_a_host_path_is_the_folder_itself_and_stays(node, tmp_path):
    await node.run(
        "host",
        "pwd; echo 1 > /out/result",
        container={"volumeMounts": [{"name": "out", "mountPath": "/out"}], "workingDir": "/out"},
        volumes=[{"name": "out", "hostPath": {"path": str(tmp_path / "kept"), "type": "DirectoryOrCreate"}}],
    )
    assert await node.log("host") == f"{tmp_path}/kept\n"
    await node.delete("host")
    assert (tmp_path / "kept/result").read_text() == "1\n"


async def test_a_config_map_is_a_folder_of_files(node):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a.txt": "A", "b.txt": "B"}}
    await node.client.create(CONFIGMAPS.path("default"), body)
    await node.run(
        "files",
        "cat /conf/a.txt /one/renamed; ls /one",
        container={
            "volumeMounts": [{"name": "all", "mountPath": "/conf"}, {"name": "some", "mountPath": "/one"}],
        },
        volumes=[
            {"name": "all", "configMap": {"name": "conf"}},
            {"name": "some", "configMap": {"name": "conf", "items": [{"key": "b.txt", "path": "renamed"}]}},
        ],
    )
    assert await node.log("files") == "ABrenamed\n"


async def test_a_volume_of_an_unknown_type_keeps_the_pod_waiting_and_an_event_says_why(node):
    claim = [{"name": "disk", "persistentVolumeClaim": {"claimName": "big"}}]
    await node.create(make_pod("claiming", "true", volumes=claim))
    message = (await node.event("claiming", "FailedMount"))["message"]
    assert "persistentVolumeClaim" in message
    assert "emptyDir, hostPath, configMap" in message
    pod = await node.get("claiming")
    assert state(statuses(pod)[0], "waiting")["reason"] == "ContainerCreating"
    await node.delete("claiming")
    await node.gone("claiming")
