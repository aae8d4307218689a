"""The failure matrix on real MXNet: which fault, of which replica, where in its training, and how the job ends.

Each test prints how long its job took from the fault to its end, and until no process was left: see docs/failures.md.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster_fixtures import LocalCluster
from fresh_seeds import first_fresh_seed
from jobs import gang_job
from tiers import asked_for
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message

IMAGE = "mxjob/failing-training:1.0"
FOLDER = Path(__file__).parents[1] / "local" / "failing_training"
EPOCHS = 4  # of its train.py
ABSENT: dict[str, dict[str, Any]] = {
    "no room": {"resources": {"requests": {"cpu": "1000"}}},
    "no MXNet": {"command": ["sleep", "1000"]},
}
"""Why a server never comes up: what its container is then."""
DELETED = "deleted"
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "segfault": signal.SIGSEGV}


@dataclass(frozen=True)
class Case:
    """A cell of the matrix."""

    replica: str = "worker-0"
    fault: str = ""
    at: str = "middle"
    policy: str = "Never"
    ends: str = "Failed"
    workers: int = 2
    shell: str = ""
    """Run the script by this line of shell."""
    deadline_after: str = ""
    """Set activeDeadlineSeconds once the replica's pod has this phase after the fault."""

    def __str__(self) -> str:
        policy = "" if self.policy == "Never" else self.policy
        parts = (self.replica, self.fault, self.at, self.shell, policy)
        return "-".join(each for each in parts if each)

    @property
    def code(self) -> int:
        """The exit code of the replica. MXNet's own handler turns a segmentation fault into an abort."""
        codes = {"exception": 1, "sys.exit": 3, "os._exit": 5, "SIGKILL": 137, "SIGTERM": 143}
        return codes.get(self.fault) or (139 if self.at == "start" else 134)

    @property
    def from_outside(self) -> bool:
        """Whether the test strikes: MXNet never lets the script of a scheduler or a server go on."""
        return self.fault == DELETED or (self.fault in SIGNALS and not self.replica.startswith("worker"))


UNDISTURBED = Case(ends="Succeeded")


@dataclass(frozen=True)
class Played:
    """What became of a case's job."""

    name: str
    job: dict[str, Any]
    results: list[dict[str, Any]]
    """What the workers left as their result, once they have succeeded."""
    restarting: str
    """What was said when it was torn down to be tried again; empty if it wasn't."""
    times: str

    @property
    def message(self) -> str:
        return terminal_message(self.job)


