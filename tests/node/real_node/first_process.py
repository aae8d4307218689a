"""Process 1 of a node: makes its mounts, network and cgroups, starts its programs, and keeps them up.

`python -m real_node.first_process CONFIGURATION` says `ready` on its standard output, or ends with what went wrong.
Everything that it starts, containers too, ends with it, since the kernel ends a process namespace with its process 1.
"""

import contextlib
import dataclasses
import json
import os
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

NODE = "node1"
_NODE_USER = f"system:node:{NODE}"
_KERNEL = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1}
"""What the kubelet would set for the whole machine: it finds them set, in files that are mounted over the kernel's."""
_LOOK_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What process 1 is told."""

    folder: str
    debian: str
    cgroup: str
    programs: Mapping[str, str]
    archives: tuple[str, ...]


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
        images = threading.Thread(target=self._containerd)
        images.start()
        authority = trustme.CA()
        started = self._control_plane(authority)
        images.join()
        self._logind()
        self._kubelet(authority)
        self._programs.start("coredns", conf=self._write("Corefile", configuration.corefile(self._folder)))
        self._programs.wait("CoreDNS", lambda: _answers("http://127.0.0.1:8181/ready"))
        self._programs.wait("the node", lambda: _is_ready(started.ask("GET", f"/api/v1/nodes/{NODE}")))
        print("ready", flush=True)
        os.close(1)
        self._keep_up()

    def _mounts(self) -> None:
        """Debian's packages lie over /usr; nothing of the machine's /usr, /etc and /var is written."""
        _call("mount", "--make-rprivate", "/")
        for name, lower in (("usr", f"{self._told.debian}/usr:/usr"), ("etc", "/etc"), ("var", "/var")):
            upper, work = (self._folder / "overlays" / name / part for part in ("upper", "work"))
            upper.mkdir(parents=True)
            work.mkdir()
            _call(
                "mount",
                "-t",
                "overlay",
                "overlay",
                "-o",
                f"lowerdir={lower},upperdir={upper},workdir={work}",
                f"/{name}",
            )
        _call("mount", "-t", "tmpfs", "tmpfs", "/run")
        disk(self._folder).mkdir()
        _call("mount", "-t", "tmpfs", "-o", f"size={configuration.DISK_MIB}m", "tmpfs", disk(self._folder))
        for name, value in _KERNEL.items():
            _call("mount", "--bind", self._write(name.replace("/", "-"), f"{value}\n"), f"/proc/sys/{name}")
        self._write("resolv.conf", f"nameserver {configuration.DNS_ADDRESS}\n")
        _call("mount", "--bind", self._folder / "resolv.conf", Path("/etc/resolv.conf").resolve())

    def _network(self) -> None:
        bridge = configuration.BRIDGE
        _call("ip", "link", "set", "lo", "up")
        for address in (configuration.API_ADDRESS, configuration.DNS_ADDRESS):
            _call("ip", "address", "add", f"{address}/32", "dev", "lo")
        _call("ip", "link", "add", bridge, "address", configuration.BRIDGE_MAC, "type", "bridge")
        for address in (configuration.GATEWAY, configuration.NODE_ADDRESS):
            _call("ip", "address", "add", f"{address}/16", "dev", bridge)
        _call("ip", "link", "set", bridge, "up")
        _call("ip", "route", "add", "default", "dev", bridge)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        (self._folder / "cni").mkdir()
        self._write("cni/10-node.conflist", configuration.cni())

    def _cgroups(self) -> None:
        for folder in cgroups(self._told.cgroup):
            folder.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (inherited := folder.parent / name).exists():
                    (folder / name).write_text(inherited.read_text())

    def _containerd(self) -> None:
        """Start containerd and give it the images."""
        text = configuration.containerd(self._folder, Path(self._told.debian))
        self._programs.start("containerd", config=self._write("containerd.toml", text))
        (containerd,) = [each for each in self._programs.started if each.name == "containerd"]
        while subprocess.run(["ctr", "version"], capture_output=True, check=False).returncode != 0:
            containerd.check()
            time.sleep(_LOOK_SECONDS)
        for archive in self._told.archives:
            _call("ctr", "--namespace=k8s.io", "images", "import", archive)

    def _control_plane(self, authority: trustme.CA) -> server.Server:
        users = [
            server.User("admin", os.urandom(16).hex(), server.ADMINISTRATORS),
            server.User(server.CONTROLLER_MANAGER, os.urandom(16).hex()),
            server.User(server.SCHEDULER, os.urandom(16).hex()),
            server.User(_NODE_USER, os.urandom(16).hex(), "system:nodes"),
        ]
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

    def _kubelet(self, authority: trustme.CA) -> None:
        certificate = authority.issue_cert(configuration.NODE_ADDRESS, NODE)
        write_private(self._folder / "node.pem", certificate.cert_chain_pems[0].bytes())
        write_private(self._folder / "node.key", certificate.private_key_pem.bytes())
        self._programs.start(
            "kubelet",
            config=self._write("kubelet.json", configuration.kubelet(self._folder, self._told.cgroup)),
            kubeconfig=self._folder / f"{_NODE_USER.replace(':', '-')}.kubeconfig",
            hostname_override=NODE,
            node_ip=configuration.NODE_ADDRESS,
            root_dir=disk(self._folder),
            cert_dir=self._folder / "kubelet-certificates",
        )

    def _keep_up(self) -> None:
        """Start again what has ended, as a service manager would, but not while a file NAME.down is there."""
        while True:
            for program in list(self._programs.started):
                if program.process.poll() is not None and not (self._folder / f"{program.name}.down").exists():
                    self._start_again(program)
            time.sleep(_LOOK_SECONDS)

    def _start_again(self, program: Program) -> None:
        arguments = program.process.args
        assert isinstance(arguments, list)
        flags = dict(str(each).removeprefix("--").split("=", 1) for each in arguments[1:])
        program.log.rename(program.log.with_suffix(f".{time.time_ns()}.log"))
        again = self._programs.start(program.name, **{flag.replace("-", "_"): value for flag, value in flags.items()})
        self._programs.started.remove(program)
        assert again in self._programs.started

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        return path


def disk(folder: Path) -> Path:
    """Where the kubelet of the node with this folder keeps pods' volumes: a file system in memory."""
    return folder / "kubelet"


def cgroups(name: str) -> list[Path]:
    """The cgroups of a node: one below the root of each hierarchy."""
    root = Path("/sys/fs/cgroup")
    return [root / controller / name for controller in configuration.CGROUP_CONTROLLERS if (root / controller).is_dir()]


def _is_ready(node: Mapping[str, object]) -> bool:
    status = node["status"]
    assert isinstance(status, dict)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def _call(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
        raise RuntimeError(message)


if __name__ == "__main__":
    main()
