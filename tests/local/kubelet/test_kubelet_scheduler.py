"""Which pods the node takes, and when."""

from decimal import Decimal

import pytest
from kubelet_fixtures import make_pod, running_node

from mxnet_operator.local.kubelet.addresses import Addresses, AddressesExhausted
from mxnet_operator.local.quantities import pod_requests, quantity
from mxnet_operator.local.scheduler import misfit

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500m", "0.5"), ("2", "2"), (2, "2"), ("1Gi", str(2**30)), ("1.5k", "1500"), ("1e3", "1000"), ("100n", "1e-7")],
)
def test_quantities_mean_what_they_mean_in_kubernetes(text, amount):
    assert quantity(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "1 Gi", "x", "1mi", "Gi"])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(ValueError, match="not a resource quantity"):
        quantity(text)


def test_limits_imply_requests_and_init_containers_count_where_they_need_more():
    spec = {
        "containers": [
            {"resources": {"limits": {"cpu": "1", GPU: "1"}}},
            {"resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "500m"}}},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "2", "memory": "1Ki"}}}],
    }
    assert pod_requests(spec) == {"cpu": 2, GPU: 1, "memory": 1024}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": [{}]}, None),
        ({"containers": [{"resources": {"requests": {"cpu": "2"}}}]}, None),
        (
            {"containers": [{"resources": {"requests": {"cpu": "3", GPU: "1"}}}]},
            f"0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient {GPU}.",
        ),
        (
            {"containers": [{}], "nodeSelector": {"zone": "a"}},
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        ({"containers": [{}], "nodeSelector": {"os": "linux"}}, None),
    ],
)
def test_a_pod_fits_or_the_reason_is_in_the_schedulers_words(spec, why):
    assert misfit(spec, {"os": "linux"}, {"cpu": Decimal(2)}) == why


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


async def test_a_pod_without_gpus_sees_none(tmp_path):
    async with running_node(tmp_path, gpus=2) as node:
        await node.run("plain", "echo [$CUDA_VISIBLE_DEVICES]")
        assert await node.log("plain") == "[]\n"


async def test_the_node_says_what_it_has(tmp_path):
    async with running_node(tmp_path, gpus=3, cpus=1.5) as node:
        await node.run("first", "true")
        found = await node.client.get("/api/v1/nodes/local")
        assert found["status"]["allocatable"][GPU] == "3"
        assert found["status"]["allocatable"]["cpu"] == "1.5"
        assert [each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready"] == ["True"]
