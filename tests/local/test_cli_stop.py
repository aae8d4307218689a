"""Jobs that run without the command that created them: --detach, Ctrl-C on a terminal, stop and rerun."""

import contextlib
import os
import pty
import re

from cluster_fixtures import MXJOB
from guarded_program import GuardedProgram
from jobs import worker_job
from waiting import SECONDS, eventually

from mxnet_operator.api.conditions import job_state

SLEEP = "import sys, time; open('model', 'w').close(); print('asleep', sys.argv[1:]); time.sleep(1000)"


def test_a_detached_job_is_followed_stopped_and_run_again_by_the_commands_that_are_printed(
    local_cluster, manifest_file, tmp_path
):
    job = worker_job("left", SLEEP)
    job["metadata"]["labels"] = {"example.com/run": "1", "kueue.x-k8s.io/queue-name": ""}
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["args"] = ["--epochs", "3"]

    begun = local_cluster.mxjob("run", "-f", manifest_file(job), "--detach")

    assert begun.returncode == 0, begun.stderr
    commands = [line.split("  ")[1].split()[1:] for line in begun.stderr.splitlines() if line.startswith("  mxjob ")]
    follow, describe, copy, stop, delete = commands
    local_cluster.wait_for("left", "Running")
    with local_cluster.start_mxjob(*follow) as log:
        assert log.stdout.readline() == "asleep ['--epochs', '3']\n"
        stopped = local_cluster.mxjob(*stop)
        assert (stopped.returncode, stopped.stderr) == (0, "job left has ended: Failed\n")
        assert log.wait(SECONDS) == 0

    assert local_cluster.processes_of("left") == {}
    assert "Job left has failed because it was stopped" in local_cluster.mxjob(*describe).stdout
    assert local_cluster.mxjob("logs", "left").stdout == "asleep ['--epochs', '3']\n"
    assert local_cluster.mxjob(*[word.replace("PATH", "model") for word in copy[:-1]], str(tmp_path)).returncode == 0
    assert local_cluster.mxjob(*stop).stderr == "job left has already ended: Failed\n"

    again = local_cluster.mxjob("rerun", "left", "--detach")
    name = re.search("MXJob (left-.{5}) created", again.stderr)[1]
    old, new = (local_cluster.wait_for(each, state) for each, state in (("left", "Failed"), (name, "Running")))
    assert new["spec"] == old["spec"]
    assert new["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": ""}
    assert "annotations" not in new["metadata"]
    assert local_cluster.mxjob(*delete, name).returncode == 0


def test_rerun_follows_the_new_job_and_exits_with_its_outcome(local_cluster):
    local_cluster.create(worker_job("once", "print('here'); raise SystemExit(7)"))
    local_cluster.wait_for("once", "Failed")

    again = local_cluster.mxjob("rerun", "once")

    assert (again.returncode, again.stdout) == (1, "here\n")
    assert "worker-0 exited with code 7:\nhere\n" in again.stderr
    assert "no MXJob nope" in local_cluster.mxjob("rerun", "nope").stderr
    assert "no MXJob nope" in local_cluster.mxjob("stop", "nope").stderr


def test_a_run_whose_job_is_stopped_says_so_and_exits_with_1(local_cluster, manifest_file):
    with local_cluster.start_mxjob("run", "-f", manifest_file(worker_job("followed", SLEEP))) as run:
        assert run.stdout.readline() == "asleep []\n"
        assert local_cluster.mxjob("stop", "followed").returncode == 0
        _, said = run.communicate(timeout=SECONDS)

    assert run.returncode == 1
    assert said.endswith("Job followed has failed because it was stopped\n")


def test_what_needs_the_end_of_a_job_is_refused_with_detach(local_cluster, manifest_file):
    done = local_cluster.mxjob("run", "-f", manifest_file(worker_job("never", SLEEP)), "--detach", "--output", "out")

    assert done.returncode == 2
    assert "--detach returns before the job ends, and --output needs its end" in done.stderr
    assert local_cluster.get("mxjob", "never") is None


def test_ctrl_c_on_a_terminal_asks_whether_to_keep_or_stop_the_job(local_cluster, manifest_file):
    kept = ("Running", "interrupted: job asked keeps running; follow it with: mxjob logs -f asked -n default\n")
    stopped = ("Failed", "job asked has ended: Failed; its logs and files stay until: mxjob delete asked -n default\n")
    deleted = (None, "job asked is gone\n")
    answers = {(b"what\n", b"k\n"): kept, (b"\n",): kept, (b"S\n",): stopped, (b"\x03",): deleted}
    for typed, (state, last) in answers.items():
        code, seen = interrupted_on_a_terminal(local_cluster, manifest_file(worker_job("asked", SLEEP)), *typed)

        assert (code, seen.count("keep it running, or stop it? [K/s]")) == (130, len(typed)), seen
        assert seen.endswith(last), (typed, seen)
        found = local_cluster.get("mxjob", "asked")
        assert (found and job_state(found)) == state, typed
        local_cluster.mxjob("delete", "asked")


def interrupted_on_a_terminal(cluster, manifest, *typed):
    """Run a job on a terminal and type Ctrl-C, then each line once it is asked for: exit code and all texts."""
    ours, its = pty.openpty()
    own = {"stdin": its, "stdout": its, "stderr": its, "env": cluster.environment | {"TERM": "xterm"}}
    with GuardedProgram(["setsid", "--ctty", "--wait", *MXJOB, "run", "-f", manifest], **own) as process:
        os.close(its)
        drawn, turns = (
            b"",
            [(b"asleep", 1, b"\x03"), *((b"[K/s]", number, each) for number, each in enumerate(typed, 1))],
        )
        with contextlib.suppress(OSError):  # how Linux says that nobody has the terminal open any more
            while piece := os.read(ours, 65536):
                drawn += piece
                if turns and drawn.count(turns[0][0]) >= turns[0][1]:
                    os.write(ours, turns.pop(0)[2])
    os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", drawn.decode())


def test_a_job_that_waits_for_a_place_can_be_stopped(local_cluster):
    job = worker_job("placeless", SLEEP)
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"cpu": "1000"}}
    local_cluster.create(job)
    eventually(lambda: local_cluster.get("pod", "placeless-worker-0"))

    assert local_cluster.mxjob("stop", "placeless").stderr == "job placeless has ended: Failed\n"
    eventually(lambda: local_cluster.get("pod", "placeless-worker-0") is None)
