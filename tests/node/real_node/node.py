"""A node that runs for a session of tests, in network, mount and process namespaces of its own."""

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from debian import unpacked
from kubernetes_programs import kubectl, programs
from left_overs import folder_prefix, remove_cgroups
from waiting import MINUTES, SECONDS

from real_node import configuration, logind
from real_node.configuration import CABLE
from real_node.first_process import NODE, Configuration, cgroups, disk
from real_node.images import Archive

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "coredns")
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_FROM_DEBIAN = ("containerd",)
_TESTS = Path(__file__).resolve().parents[2]
_IMPORTED_FROM = (str(_TESTS / "node"), str(_TESTS / "support"))
"""What is on the path of `first_process`."""


class RealNodeError(Exception):
    """The node didn't start; with what its process 1 said."""


@dataclasses.dataclass(frozen=True)
class RealNode:
    """A running node; `pid` is its process 1 as this machine counts."""

    folder: Path
    pid: int
    cgroup: str
    archives: Sequence[Archive]
    told: Configuration

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "admin.kubeconfig"

    def command(self, *words: object) -> list[str]:
        """A command line that runs in the node's namespaces, where alone its API server answers."""
        environment = [f"KUBECONFIG={self.kubeconfig}", f"HOME={self.folder}"]
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", f"--wd={Path.cwd()}", "--"]
        return [*enter, "env", *environment, *map(str, words)]

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Have this thread, and what it starts, in the node's network until the context ends."""
        with Path("/proc/thread-self/ns/net").open() as own, Path(f"/proc/{self.pid}/ns/net").open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(own.fileno())

    def run(self, *words: object, check: bool = True, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a command there; its standard input is the text."""
        done = subprocess.run(
            self.command(*words), input=text, capture_output=True, text=True, timeout=MINUTES, check=False
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def load(self, more: Sequence[Archive]) -> None:
        """Give containerd those images that it hasn't been started with."""
        for archive in more:
            if archive in self.archives:
                continue
            self.run("ctr", "--namespace=k8s.io", "images", "import", archive.path)

    def kubectl(self, *words: object, text: str | None = None) -> str:
        """What kubectl prints."""
        return self.run(kubectl(), *words, text=text).stdout

    def get(self, *words: object) -> dict[str, Any]:
        """An object, decoded."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found

    def wait(self, what: str, holds: str, *options: object, within: int = SECONDS) -> None:
        """Wait until `kubectl wait --for` says so."""
        self.kubectl("wait", what, f"--for={holds}", f"--timeout={within - 10}s", *options)

    def rolled_out(self, deployment: str, namespace: str) -> None:
        """Wait until a Deployment's pods are those of its template, and ready."""
        self.kubectl(
            "rollout", "status", f"deployment/{deployment}", f"--namespace={namespace}", f"--timeout={MINUTES - 10}s"
        )

    def kill(self, program: str) -> None:
        """Kill a program of the node; it comes again by itself."""
        for pid in self.pids(program):
            os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def down(self, *names: str) -> Iterator[None]:
        """Kill programs of the node, which stay away until the context ends."""
        files = [self.folder / f"{name}.down" for name in names]
        for file in files:
            file.touch()
        try:
            for name in names:
                self.kill(name)
            yield
        finally:
            for file in files:
                file.unlink()

    def pids(self, program: str) -> list[int]:
        """The processes of a program in the node's namespace, as this machine counts them."""
        namespace = Path(f"/proc/{self.pid}/ns/pid").stat().st_ino
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "ns/pid").stat().st_ino == namespace and (folder / "exe").readlink().name == program:
                    found.append(int(folder.name))
        return found

    def power_off(self) -> None:
        """Shut the machine down in an orderly way, until its kubelet has ended the pods and delays it no longer.

        The kubelet then takes no pods until it has been started again.
        """
        logind.power_off(self.folder)

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Leave half of what the kubelet wants to be free of the disk, until the context ends."""
        mounted = disk(self.folder)
        sizes = os.statvfs(f"/proc/{self.pid}/root{mounted}")
        used = (sizes.f_blocks - sizes.f_bfree) * sizes.f_frsize
        self.run("mount", "-o", f"remount,size={used + (configuration.DISK_PRESSURE_MIB << 19)}", mounted)
        try:
            yield
        finally:
            self.run("mount", "-o", f"remount,size={configuration.DISK_MIB}m", mounted)

    @contextlib.contextmanager
    def short_of_memory(self) -> Iterator[None]:
        """Leave half of what the kubelet wants to be free of its pods' memory, until the context ends.

        It is their cgroup's limit that shrinks: what others on this machine use makes no difference.
        """
        folder = Path("/sys/fs/cgroup/memory") / self.cgroup / "kubepods"
        limit = folder / "memory.limit_in_bytes"
        before = limit.read_text()
        read_once = next(
            line for line in (folder / "memory.stat").read_text().splitlines() if "total_inactive_file" in line
        )
        used = int((folder / "memory.usage_in_bytes").read_text()) - int(read_once.split()[1])
        limit.write_text(str(used + (configuration.MEMORY_PRESSURE_MIB << 19)))
        try:
            yield
        finally:
            limit.write_text(before)

    def kill_containers(self) -> None:
        """Kill all containers of the node, and what containerd has beside each, as a loss of power does."""
        mine = {int(line) for folder in cgroups(self.cgroup) for line in _members(folder / "kubepods")}
        for pid in [*self.pids("containerd-shim-runc-v2"), *mine]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def joined(self, number: int) -> "Iterator[FurtherNode]":
        """A further node of the cluster; it is killed when the context ends."""
        further = FurtherNode(self, configuration.Place(number))
        further.start()
        try:
            yield further
        finally:
            further.kill()

    def log(self, program: str) -> str:
        """What a program has written."""
        return (self.folder / f"{program}.log").read_text(errors="replace")


@dataclasses.dataclass
class FurtherNode:
    """A further node of the cluster of the first."""

    first: RealNode
    place: configuration.Place
    _network: int = 0
    """Its network namespace, which its programs share."""

    def start(self) -> None:
        """Start it, as a machine that is switched on, and wait until it is ready."""
        paths = f"PYTHONPATH={os.pathsep.join(_IMPORTED_FROM)}", f"PATH={_path()}"
        module = (sys.executable, "-m", "real_node.further_node", self.place.number)
        told = json.dumps(dataclasses.asdict(self.first.told))
        with (self.first.folder / f"{self.place.name}.log").open("wb") as log:
            process = subprocess.Popen(
                self.first.command(*paths, "unshare", "--mount", "--net", *module, told),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RealNodeError((self.first.folder / f"{self.place.name}.log").read_text())
        (kubelet,) = [pid for pid in self.first.pids("kubelet") if self._cgroup_of(pid)]
        self._network = Path(f"/proc/{kubelet}/ns/net").stat().st_ino

    def _cgroup_of(self, pid: int) -> bool:
        """Whether a kubelet is this node's."""
        return f"--hostname-override={self.place.name}" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")

    def processes(self) -> set[int]:
        """All processes of the node: its programs, and those of its containers."""
        pods = {int(line) for folder in cgroups(self.first.cgroup) for line in _members(folder / self.place.name)}
        return pods | {pid for pid in _all_processes() if _network_of(pid) == self._network}

    def kill(self) -> None:
        """Cut its power: everything on it is gone at once, and it says nothing any more."""
        while found := self.processes():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._network = -1  # another's may get the number

    def run(self, *words: object) -> None:
        """Run a command in its network."""
        (pid, *_) = (each for each in self.first.pids("kubelet") if _network_of(each) == self._network)
        subprocess.run(["nsenter", f"--target={pid}", "--net", "--", *map(str, words)], check=True)

    @contextlib.contextmanager
    def unplugged(self) -> Iterator[None]:
        """Pull its cable, until the context ends: it reaches nobody, and nobody it; what runs there goes on."""
        self.run("ip", "link", "set", CABLE, "down")
        try:
            yield
        finally:
            self.run("ip", "link", "set", CABLE, "up")
            self.run("ip", "route", "replace", "default", "via", self.place.cable[1])

    @contextlib.contextmanager
    def apart_from(self, other: "FurtherNode") -> Iterator[None]:
        """Lose all that this node and another send to each other, until the context ends; the rest arrives."""
        for here, there in ((self, other), (other, self)):
            here.run("ip", "route", "add", "blackhole", there.place.pods)
        try:
            yield
        finally:
            for here, there in ((self, other), (other, self)):
                here.run("ip", "route", "delete", "blackhole", there.place.pods)

    @contextlib.contextmanager
    def slow(self, share: float) -> Iterator[None]:
        """Give its pods this share of one CPU, until the context ends."""
        top = Path("/sys/fs/cgroup/cpu") / self.first.cgroup / self.place.name / "cpu.cfs_quota_us"
        quota = int(share * int(top.with_name("cpu.cfs_period_us").read_text()))
        before = {path: path.read_text() for path in top.parent.rglob(top.name)}  # containers of the kubelet's have one
        limited = [path for path in before if path == top or int(before[path]) > quota]
        limited.sort(key=lambda path: len(path.parts), reverse=True)  # none may have more than what it is within
        for path in limited:
            path.write_text(str(quota))
        try:
            yield
        finally:
            for path in reversed(limited):
                with contextlib.suppress(OSError):  # its pod is gone
                    path.write_text(before[path])


