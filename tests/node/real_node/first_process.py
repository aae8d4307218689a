"""Process 1 of a node: makes its mounts, network and cgroups, starts its programs, and keeps them up.

`python -m real_node.first_process CONFIGURATION` says `ready` on its standard output, or ends with what went wrong.
Everything that it starts, containers too, ends with it, since the kernel ends a process namespace with its process 1.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import kubernetes_server as server
import trustme
from program_processes import Program, Programs
from waiting import SECONDS

from mxnet_operator.local.home import write_private
from real_node import configuration, logind

PLACE = configuration.Place()
NODE = PLACE.name
_KERNEL = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1}
"""What the kubelet would set for the whole machine: it finds them set, in files that are mounted over the kernel's."""
STORE = "images"
"""Folder with containerd's images before any container ran, for further nodes."""
_LOOK_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What process 1 is told."""

    folder: str
    debian: str
    cgroup: str
    programs: Mapping[str, str]
    archives: tuple[str, ...]
    further: int = 0
    """How many further nodes may join."""


def main() -> None:
    """Collect the dead, as the kernel expects of process 1, while a child does the work."""
    node = Node(Configuration(**json.loads(sys.argv[1])))
    child = os.fork()
    if child == 0:
        try:
            node.run()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    sys.stdout.close()
    os.close(1)
    while os.wait()[0] != child:
        pass


class Node:
    """The node, as its programs are started one after the other."""

    def __init__(self, told: Configuration) -> None:
        self._told = told
        self._folder = Path(told.folder)
        environment = {
            "HOME": told.folder,
            "PATH": os.environ["PATH"],
            "DBUS_SYSTEM_BUS_ADDRESS": logind.address(self._folder),
        }
        self._programs = Programs(told.programs, self._folder, environment, ready_seconds=SECONDS)

    def run(self) -> None:
        """Start everything, say so, and start again what ends."""
        self._mounts()
        self._network()
        self._cgroups()
        images = threading.Thread(target=start_containerd, args=(self._programs, self._told, PLACE))
        images.start()
        authority = trustme.CA()
        started = self._control_plane(authority)
        images.join()
        self._logind()
        start_kubelet(
            self._programs, authority, self._told.cgroup, PLACE, self._folder / f"system-node-{NODE}.kubeconfig"
        )
        self._programs.start("coredns", conf=self._write("Corefile", configuration.corefile(self._folder)))
        self._programs.wait("CoreDNS", lambda: _answers("http://127.0.0.1:8181/ready"))
        self._programs.wait("the node", lambda: is_ready(started.ask("GET", f"/api/v1/nodes/{NODE}")))
        print("ready", flush=True)
        os.close(1)
        keep_up(self._programs)

    def _mounts(self) -> None:
        """Debian's packages lie over /usr; nothing of the machine's /usr, /etc and /var is written."""
        call("mount", "--make-rprivate", "/")
        for name, lower in (("usr", f"{self._told.debian}/usr:/usr"), ("etc", "/etc"), ("var", "/var")):
            upper, work = (self._folder / "overlays" / name / part for part in ("upper", "work"))
            upper.mkdir(parents=True)
            work.mkdir()
            call(
                "mount",
                "-t",
                "overlay",
                "overlay",
                "-o",
                f"lowerdir={lower},upperdir={upper},workdir={work}",
                f"/{name}",
            )
        call("mount", "-t", "tmpfs", "tmpfs", "/run")
        disk(self._folder).mkdir()
        call("mount", "-t", "tmpfs", "-o", f"size={configuration.DISK_MIB}m", "tmpfs", disk(self._folder))
        for name, value in _KERNEL.items():
            call("mount", "--bind", self._write(name.replace("/", "-"), f"{value}\n"), f"/proc/sys/{name}")
        self._write("resolv.conf", f"nameserver {configuration.DNS_ADDRESS}\n")
        call("mount", "--bind", self._folder / "resolv.conf", Path("/etc/resolv.conf").resolve())

    def _network(self) -> None:
        bridge = configuration.BRIDGE
        call("ip", "link", "set", "lo", "up")
        for address in (configuration.API_ADDRESS, configuration.DNS_ADDRESS):
            call("ip", "address", "add", f"{address}/32", "dev", "lo")
        call("ip", "link", "add", bridge, "address", PLACE.bridge_mac, "type", "bridge")
        for address in (PLACE.gateway, PLACE.address):
            call("ip", "address", "add", f"{address}/16", "dev", bridge)
        call("ip", "link", "set", bridge, "up")
        call("ip", "route", "add", "default", "dev", bridge)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _cgroups(self) -> None:
        for folder in cgroups(self._told.cgroup):
            folder.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (inherited := folder.parent / name).exists():
                    (folder / name).write_text(inherited.read_text())

    def _control_plane(self, authority: trustme.CA) -> server.Server:
        users = [
            server.User("admin", os.urandom(16).hex(), server.ADMINISTRATORS),
            server.User(server.CONTROLLER_MANAGER, os.urandom(16).hex()),
            server.User(server.SCHEDULER, os.urandom(16).hex()),
        ]
        for number in range(1, self._told.further + 2):
            name = f"system:node:{configuration.Place(number).name}"
            users.append(server.User(name, os.urandom(16).hex(), "system:nodes"))
        write_private(self._folder / "admin.token", users[0].token.encode())
        write_private(self._folder / "authority.key", authority.private_key_pem.bytes())
        started = server.start_api_server(
            self._programs,
            authority,
            users,
            port=443,
            address=configuration.API_ADDRESS,
            enable_admission_plugins="NodeRestriction",
            allow_privileged="true",
        )
        server.start_controllers(self._programs, started)
        return started

    def _logind(self) -> None:
        """Start a message bus, and on it what answers for logind: the kubelet asks to be told of a shutdown."""
        libraries = Path(self._told.debian) / "lib" / f"{os.uname().machine}-linux-gnu"
        text = logind.bus_configuration(self._folder)
        subprocess.Popen(
            [f"{self._told.debian}/usr/bin/dbus-daemon", f"--config-file={self._write('bus.xml', text)}"],
            env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        answering = self._programs.wait("the message bus", lambda: logind.Logind(self._folder))
        threading.Thread(target=answering.serve, daemon=True).start()

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        return path


def start_containerd(programs: Programs, told: Configuration, place: configuration.Place) -> None:
    """Start containerd of a node in its folder, and give it the images."""
    folder = programs.folder
    (folder / "cni").mkdir(exist_ok=True)
    (folder / "cni" / "10-node.conflist").write_text(configuration.cni(place))
    config = folder / "containerd.toml"
    config.write_text(configuration.containerd(folder, Path(told.debian)))
    containerd = programs.start("containerd", config=config)
    while subprocess.run(["ctr", "version"], capture_output=True, check=False).returncode != 0:
        containerd.check()
        time.sleep(_LOOK_SECONDS)
    for archive in told.archives if place == PLACE else ():
        call("ctr", "--namespace=k8s.io", "images", "import", archive)
    if place == PLACE and told.further:
        copy_images(folder / "containerd", folder / STORE)


def copy_images(containerd: Path, copy: Path) -> None:
    """Copy what containerd keeps, by links but for its databases: layers are only read."""
    call("cp", "--archive", "--link", containerd, copy)
    for database in copy.rglob("*.db"):
        own = database.with_suffix(".own")
        shutil.copy2(database, own)
        own.replace(database)


def start_kubelet(
    programs: Programs, authority: trustme.CA, cgroup: str, place: configuration.Place, kubeconfig: Path
) -> None:
    """Start the kubelet of a node in its folder."""
    folder = programs.folder
    certificate = authority.issue_cert(place.address, place.name)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    (folder / "resolv.conf").write_text(f"nameserver {configuration.DNS_ADDRESS}\n")
    write_private(folder / "node.pem", certificate.cert_chain_pems[0].bytes())
    write_private(folder / "node.key", certificate.private_key_pem.bytes())
    (folder / "kubelet.json").write_text(configuration.kubelet(folder, cgroup, place))
    programs.start(
        "kubelet",
        config=folder / "kubelet.json",
        kubeconfig=kubeconfig,
        hostname_override=place.name,
        node_ip=place.address,
        root_dir=disk(folder),
        cert_dir=folder / "kubelet-certificates",
    )


def keep_up(programs: Programs) -> None:
    """Start again what has ended, as a service manager would, but not while a file NAME.down is there."""
    while True:
        for program in list(programs.started):
            if program.process.poll() is not None and not (programs.folder / f"{program.name}.down").exists():
                _start_again(programs, program)
        time.sleep(_LOOK_SECONDS)


def _start_again(programs: Programs, program: Program) -> None:
    arguments = program.process.args
    assert isinstance(arguments, list)
    flags = dict(str(each).removeprefix("--").split("=", 1) for each in arguments[1:])
    program.log.rename(program.log.with_suffix(f".{time.time_ns()}.log"))
    again = programs.start(program.name, **{flag.replace("-", "_"): value for flag, value in flags.items()})
    programs.started.remove(program)
    assert again in programs.started


def disk(folder: Path) -> Path:
    """Where the kubelet of the node with this folder keeps pods' volumes: a file system in memory."""
    return folder / "kubelet"


def cgroups(name: str) -> list[Path]:
    """The cgroups of a node: one below the root of each hierarchy."""
    root = Path("/sys/fs/cgroup")
    return [root / controller / name for controller in configuration.CGROUP_CONTROLLERS if (root / controller).is_dir()]


def is_ready(node: Mapping[str, object]) -> bool:
    """Whether the node's kubelet says that it is."""
    status = node["status"]
    assert isinstance(status, dict)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def call(*command: object) -> None:
    """Run a command; raises what it said, where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
        raise RuntimeError(message)


if __name__ == "__main__":
    main()
