"""A controller before a pod that won't go: it asks after its node, and after no other."""

from datetime import timedelta

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, RecordingClient, submitted, world
from waiting import until

from mxnet_operator.controller.reads import node_views
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.plan import NodeView, Policy

NODES = "/api/v1/nodes"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def node(name, *, ready=None, taints=()):
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "spec": {"taints": list(taints)}, "status": {"conditions": conditions}}


async def test_a_node_is_out_of_service_if_it_is_tainted_so_and_not_ready(tmp_path):
    async with world(tmp_path, start=False) as w:
        for each in (
            node("well", ready="True"),
            node("silent", ready="Unknown", taints=[TAINT | {"key": "node.kubernetes.io/unreachable"}]),
            node("off", ready="Unknown", taints=[TAINT]),
            node("tainted-by-mistake", ready="True", taints=[TAINT]),
        ):
            (await w.api.post(NODES, each)).ok()
        views = await node_views(w.client, ["well", "silent", "off", "tainted-by-mistake", "deleted"])
    assert [(view.name, view.state) for view in views] == [
        ("well", "Present"),
        ("silent", "Present"),
        ("off", "OutOfService"),
        ("tainted-by-mistake", "Present"),
        ("deleted", "Gone"),
    ]


async def test_no_right_to_read_nodes_is_an_answer():
    class Forbidding:
        async def get_as(self, path, _):
            raise ApiError(403, "Forbidden", f"{path} is forbidden")

    assert await node_views(Forbidding(), ["node"]) == (NodeView(name="node", state="Forbidden"),)


IMPATIENT = Policy(termination_slack=timedelta(0), ask_for_nodes=timedelta(seconds=0.1))
"""Controllers give stuck pods no slack, and look at their nodes all the time."""


async def lose_a_worker(w):
    """A gang runs on two nodes; a worker is deleted whose kubelet never answers."""
    for name in ("here", "lost"):
        (await w.api.post(NODES, node(name, ready="Unknown"))).ok()
    job = make_mxjob("digits").scheduler().worker(1).restart("ExitCode")
    for kind in ("Scheduler", "Worker"):
        job.template(kind, terminationGracePeriodSeconds=1)
    await w.submit(submitted(job))
    pods = await w.pods(2)
    for name in pods:
        target = {"kind": "Node", "name": "lost" if "worker" in name else "here"}
        (await w.api.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})).ok()
    await w.move(pods, "Running")
    await w.state("digits", "Running")
    (await w.api.delete(f"{PODS}/digits-worker-0")).ok()
    await w.state("digits", "Restarting")
    await w.eventually(
        PODS, lambda pods: "deletionTimestamp" in pods.get("digits-scheduler-0", {"metadata": {}})["metadata"]
    )
    (await w.api.delete(f"{PODS}/digits-scheduler-0", {"gracePeriodSeconds": 0})).ok()
    return pods["digits-worker-0"]["metadata"]["uid"]


def terminating(jobs, status):
    conditions = jobs.get("digits", {}).get("status", {}).get("conditions", [])
    return [each for each in conditions if (each["type"], each["status"]) == ("PodsTerminating", status)]


@pytest.mark.parametrize("end", ["deleted", "tainted"])
async def test_a_gang_waits_for_a_pod_on_a_lost_node_until_that_can_run_it_no_more(tmp_path, end):
    async with world(tmp_path, start=False) as w:
        await w.start(policy=IMPATIENT)
        old = await lose_a_worker(w)
        (condition,) = terminating(await w.eventually(JOBS, lambda jobs: terminating(jobs, "True")), "True")
        assert "pod digits-worker-0 on node lost" in condition["message"]
        assert (await w.event("PodsTerminating"))["message"] == condition["message"]
        assert await w.names(PODS) == ["digits-worker-0"]
        if end == "deleted":
            (await w.api.delete(f"{NODES}/lost")).ok()
        else:
            (await w.api.merge(f"{NODES}/lost", {"spec": {"taints": [TAINT]}})).ok()
        pods = await w.eventually(
            PODS, lambda pods: len(pods) == 2 and pods["digits-worker-0"]["metadata"]["uid"] != old
        )
        assert {pod["metadata"]["labels"]["mxjob.kubeflow.org/attempt"] for pod in pods.values()} == {"1"}
        await w.eventually(JOBS, lambda jobs: terminating(jobs, "False"))
        assert "digits-worker-0 on node lost" in (await w.event("ForceDeletedPod"))["message"]


async def test_while_nothing_changes_nothing_is_written_and_no_other_node_asked_after(tmp_path, monkeypatch):
    asked, get = [], RecordingClient.get_as

    async def noted(client, path, *args, **kwargs):
        asked.append(path)
        return await get(client, path, *args, **kwargs)

    monkeypatch.setattr(RecordingClient, "get_as", noted)
    async with world(tmp_path, start=False) as w:
        await w.start(policy=IMPATIENT)
        await lose_a_worker(w)
        await w.event("PodsTerminating")
        written = len(w.writes)
        asked.clear()
        await until(lambda: asked.count(f"{NODES}/lost") >= 5)
        assert w.writes[written:] == []
        assert set(asked) == {f"{NODES}/lost"}
