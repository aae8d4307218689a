"""`mxjob logs` on the local cluster."""

import signal

import pytest
from jobs import worker_job
from waiting import SECONDS, eventually

from mxnet_operator.api import names

COUNT = "import os; print(*(f'{os.uname().sysname} line {n}' for n in range(5)), sep=chr(10))"


@pytest.fixture(scope="module")
def finished(local_cluster):
    """A job of two workers that has ended."""
    job = worker_job("logs-done", COUNT)
    job["spec"]["mxReplicaSpecs"][names.WORKER]["replicas"] = 2
    local_cluster.create(job)
    local_cluster.wait_for("logs-done", "Succeeded")
    return local_cluster


def test_the_log_of_the_first_worker_is_the_default(finished):
    done = finished.mxjob("logs", "logs-done")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"Linux line {number}\n" for number in range(5))


def test_the_log_of_a_job_that_has_ended_can_be_followed_and_ends(finished):
    assert finished.mxjob("logs", "-f", "logs-done").stdout.splitlines()[-1] == "Linux line 4"


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_all_replicas_come_with_their_names(finished, follow):
    done = finished.mxjob("logs", "logs-done", "--replica", "all", "--tail", "1", *follow)

    assert sorted(done.stdout.splitlines()) == ["[worker-0] Linux line 4", "[worker-1] Linux line 4"]


def test_following_goes_from_the_start_of_a_running_job_to_its_end(local_cluster):
    wait = "import pathlib, time; print('begun', flush=True); time.sleep(2); print('ended')"
    local_cluster.create(worker_job("logs-running", wait))

    done = local_cluster.mxjob("logs", "-f", "logs-running")

    assert (done.returncode, done.stdout) == (0, "begun\nended\n")


def test_ctrl_c_ends_following_and_leaves_the_job(local_cluster):
    local_cluster.create(worker_job("logs-asleep", "import time; print('asleep', flush=True); time.sleep(1000)"))
    with local_cluster.start_mxjob("logs", "-f", "logs-asleep") as logs:
        assert logs.stdout.readline() == "asleep\n"
        logs.send_signal(signal.SIGINT)
        assert logs.wait(SECONDS) == 130

    assert local_cluster.get("mxjob", "logs-asleep")["status"]["state"] == "Running"
    local_cluster.delete("mxjob", "logs-asleep")


def test_a_replica_without_a_log_yet_says_what_it_waits_for(local_cluster):
    manifest = worker_job("logs-waiting", "pass")
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000"}
    }
    local_cluster.create(manifest)
    local_cluster.wait_for("logs-waiting", "Created")

    done = local_cluster.mxjob("logs", "logs-waiting")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("worker-0: ")
    local_cluster.delete("mxjob", "logs-waiting")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("nope",), 1, "no MXJob nope in namespace default"),
        (("logs-done", "--replica", "worker-2"), 2, "has no replica worker-2\nit has worker-0, worker-1; or all"),
        (("logs-done", "--tail", "-1"), 2, "--tail"),
    ],
)
def test_what_is_not_there_is_said_so(finished, args, code, said):
    done = finished.mxjob("logs", *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def completed(cluster, line):
    words = line.split(" ")
    typed = {"_MXJOB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return cluster.mxjob(*words[1:], environment=typed).stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mxjob logs logs-d", {"logs-done"}),
        ("mxjob delete nope logs-d", {"logs-done"}),
        ("mxjob logs logs-done --replica w", {"worker-0", "worker-1"}),
        ("mxjob logs logs-done --replica a", {"all"}),
        ("mxjob logs nope --replica w", set()),
    ],
)
def test_jobs_and_their_replicas_are_completed_by_the_shell(finished, line, offered):
    # a shell is left waiting for three seconds, and then has none
    eventually(lambda: set(completed(finished, line)) == offered)