def manifest_of(case: Case, name: str, shared: Path) -> dict[str, Any]:
    job = gang_job(name, IMAGE, ["sh", "-c", case.shell] if case.shell else ["python", "train.py"])
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = case.workers
    fault = "outside" if case.from_outside else case.fault
    variables = {"FAULT": fault, "FAULT_AT": case.at, "FAULT_IN": case.replica, "SHARED": "/shared"}
    variables["RESULT"] = "/dev/termination-log"
    for spec in job["spec"]["mxReplicaSpecs"].values():
        spec["restartPolicy"] = case.policy
        pod = spec["template"]["spec"]
        pod["volumes"] = [{"name": "shared", "hostPath": {"path": str(shared)}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        pod["containers"][0]["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    if case.fault in ABSENT:
        job["spec"]["runPolicy"] = {"activeDeadlineSeconds": 3}
        server = job["spec"]["mxReplicaSpecs"]["Server"]["template"]["spec"]
        server["containers"] = [{**server["containers"][0], **ABSENT[case.fault]}]
    return job


def play(cluster: LocalCluster, case: Case, name: str, shared: Path) -> Played:
    """Run a job with its fault to the end that the case expects, and until no process of it is left."""
    cluster.create(manifest_of(case, name, shared))
    struck = strike(cluster, case, name, shared)
    job = cluster.wait_for(name, case.ends)
    ended = time.time()
    eventually(lambda: not cluster.processes_of(name))
    silent = time.time()
    times = f"{case.ends} {ended - struck:.1f} s after it, no process {silent - struck:.1f} s after it"
    results = []
    if case.ends == "Succeeded":
        for index in range(case.workers):
            (container,) = cluster.get("pod", f"{name}-worker-{index}")["status"]["containerStatuses"]
            results.append(json.loads(container["state"]["terminated"]["message"]))
    events = cluster.find("events", fields=f"involvedObject.name={name},reason=MXJobRestarting")
    restarting = "\n".join(event["message"] for event in events)
    return Played(name, job, results, restarting, times)


def strike(cluster: LocalCluster, case: Case, name: str, shared: Path) -> float:
    """Let the fault happen; returns when it did, or when the job began if the case has none (seconds since 1970)."""
    pod = f"{name}-{case.replica}"
    if not case.fault or case.fault in ABSENT:
        return time.time()
    if case.from_outside:
        eventually((shared / "reached").exists)
        (process,) = (each for each, host in cluster.processes_of(name).items() if host == pod)
        (shared / "struck").touch()
        struck = time.time()
        if case.fault == DELETED:
            cluster.delete("pod", pod, wait=False)
        else:
            os.kill(process, SIGNALS[case.fault])
        return struck
    eventually(lambda: (shared / "struck").exists() and (shared / "struck").read_text())
    if case.deadline_after:
        cluster.wait_until("pod", pod, lambda each: each is not None and each["status"]["phase"] == case.deadline_after)
        assert cluster.get("mxjob", name)["status"]["state"] == "Running", "there would be no need for a deadline"
        cluster.patch("mxjob", name, {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})
        return time.time()
    return float((shared / "struck").read_text())


AT_ONCE = 3
"""Jobs that run at the same time: each mostly waits for the slowest of its imports, or for a back-off to pass."""


@pytest.fixture(scope="module")
def matrix(
    request: pytest.FixtureRequest, local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Case], Played]]:
    """Plays the cases of the tests that were asked for, some of them at the same time."""
    added = local_cluster.mxjob("local", "image", "add", IMAGE, str(FOLDER))
    assert added.returncode == 0, added.stderr
    wanted = asked_for(request, "case")
    if request.config.getoption("--tier") == "all":
        random.Random(first_fresh_seed()).shuffle(wanted)
    undisturbed = [UNDISTURBED] if any(each.ends == "Succeeded" for each in wanted) else []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs: dict[Case, Future[Played]] = {
            case: pool.submit(play, local_cluster, case, f"cell-{number}", tmp_path_factory.mktemp("shared"))
            for number, case in enumerate(dict.fromkeys(undisturbed + wanted))
        }

        def played(case: Case) -> Played:
            found = jobs[case].result()
            if case is not UNDISTURBED:
                print(f"{case}: {found.times}\n{found.restarting or found.message}")
            return found

        yield played
        pool.shutdown(cancel_futures=True)


def cases(*found: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=str)


@pytest.mark.sampled
@cases(
    Case(fault="exception", workers=1),
    Case(fault="exception", at="end"),
    Case(fault="sys.exit", at="start", workers=1),
    Case(fault="os._exit", workers=1),
    Case(fault="SIGKILL", at="end"),
    Case(fault="segfault", workers=1),
)
def test_a_worker_that_fails_ends_its_job(matrix, case):
    played = matrix(case)
    assert played.message.startswith(f"mxjob {played.name} is failed because 1 Worker replica(s) failed. ")
    assert f"worker-0 exited with code {case.code}" in played.message
    assert played.job["status"]["restarts"] == 0
    if case.fault == "exception":
        assert played.message.splitlines()[-1] == "Lost: the disk is gone"
    if case.code == 134:
        assert "Segmentation fault: 11" in played.message


@pytest.mark.sampled
@cases(
    Case("server-0", "SIGTERM", workers=1),
    Case("server-0", "segfault", workers=1),
    Case("scheduler-0", "SIGKILL", "end"),
    Case("scheduler-0", "SIGTERM", workers=1),
    Case("scheduler-0", "segfault", "start", workers=1),
    # Only what comes before `import mxnet` is ever run of a script in these two.
    Case("server-0", "exception", "start", workers=1),
    Case("scheduler-0", "sys.exit", "start", workers=1),
)
def test_a_server_or_a_scheduler_that_dies_ends_its_job(matrix, case):
    played = matrix(case)
    assert f"{case.replica} exited with code {case.code}" in played.message
    assert played.job["status"]["restarts"] == 0


@pytest.mark.sampled
@cases(
    Case("worker-0", "SIGKILL", "middle", "ExitCode", "Succeeded"),
    Case("worker-0", "SIGTERM", "end", "ExitCode", "Succeeded"),
    Case("worker-0", "segfault", "middle", "ExitCode", "Succeeded"),
    Case("server-0", "SIGKILL", "start", "ExitCode", "Succeeded"),
    Case("server-0", "SIGKILL", "end", "ExitCode", "Succeeded"),
    Case("scheduler-0", "SIGKILL", "middle", "ExitCode", "Succeeded"),
)
def test_what_was_killed_is_tried_again_and_ends_with_the_weights_of_an_undisturbed_run(matrix, case):
    played, undisturbed = matrix(case), matrix(UNDISTURBED)
    status = played.job["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)
    assert f"{case.replica} exited with code {case.code}" in played.restarting
    for mine, others in zip(played.results, undisturbed.results, strict=True):
        assert mine["weights"] == pytest.approx(others["weights"], abs=1e-4)
        assert mine["resumed"] == {"start": 0, "middle": 1, "end": EPOCHS}[case.at]
        assert others["resumed"] == 0


@pytest.mark.exhaustive
@cases(Case(fault="segfault", at="start", policy="ExitCode", workers=1))
def test_a_permanent_exit_code_is_final(matrix, case):
    played = matrix(case)
    assert f"worker-0 exited with code {case.code}" in played.message
    assert played.job["status"]["restarts"] == 0


@pytest.mark.exhaustive
@cases(Case(fault=DELETED, policy="ExitCode", ends="Succeeded"), Case(fault=DELETED))
def test_a_pod_that_is_deleted_is_no_failure_of_its_program_and_final_only_without_restarts(matrix, case):
    played = matrix(case)
    if case.policy == "Never":
        assert "worker-0 was deleted while the job ran" in played.message
        return
    assert "worker-0 was deleted while the job ran" in played.restarting
    status, undisturbed = played.job["status"], matrix(UNDISTURBED)
    assert (status["restarts"], status.get("restartsCountTowardsMax")) == (1, None)
    assert [each["resumed"] for each in played.results] == [1, 1]
    for mine, others in zip(played.results, undisturbed.results, strict=True):
        assert mine["weights"] == pytest.approx(others["weights"], abs=1e-4)


@pytest.mark.sampled
@cases(
    Case(fault="hang", deadline_after="Running"),
    Case(fault="awaited thread", deadline_after="Running"),
    Case(fault="sys.exit(0)", deadline_after="Running"),
    Case(fault="os._exit(0)", deadline_after="Succeeded"),
    Case(fault="exception", shell="python train.py | cat", deadline_after="Succeeded"),
    Case(fault="exception", shell="python -E train.py", deadline_after="Running"),  # without the fail-fast hook
)
def test_what_no_exit_code_tells_ends_at_the_deadline(matrix, case):
    played = matrix(case)
    assert "active longer than specified deadline (1 s)" in played.message


@cases(Case(fault="thread", ends="Succeeded"))
def test_an_exception_in_a_thread_that_nothing_waits_for_is_no_failure(matrix, case):
    played, undisturbed = matrix(case), matrix(UNDISTURBED)
    assert [each["weights"] for each in played.results] == [each["weights"] for each in undisturbed.results]


@pytest.mark.sampled
@cases(*(Case("server-0", fault, at="", workers=1) for fault in ABSENT))
def test_a_server_that_never_comes_up_ends_its_job_at_the_deadline(matrix, case):
    assert "active longer than specified deadline (3 s)" in matrix(case).message