def _enter(namespace: int) -> None:
    """Enter a network namespace; `os.setns` is Python 3.12's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _all_processes() -> Iterator[int]:
    return (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def _network_of(pid: int) -> int:
    """The network namespace of a process; 0 once that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    return 0


def _members(cgroup: Path) -> list[str]:
    """The processes below a cgroup, as this machine counts them."""
    return [line for file in cgroup.rglob("cgroup.procs") for line in file.read_text().split()]


def why_not() -> str:
    """What this machine lacks for a node; nothing where it can run one."""
    if os.geteuid() != 0:
        return "a node needs root: namespaces, mounts, cgroups"
    status = Path("/proc/self/status").read_text().splitlines()
    effective = int(next(line for line in status if line.startswith("CapEff:")).split()[1], 16)
    if not (effective >> _CAP_SYS_ADMIN & 1 and effective >> _CAP_NET_ADMIN & 1):
        return "a node needs CAP_SYS_ADMIN and CAP_NET_ADMIN, which root lacks here"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "a node needs overlayfs"
    missing = [each for each in ("memory", "cpuset", "pids") if not os.access(f"/sys/fs/cgroup/{each}", os.W_OK)]
    if missing:
        return f"a node needs writable cgroups of version 1 (2 has not been tried): no {', '.join(missing)}"
    return ""


