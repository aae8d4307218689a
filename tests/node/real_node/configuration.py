"""What the programs of the node read: containerd's, the kubelet's, CNI's and CoreDNS's configuration."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

API_ADDRESS, DNS_ADDRESS = "10.0.0.1", "10.0.0.10"
"""ClusterIPs that are addresses of the namespace's loopback: there is no kube-proxy, and no other ClusterIP answers."""
BRIDGE, CABLE = "cni0", "eth0"
PAUSE_IMAGE = "localhost/pause:1"
KUBELET_PORT = 10250
ALLOCATABLE_MIB = 4096
DISK_MIB, DISK_PRESSURE_MIB = 4096, 64
"""The size of the node's disk, which holds what pods write into their volumes, and what is too little of it."""
MEMORY_PRESSURE_MIB = 200
"""What is too little memory for the node's pods."""
CGROUP_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd")
_SNAPSHOTTERS = ("btrfs", "zfs", "aufs", "devmapper")


@dataclass(frozen=True)
class Place:
    """Addresses of a node of the cluster, the first of which has the control plane."""

    number: int = 1

    @property
    def name(self) -> str:
        """The node's name."""
        return f"node{self.number}"

    @property
    def _subnet(self) -> str:
        return f"10.{87 + self.number}"

    @property
    def pods(self) -> str:
        """Network of the node's pods."""
        return f"{self._subnet}.0.0/16"

    @property
    def gateway(self) -> str:
        """Address of the bridge to which the node's pods are connected."""
        return f"{self._subnet}.0.1"

    @property
    def address(self) -> str:
        """Address of the kubelet."""
        return f"{self._subnet}.0.2"

    @property
    def cable(self) -> tuple[str, str]:
        """Addresses of the ends of the cable between a further node and the first."""
        return f"10.80.{self.number}.2", f"10.80.{self.number}.1"

    @property
    def bridge_mac(self) -> str:
        """An address of its own: else the bridge's changes with its ports, and pods lose the API server meanwhile."""
        return f"0a:58:0a:{87 + self.number:02x}:00:01"


def containerd(folder: Path, debian: Path) -> str:
    """containerd's configuration (TOML)."""
    without = [*(f"io.containerd.snapshotter.v1.{each}" for each in _SNAPSHOTTERS), "io.containerd.internal.v1.opt"]
    without += ["io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    return f"""
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = {json.dumps(without)}
[grpc]
address = "/run/containerd/containerd.sock"
{cri}]
sandbox_image = "{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"
# without CAP_SYS_RESOURCE runc can't lower the score, and dies of it
restrict_oom_score_adj = true
{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{cri}.containerd.runtimes.runc.options]
BinaryName = "{debian}/usr/sbin/runc"
SystemdCgroup = false
{cri}.cni]
bin_dir = "{debian}/usr/lib/cni"
conf_dir = "{folder}/cni"
"""


def cni(place: Place) -> str:
    """The pods' network: a bridge, and addresses that are counted up."""
    ranges = [[{"subnet": place.pods, "rangeStart": place.pods.replace("0.0/16", "1.1")}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "node", "plugins": [bridge]})


def kubelet(folder: Path, cgroup: str, place: Place) -> str:
    """The kubelet's configuration (JSON).

    The node is small, however large the machine; what others use of that evicts nothing here until little is left.
    """
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "protectKernelDefaults": True,  # the values that it wants are mounted over /proc/sys: it sets none
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "podLogsDir": f"{folder}/pod-logs",
        "address": place.address,
        "port": KUBELET_PORT,
        "healthzPort": 0,
        "tlsCertFile": f"{folder}/node.pem",
        "tlsPrivateKeyFile": f"{folder}/node.key",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{folder}/ca.pem"}},
        "authorization": {"mode": "AlwaysAllow"},  # whoever has a certificate of this node's own authority
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{folder}/resolv.conf",
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": f"{MEMORY_PRESSURE_MIB}Mi",
            "nodefs.available": f"{DISK_PRESSURE_MIB}Mi",
            "imagefs.available": "500Mi",
        },
        "evictionPressureTransitionPeriod": "5s",
        "volumeStatsAggPeriod": "10s",  # what a pod has written is known to evictions so soon
        "nodeStatusUpdateFrequency": "5s",
        "nodeLeaseDurationSeconds": 20,
        "syncFrequency": "10s",
        "shutdownGracePeriod": "60s",
        "shutdownGracePeriodCriticalPods": "10s",
        "systemReserved": {"memory": f"{max(0, _machine_mib() - ALLOCATABLE_MIB - 1024)}Mi"},
        "maxPods": 60,
    }
    return json.dumps(configuration)


def corefile(folder: Path) -> str:
    """CoreDNS's configuration: the cluster's names, and no others."""
    return f""".:53 {{
    bind {DNS_ADDRESS}
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local {{
        kubeconfig {folder}/admin.kubeconfig
        ttl 1
    }}
}}
"""


def _machine_mib() -> int:
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    return int(total.split()[1]) // 1024
