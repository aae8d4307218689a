"""A local cluster as a user has it: `mxjob local up` in a home of its own, spoken to by `mxjob` and kubectl.

`local_cluster` is one for the whole test run, with the image mxjob/digits:1.0; `home` has none yet. Both use the image
cache of the checkout, and both check that nothing of them is left when they end.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked_mxjob
import pytest
from cluster_objects import ClusterObjects
from guarded_program import GuardedProgram
from images_fixtures import SHARED_HOME
from kubernetes_programs import kubectl
from left_overs import folder_prefix
from waiting import MINUTES, SECONDS

from mxnet_operator.api.conditions import TERMINAL
from mxnet_operator.local.home import ClusterFiles, ClusterState, cluster_files, running_state

DIGITS_IMAGE = "mxjob/digits:1.0"
EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "digits"
MXJOB = [sys.executable, "-m", forked_mxjob.PROGRAM]


class LocalCluster(ClusterObjects):
    """A home, and the cluster in it while one runs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.files: ClusterFiles = cluster_files(home)
        super().__init__(self.files.kubeconfig)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "KUBERNETES_SERVICE_HOST"},
            "MXJOB_HOME": str(home),
            "KUBECONFIG": str(self.files.kubeconfig),
            # By default kubectl remembers for hours, by address, which kinds an earlier cluster at this port had.
            "KUBECACHEDIR": str(home / "kubectl"),
        }

    @property
    def state(self) -> ClusterState:
        state = running_state(self.files)
        assert state is not None, "the cluster isn't running"
        return state

    def mxjob(
        self, *args: str, stdin: str | None = None, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run `mxjob` to its end; the caller looks at the exit code."""
        return forked_mxjob.run(args, self.environment | (environment or {}), stdin, SECONDS)

    def kubectl(self, *args: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run kubectl to its end; the caller looks at the exit code."""
        return subprocess.run(
            [kubectl(), *args],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )

    def start_mxjob(self, *args: str, **options: Any) -> GuardedProgram:
        """Start `mxjob` with its output in pipes."""
        return self._start([*MXJOB, *args], **options)

    def start_kubectl(self, *args: str, **options: Any) -> GuardedProgram:
        """Start kubectl with its output in pipes."""
        return self._start([kubectl(), *args], **options)

    def wait_for(self, name: str, state: str, type_: str = "mxjob") -> dict[str, Any]:
        """Wait until a job's state is this one, or can't be any more; returns the job. Before its end, it may train."""
        reached = {state, *TERMINAL}
        within = MINUTES if state in TERMINAL else SECONDS
        job = self.wait_until(type_, name, lambda job: job is not None and _state(job) in reached, within=within)
        assert job is not None
        assert _state(job) == state, json.dumps(job["status"], indent=1)
        return job

    def processes(self) -> dict[int, str]:
        """The processes that belong to this home, by id: the cluster, its reaper and its pods."""
        marks = (str(self.home).encode(), hashlib.sha256(str(self.files.pods).encode()).hexdigest()[:32].encode())
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes()
                everything = command + b"\0" + (folder / "environ").read_bytes()
                if int(folder.name) != os.getpid() and any(mark in everything for mark in marks):
                    found[int(folder.name)] = command.replace(b"\0", b" ").decode("utf-8", "replace")
        return found

    def processes_of(self, job: str) -> dict[int, str]:
        """The processes of a job's containers, by id: the pod of each, which is its host name."""
        found = {}
        for process in self.processes():
            with contextlib.suppress(OSError):
                for variable in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    if variable.startswith(f"HOSTNAME={job}-".encode()):
                        found[process] = variable.removeprefix(b"HOSTNAME=").decode()
        return found

    def _start(self, command: list[str], **options: Any) -> GuardedProgram:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return GuardedProgram(command, stdin=subprocess.DEVNULL, env=self.environment, **pipes)


def _state(job: dict[str, Any]) -> str:
    state: str = job.get("status", {}).get("state", "")
    return state


@contextlib.contextmanager
def new_home() -> Iterator[LocalCluster]:
    """A home without a cluster; one that runs there at the end is stopped, and nothing of it may be left."""
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder:
        home = Path(folder).resolve()
        (SHARED_HOME / "images").mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "images").symlink_to(SHARED_HOME / "images")
        cluster = LocalCluster(home)
        try:
            yield cluster
        finally:
            down = cluster.mxjob("local", "down")
            log = cluster.files.log.read_text() if cluster.files.log.exists() else ""
        assert down.returncode == 0, down.stderr
        assert cluster.processes() == {}, log


@pytest.fixture
def home() -> Iterator[LocalCluster]:
    """A home without a cluster."""
    with new_home() as cluster:
        yield cluster


@pytest.fixture
def manifest_file(tmp_path: Path) -> Callable[[dict[str, Any]], str]:
    """Function that writes a job's manifest to a file named after the job, and returns its path."""

    def write(manifest: dict[str, Any]) -> str:
        path = tmp_path / f"{manifest['metadata'].get('name')}.json"
        path.write_text(json.dumps(manifest))
        return str(path)

    return write


@pytest.fixture(scope="session")
def local_cluster(mxnet_python: Path) -> Iterator[LocalCluster]:
    """The cluster of this test run, with the image of examples/digits; its jobs have names of their own."""
    with new_home() as cluster:
        for args in (
            ("image", "add", DIGITS_IMAGE, str(DIGITS)),
            ("up", "--detach", "--cpus", "8", "--restart-backoff", "1"),
        ):
            done = cluster.mxjob("local", *args)
            assert done.returncode == 0, done.stderr
        yield cluster
        log = cluster.files.log.read_text()
        assert running_state(cluster.files) is not None, log
        assert " ERROR " not in log
