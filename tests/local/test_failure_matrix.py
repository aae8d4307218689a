"""The failure matrix on real MXNet: which fault, of which replica, where in its training, and how the job ends.

Each test prints how long its job took from the fault to its end, and until no process was left: see docs/failures.md.
"""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from cluster_fixtures import LocalCluster
from failure_matrix import ABSENT, DELETED, EPOCHS, FOLDER, IMAGE, SIGNALS, UNDISTURBED, Case, Played, play
from fresh_seeds import first_fresh_seed
from tiers import asked_for

AT_ONCE = 3
"""Jobs that run at the same time: each mostly waits for the slowest of its imports, or for a back-off to pass."""
PLACES = ("start", "middle", "end")


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
    *(
        Case(fault=fault, at=at)
        for fault in ("exception", "sys.exit", "os._exit", "SIGKILL", "SIGTERM", "segfault")
        for at in PLACES
    )
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
    *(
        Case(replica, fault, at, workers=2 if at == "end" else 1)
        for replica in ("server-0", "scheduler-0")
        for fault in SIGNALS
        for at in PLACES
    ),
    # Only what comes before `import mxnet` is ever run of a script in these two.
    *(
        Case(replica, fault, "start", workers=1)
        for replica in ("server-0", "scheduler-0")
        for fault in ("exception", "sys.exit", "os._exit")
    ),
)
def test_a_server_or_a_scheduler_that_dies_ends_its_job(matrix, case):
    played = matrix(case)
    assert f"{case.replica} exited with code {case.code}" in played.message
    assert played.job["status"]["restarts"] == 0


RETRIED = [
    *(Case("worker-0", "SIGKILL", at, "ExitCode", "Succeeded") for at in PLACES),
    Case("worker-0", "SIGTERM", "middle", "ExitCode", "Succeeded"),
    Case("worker-0", "segfault", "middle", "ExitCode", "Succeeded"),
    *(
        Case(replica, "SIGKILL", at, "ExitCode", "Succeeded")
        for replica in ("server-0", "scheduler-0")
        for at in PLACES
    ),
]


@pytest.mark.sampled
@cases(*RETRIED)
def test_what_was_killed_is_tried_again_and_ends_with_the_weights_of_an_undisturbed_run(matrix, case):
    played, undisturbed = matrix(case), matrix(UNDISTURBED)
    status = played.job["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)
    assert f"{case.replica} exited with code {case.code}" in played.restarting
    for mine, others in zip(played.results, undisturbed.results, strict=True):
        assert mine["weights"] == pytest.approx(others["weights"], abs=1e-4)
        assert mine["resumed"] == {"start": 0, "middle": 1, "end": EPOCHS}[case.at]
        assert others["resumed"] == 0


@pytest.mark.sampled
@cases(*(Case(fault=fault, at=at, policy="ExitCode") for fault, at in (("exception", "middle"), ("segfault", "start"))))
def test_a_permanent_exit_code_is_final(matrix, case):
    played = matrix(case)
    assert f"worker-0 exited with code {case.code}" in played.message
    assert played.job["status"]["restarts"] == 0


@pytest.mark.sampled
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
    message = matrix(case).message
    if case.fault == "no image":
        assert "made no progress for 2 s: server-0 did not start" in message
        assert "mxjob local image add no/such:1" in message
    else:
        assert "active longer than specified deadline (3 s)" in message