@contextlib.contextmanager
def running(archives: Sequence[Archive], further: int = 0) -> Iterator[RealNode]:
    """A node with these images, which so many others may join, until the context ends.

    Raises:
        MissingProgramError: A program can't be had here.
        RealNodeError: It didn't come up.
    """
    paths = programs(PROGRAMS) | {name: str(unpacked() / "usr" / "bin" / name) for name in _FROM_DEBIAN}
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), ignore_cleanup_errors=True) as name:
        folder, cgroup = Path(name), Path(name).name
        told = Configuration(
            name, str(unpacked()), cgroup, paths, tuple(str(archive.path) for archive in archives), further
        )
        log = (folder / "first-process.log").open("wb")
        process = subprocess.Popen(
            [
                *("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"),
                *(sys.executable, "-m", "real_node.first_process", json.dumps(dataclasses.asdict(told))),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_IMPORTED_FROM), "PATH": _path()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RealNodeError((folder / "first-process.log").read_text())
            (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield RealNode(folder, int(first), cgroup, archives, told)
        finally:
            process.kill()
            process.communicate()
            log.close()
            until = time.monotonic() + SECONDS
            while not remove_cgroups(cgroup):  # the kernel lets go of them a moment after the last process
                assert time.monotonic() < until, f"the cgroups {cgroup} are still used"


def _path() -> str:
    """Where programs are looked for; a login shell's has sbin, and cron's has not."""
    return os.pathsep.join(dict.fromkeys([*os.environ["PATH"].split(os.pathsep), "/usr/sbin", "/sbin"]))


__all__ = ["NODE", "RealNode", "RealNodeError", "configuration", "running", "why_not"]
