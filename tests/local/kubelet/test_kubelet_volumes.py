"""Volumes, and the paths that lead to them."""

import asyncio
import shutil
from pathlib import Path

import pytest
from apiserver_objects import volume_claim
from kubelet_fixtures import make_pod, running_node
from waiting import SECONDS

from mxnet_operator.client.jobs import collections
from mxnet_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS
from mxnet_operator.local.kubelet.preparation import Paths

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


async def test_the_path_within_a_volume_is_made_of_the_containers_variables(node, tmp_path):
    mount = {"name": "runs", "mountPath": "/out", "subPathExpr": "$(TEAM)/$(POD)"}
    await node.run(
        "own",
        "echo $POD > /out/name",
        env={"TEAM": "vision", "POD": {"fieldRef": {"fieldPath": "metadata.name"}}},
        container={"volumeMounts": [mount]},
        volumes=[{"name": "runs", "hostPath": {"path": str(tmp_path / "runs"), "type": "DirectoryOrCreate"}}],
    )
    assert (tmp_path / "runs/vision/own/name").read_text() == "own\n"


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({"secret": {"secretName": "none"}}, 'volume "v": secret "none" not found'),
        ({"configMap": {"name": "none"}}, 'volume "v": configmap "none" not found'),
        (
            {"secret": {"secretName": "keys", "items": [{"key": "x", "path": "x"}]}},
            'volume "v": secret references non-existent secret key: x',
        ),
        ({"projected": {"sources": [{"configMap": {"name": "keys"}}]}}, "is of type projected"),
        (
            {"nfs": {"server": "files", "path": "/"}},
            "nfs; the local cluster supports emptyDir, hostPath, persistentVolumeClaim, configMap, secret",
        ),
    ],
)
async def test_a_volume_that_cannot_be_made_keeps_the_pod_waiting_and_an_event_says_why(node, volume, words):
    await node.client.create(SECRETS.path("default"), secret("keys", id="me"))
    await node.create(make_pod("lacking", "true", volumes=[{"name": "v", **volume}]))
    assert words in (await node.event("lacking", "FailedMount"))["message"]
    await node.delete("lacking")
    await node.gone("lacking")


CLAIMED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
CLAIM = PERSISTENT_VOLUME_CLAIMS.path("default", "data")


async def made_claim(node, **spec):
    return await node.client.create(PERSISTENT_VOLUME_CLAIMS.path("default"), volume_claim("data", **spec))


async def claim_gone(node):
    async with asyncio.timeout(SECONDS):
        async for claims in collections(node.client, PERSISTENT_VOLUME_CLAIMS.path("default")):
            if not claims:
                return


async def test_a_claim_is_bound_by_the_first_pod_and_keeps_what_is_stored(node):
    made = await made_claim(node)
    await node.run("first", "echo saved > /data/checkpoint", container=MOUNTED, volumes=CLAIMED)
    claim = await node.client.get(CLAIM)
    assert claim["spec"]["volumeName"] == f"pvc-{made['metadata']['uid']}"
    assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    await node.delete("first")
    await node.gone("first")
    await node.run("second", "cat /data/checkpoint", container=MOUNTED, volumes=CLAIMED)
    assert await node.log("second") == "saved\n"


async def test_what_a_claim_has_stored_outlives_the_cluster(tmp_path):
    for command in ("echo saved > /data/checkpoint", "cat /data/checkpoint"):
        async with running_node(tmp_path) as node:  # with an API server that knows nothing of the one before
            await made_claim(node)
            await node.run("user", command, container=MOUNTED, volumes=CLAIMED)
            said = await node.log("user")
    assert said == "saved\n"


async def test_a_deleted_claim_goes_with_its_data_once_no_pod_uses_it(node):
    await made_claim(node)
    await node.create(make_pod("user", "touch /data/x; sleep 100", container=MOUNTED, volumes=CLAIMED))
    await node.running("user")
    await node.client.delete(CLAIM)
    await node.create(make_pod("late", "true", container=MOUNTED, volumes=CLAIMED))
    said = (await node.event("late", "FailedScheduling"))["message"]
    assert said == '0/1 nodes are available: persistentvolumeclaim "data" is being deleted.'
    assert "deletionTimestamp" in (await node.client.get(CLAIM))["metadata"]
    (stored,) = node.folder.rglob("claims/default/data")
    await node.delete("user")
    await node.gone("user")
    await claim_gone(node)  # the other has no node yet
    await node.delete("late")
    await node.gone("late")
    assert not stored.exists()
    await made_claim(node)
    await node.run("anew", "ls /data", container=MOUNTED, volumes=CLAIMED)
    assert await node.log("anew") == ""


async def test_what_cannot_be_removed_keeps_the_claim_and_is_tried_again(node, monkeypatch):
    failures = iter([OSError("busy"), OSError("busy")])

    def rmtree(folder, **_):
        if error := next(failures, None):
            raise error
        real(folder)

    real = shutil.rmtree
    await made_claim(node)
    await node.run("user", "touch /data/x", container=MOUNTED, volumes=CLAIMED)
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    await node.client.delete(CLAIM)
    await claim_gone(node)
    assert next(failures, None) is None
    assert not [*node.folder.rglob("claims/default/data")]


@pytest.mark.parametrize(
    ("spec", "words"),
    [(None, 'persistentvolumeclaim "data" not found'), ({"volumeMode": "Block"}, "doesn't support volumeMode Block")],
)
async def test_a_claim_that_cannot_be_had_keeps_the_pod_unscheduled_until_it_can(node, spec, words):
    if spec is not None:
        await made_claim(node, **spec)
    await node.create(make_pod("lacking", "true", container=MOUNTED, volumes=CLAIMED))
    message = (await node.event("lacking", "FailedScheduling"))["message"]
    assert words in message
    pod = await node.get("lacking")
    assert "nodeName" not in pod["spec"]
    (condition,) = (each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", message)
    if spec is not None:
        await node.client.delete(CLAIM)
        await claim_gone(node)
    await made_claim(node)
    await node.ended("lacking")
