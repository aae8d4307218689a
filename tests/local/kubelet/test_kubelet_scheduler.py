"""Which pods the node takes, and when."""

import pytest
from apiserver_fixtures import running_server
from kubelet_fixtures import make_pod, running_node

from mxnet_operator.api.quantities import pod_requests
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.kubelet.loopback import Addresses, AddressesExhausted
from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.scheduling.scheduler import Scheduler

GPU = "nvidia.com/gpu"


def test_limits_imply_requests_and_init_containers_count_where_they_need_more():
    spec = {
        "containers": [
            {"resources": {"limits": {"cpu": "1", GPU: "1"}}},
            {"resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "500m"}}},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "2", "memory": "1Ki"}}}],
    }
    assert pod_requests(spec) == {"cpu": 2, GPU: 1, "memory": 1024}


def test_addresses_are_not_given_twice_while_a_pod_has_them():
    addresses = Addresses("127.5")
    assert [addresses.take(uid) for uid in ("a", "b", "a")] == ["127.5.1.1", "127.5.1.2", "127.5.1.1"]
    addresses.free("a")
    given = {addresses.take(str(number)) for number in range(254 * 254 - 1)}
    assert len(given) == 254 * 254 - 1
    assert "127.5.1.2" not in given
    with pytest.raises(AddressesExhausted):
        addresses.take("one too many")


async def test_pods_get_distinct_gpus_and_the_next_waits_until_one_is_free(tmp_path):
    gpu = {"resources": {"limits": {GPU: "1"}}}
    script = "echo devices=$CUDA_VISIBLE_DEVICES; exec sleep 1000"
    async with running_node(tmp_path, gpus=2) as node:
        for name in ("a", "b"):
            await node.create(make_pod(name, script, container=gpu))
        logs = [await node.until_log(name, "devices") for name in ("a", "b")]
        assert sorted(logs) == ["devices=0\n", "devices=1\n"]
        await node.create(make_pod("c", script, container=gpu))
        event = await node.event("c", "FailedScheduling")
        assert event["message"] == f"0/1 nodes are available: 1 Insufficient {GPU}."
        pod = await node.get("c")
        [condition] = pod["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        await node.delete("b", grace=1)
        assert await node.until_log("c", "devices") == logs[1]
        pod = await node.get("c")
        assert {each["status"] for each in pod["status"]["conditions"]} == {"True"}


class Ignored:
    """A recorder of events that nobody reads."""

    def record(self, pod, kind, reason, message):
        pass


async def test_what_was_just_bound_counts_before_the_watch_shows_it(tmp_path):
    """Or two jobs would have one GPU: the one that was seen, and one that goes before it and came meanwhile."""
    async with running_server(tmp_path) as server, Client(load_credentials(str(server.kubeconfig))) as client:
        limits = {"resources": {"limits": {GPU: "1"}}}
        seen = [await client.create(PODS.path("default"), make_pod(n, "true", container=limits)) for n in "ab"]
        behind = Scheduler(
            client,
            "node",
            allocatable={GPU: "1"},
            node=lambda: {"metadata": {"name": "node"}},
            pods=lambda: seen,
            changes=None,
            events=Ignored(),
        )
        await behind._pass()
        older = await client.create(PODS.path("default"), make_pod("c", "true", container=limits))
        older["metadata"]["creationTimestamp"] = "2016-01-01T00:00:00Z"
        seen.append(older)
        for _ in range(3):
            assert await behind._pass() is None, "a request failed"
        stored = (await client.list(PODS.path("default")))["items"]
        assert [pod["spec"].get("nodeName") for pod in stored] == ["node", None, None]


async def test_what_a_user_writes_on_the_node_decides_at_once(tmp_path):
    """As `kubectl label` does."""
    node_path = "/api/v1/nodes/local"
    async with running_node(tmp_path) as node:
        await node.run("first", "true")  # the node is there
        await node.create(make_pod("waits", "true", nodeSelector={"pool": "gpus"}))
        assert "0/1 nodes are available: 1 node(s)" in (await node.event("waits", "FailedScheduling"))["message"]
        await node.client.patch(node_path, {"metadata": {"labels": {"pool": "gpus"}}})
        assert (await node.ended("waits"))["spec"]["nodeName"] == "local"


async def test_a_pod_that_names_a_node_of_another_cluster_runs_and_takes_of_the_one_that_is_there(tmp_path):
    limits = {"resources": {"limits": {GPU: "1"}}}
    async with running_node(tmp_path, gpus=1) as node:
        await node.create(make_pod("elsewhere", "echo up; exec sleep 1000", container=limits, nodeName="gpu-1"))
        await node.until_log("elsewhere", "up")
        await node.create(make_pod("waits", "true", container=limits))
        assert "Insufficient" in (await node.event("waits", "FailedScheduling"))["message"]
        await node.delete("elsewhere", grace=0)
        await node.gone("elsewhere")
        assert (await node.ended("waits"))["status"]["phase"] == "Succeeded"


async def test_the_node_has_the_labels_that_it_was_started_with(tmp_path):
    async with running_node(tmp_path, node_labels=(("pool", "gpus"),)) as node:
        pod = await node.run("picky", "true", nodeSelector={"pool": "gpus", "kubernetes.io/hostname": "local"})
        assert pod["status"]["phase"] == "Succeeded"


async def test_the_address_of_a_pod_that_is_gone_is_free_again(tmp_path):
    async with running_node(tmp_path) as node:
        kubelet = node.kubelet
        _, kept = (kubelet._addresses.take(uid) for uid in ("a", "b"))
        await kubelet._forget("a", None)
        assert kubelet._addresses._taken == {kept}


async def test_the_reaper_is_told_of_groups_that_run_and_of_those_that_have_ended(tmp_path, monkeypatch):
    """The number of one that has ended may be another's by the time that the reaper kills."""
    told = []
    monkeypatch.setattr(Processes, "_tell", lambda self, line: told.append(line))
    processes = Processes("cluster")
    started = processes.spawn(["true"], {}, tmp_path, "container")
    await started.wait(lambda _: None, 1.0)
    assert [line[:1] for line in told] == [b"+", b"-"]
    assert told[0][1:] == told[1][1:]
