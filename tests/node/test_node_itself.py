"""The node of these tests: whole, by itself, and gone without a trace."""

import socket
from pathlib import Path

import pytest
from kubernetes_programs import VERSION
from real_node.configuration import API_ADDRESS
from real_node.first_process import cgroups


def test_it_is_ready_and_says_what_it_is(bare_node):
    (only,) = bare_node.get("nodes")["items"]
    assert only["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    assert only["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://1.")


def test_nothing_of_it_listens_outside_of_its_namespace(bare_node):
    (only,) = {Path(f"/proc/{pid}/ns/net").readlink() for pid in bare_node.pids("kube-apiserver")}
    assert only != Path("/proc/self/ns/net").readlink()
    with socket.socket() as ours, pytest.raises(OSError, match="Cannot assign requested address"):
        ours.bind((API_ADDRESS, 0))


def test_its_containers_are_in_cgroups_that_bear_its_name(bare_node):
    assert all(folder.is_dir() for folder in cgroups(bare_node.cgroup))
    assert bare_node.cgroup.startswith("mxjob-test-")
