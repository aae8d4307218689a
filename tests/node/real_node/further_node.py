"""A further node of the cluster: a kubelet and containerd in mount and network namespaces within those of the first.

`python -m real_node.further_node NUMBER CONFIGURATION` says `ready` once the node is. A cable of its own, a pair of
devices, leads to the first node, which routes between all of them: pods of two nodes reach each other by it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import trustme
from kubernetes_server import Server
from program_processes import Programs
from waiting import SECONDS

from real_node import configuration
from real_node.configuration import BRIDGE, CABLE, Place
from real_node.first_process import (
    STORE,
    Configuration,
    call,
    cgroups,
    copy_images,
    is_ready,
    keep_up,
    start_containerd,
    start_kubelet,
)


def main() -> None:
    """Start the node, say so, and start again what ends."""
    place, told = Place(int(sys.argv[1])), Configuration(**json.loads(sys.argv[2]))
    cluster = Path(told.folder)
    folder = cluster / place.name
    folder.mkdir(exist_ok=True)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    programs = Programs(told.programs, folder, environment, ready_seconds=SECONDS)
    for path in (Path("/run"), Path("/var/lib/cni"), folder / "kubelet"):
        path.mkdir(parents=True, exist_ok=True)
        call("mount", "-t", "tmpfs", "tmpfs", path)
    _network(place)
    _cgroups(told.cgroup, place)
    if not (folder / "containerd").exists():  # its first life
        copy_images(cluster / STORE, folder / "containerd")
    start_containerd(programs, told, place)
    key = (cluster / "authority.key").read_bytes()
    authority = trustme.CA.from_pem((cluster / "ca.pem").read_bytes(), key)
    kubeconfig = cluster / f"system-node-{place.name}.kubeconfig"
    start_kubelet(programs, authority, f"{told.cgroup}/{place.name}", place, kubeconfig)
    token = (cluster / "admin.token").read_text()
    server = Server(f"https://{configuration.API_ADDRESS}:443", cluster / "ca.pem", cluster, token)
    programs.wait(place.name, lambda: is_ready(server.ask("GET", f"/api/v1/nodes/{place.name}")))
    print("ready", flush=True)
    keep_up(programs)


def _network(place: Place) -> None:
    """Lay the cable, and make the bridge of the node's pods."""
    first = ("nsenter", "--target=1", "--net", "--")
    here, there = place.cable
    far = f"to-{place.name}"
    subprocess.run([*first, "ip", "link", "delete", far], capture_output=True, check=False)  # of its last life
    call(*first, "ip", "link", "add", far, "type", "veth", "peer", "name", CABLE, "netns", os.getpid())
    call(*first, "ip", "address", "add", f"{there}/30", "dev", far)
    call(*first, "ip", "link", "set", far, "up")
    call(*first, "ip", "route", "replace", place.pods, "via", here)
    call("ip", "link", "set", "lo", "up")
    call("ip", "address", "add", f"{here}/30", "dev", CABLE)
    call("ip", "link", "set", CABLE, "up")
    call("ip", "route", "add", "default", "via", there)
    call("ip", "link", "add", BRIDGE, "address", place.bridge_mac, "type", "bridge")
    for address in (place.gateway, place.address):
        call("ip", "address", "add", f"{address}/16", "dev", BRIDGE)
    call("ip", "link", "set", BRIDGE, "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _cgroups(cluster: str, place: Place) -> None:
    for parent in cgroups(cluster):
        folder = parent / place.name
        folder.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (parent / name).exists():
                (folder / name).write_text((parent / name).read_text())


if __name__ == "__main__":
    main()
