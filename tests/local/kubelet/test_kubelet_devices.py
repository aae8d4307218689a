"""The GPUs of a machine as its drivers' tools list them, here faked on PATH, and who gets which."""

import os

import pytest
from kubelet_fixtures import make_pod, running_node

from mxnet_operator.local.kubelet.devices import DeviceKind, Devices, device_kinds

GPU = "nvidia.com/gpu"
FOUR = "".join(f"GPU {n}: NVIDIA H200 (UUID: GPU-{n}{n}{n}{n}-aaaa)\n" for n in range(4))
MIG = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0000-aaaa)
  MIG 3g.20gb     Device  0: (UUID: MIG-aaaa-0001)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-bbbb-0002)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-1111-aaaa)
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Puts a tool of a driver on PATH that writes a text; variables of this process that limit devices are gone."""

    def install(name, text, exit_code=0):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "text").write_text(text)
        tool = tmp_path / "bin" / name
        tool.write_text(f"#!/bin/sh\ncat {tmp_path}/text\nexit {exit_code}\n")
        tool.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return install


def found(environment, **options):
    return {kind.resource: kind.ids for kind in device_kinds(environment, **options)}


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        (None, ("0", "1", "2", "3")),
        ("2,3", ("2", "3")),
        (" 3 , 1", ("3", "1")),
        ("GPU-2222,GPU-0000-aaaa", ("GPU-2222", "GPU-0000-aaaa")),
        ("1,1", ("1",)),
        ("0,9,1", ("0",)),
        ("-1", ()),
        ("", ()),
        ("NoDevFiles", ()),
    ],
)
def test_only_those_are_offered_that_cuda_would_show_us(driver, visible, ids):
    driver("nvidia-smi", FOUR)
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert found(environment) == ({GPU: ids} if ids else {})


def test_a_gpu_in_parts_is_offered_as_its_parts(driver):
    driver("nvidia-smi", MIG)
    parts = {"nvidia.com/mig-3g.20gb": ("MIG-aaaa-0001",), "nvidia.com/mig-1g.5gb.me": ("MIG-bbbb-0002",)}
    assert found({}) == {GPU: ("1",), **parts}
    assert found({"CUDA_VISIBLE_DEVICES": "0"}) == parts
    assert found({"CUDA_VISIBLE_DEVICES": "MIG-bbbb"}) == {"nvidia.com/mig-1g.5gb.me": ("MIG-bbbb-0002",)}


@pytest.mark.parametrize("text", ["", "Failed to initialize NVML", "{", "GPU 0"])
def test_a_tool_that_finds_nothing_or_fails_is_no_gpu(driver, text):
    driver("nvidia-smi", text, exit_code=9)
    assert found({}) == {}


def test_a_number_that_is_asked_for_is_offered_there_or_not(driver):
    driver("nvidia-smi", FOUR)
    assert found({}, gpus=2) == {GPU: ("0", "1")}
    assert found({}, gpus=5) == {GPU: ("0", "1", "2", "3", "4")}
    assert found({}, gpus=0) == {}
    assert found({}, counts={"example.com/fpga": 2})["example.com/fpga"] == ("", "")


def test_a_gpu_that_is_not_ours_is_in_no_number_that_is_asked_for(driver):
    driver("nvidia-smi", FOUR)
    assert found({"CUDA_VISIBLE_DEVICES": "2,3"}, gpus=3) == {GPU: ("2", "3", "")}


def test_shares_of_one_container_are_of_different_gpus_as_long_as_there_are():
    devices = Devices([DeviceKind(GPU, ("0", "1"), share=2)])
    assert devices.take("a", {GPU: 2}) == {GPU: ("0", "1")}
    assert devices.take("b", {GPU: 1}) == {GPU: ("0",)}
    assert devices.take("c", {GPU: 1}) == {GPU: ("1",)}
    assert devices.take("d", {GPU: 1}) is None
    devices.free("b")
    assert devices.take("d", {GPU: 1}) == {GPU: ("0",)}
    assert devices.take("a", {GPU: 2}) == {GPU: ("0", "1")}, "what it has it keeps"


@pytest.mark.parametrize(
    ("asked", "told"),
    [({}, ""), ({"nvidia.com/mig-1g.5gb": 1, "cpu": 3, "example.com/fpga": 1}, "MIG-1")],
)
def test_a_process_sees_its_devices_and_no_others(asked, told):
    kinds = {"nvidia.com/mig-1g.5gb": ("MIG-1",), "example.com/fpga": ("",)}
    devices = Devices([DeviceKind(resource, ids) for resource, ids in kinds.items()])
    taken = devices.take("a", asked)
    assert taken is not None
    assert devices.variables(taken) == {"CUDA_VISIBLE_DEVICES": told}


async def test_a_node_offers_what_is_ours_and_a_pod_gets_it(tmp_path, driver, monkeypatch):
    driver("nvidia-smi", FOUR)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    async with running_node(tmp_path, gpus=None, gpu_share=2, resources=(("example.com/fpga", 1),)) as node:
        two = {"resources": {"limits": {GPU: "2", "example.com/fpga": "1"}}}
        await node.create(make_pod("two", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES", container=two))
        await node.ended("two")
        assert await node.log("two") == "PCI_BUS_ID 2,3\n"
        offered = (await node.client.get("/api/v1/nodes/local"))["status"]["allocatable"]
        assert (offered[GPU], offered["example.com/fpga"]) == ("4", "1")
