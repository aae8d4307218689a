"""A cluster's life: up, a second up, status, down, and a sudden death."""

import json
import os
import shutil
import signal
import stat

import pytest
from jobs import gang_job, worker_job
from waiting import SECONDS, eventually

from mxnet_operator.local.images.store import BASE_IMAGE

SLEEP = "import subprocess, time; subprocess.Popen(['sleep', '1000']); print('asleep'); time.sleep(1000)"

MEET = """
import os, socket
import mxnet as mx
if os.environ["DMLC_ROLE"] == "worker":
    kv = mx.kv.create("dist_sync")
    kv.init(0, mx.nd.zeros(1))
    kv.push(0, mx.nd.ones(1))
    total = mx.nd.zeros(1)
    kv.pull(0, out=total)
    kv._barrier()
    print(socket.gethostbyname(os.environ["DMLC_PS_ROOT_URI"]), "sum", total.asscalar())
"""


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def status(home):
    return json.loads(home.mxjob("local", "status", "--json").stdout)


def test_a_detached_cluster_lives_until_it_is_told_to_stop(home):
    assert home.mxjob("local", "status").returncode == 3
    no_cluster = home.mxjob("local", "kubeconfig")
    assert (no_cluster.returncode, no_cluster.stdout) == (1, "")
    assert "mxjob local up --detach" in no_cluster.stderr

    up = home.mxjob("local", "up", "--detach", "--cpus", "3", "--gpus", "1")
    assert up.returncode == 0, up.stderr

    found = status(home)
    assert (found["state"], found["pid"]) == ("Running", home.state.pid)
    assert found["capacity"]["cpu"] == "3"
    assert found["capacity"]["nvidia.com/gpu"] == "1"
    assert found["jobs"] == {}
    assert home.mxjob("local", "kubeconfig").stdout == f"{home.kubeconfig}\n"

    again = home.mxjob("local", "up", "--detach")
    assert again.returncode == 0
    assert f"already running (pid {found['pid']})" in again.stderr
    in_foreground = home.mxjob("local", "up")
    assert in_foreground.returncode == 1
    assert f"already running (pid {found['pid']})" in in_foreground.stderr

    assert home.mxjob("local", "down").returncode == 0
    assert home.processes() == {}
    assert home.mxjob("local", "down").returncode == 0
    assert home.mxjob("local", "status").returncode == 3


def test_a_cluster_in_the_foreground_says_how_to_use_it_and_ends_by_ctrl_c(home):
    with home.start_mxjob("local", "up") as cluster:
        said = iter(cluster.stderr.readline, "")
        assert any("export KUBECONFIG=$(mxjob local kubeconfig)" in line for line in said)
        assert len(home.find("nodes")) == 1

        cluster.send_signal(signal.SIGINT)

        assert cluster.wait(SECONDS) == 0
    assert home.processes() == {}


def test_a_start_that_fails_shows_the_end_of_the_log(home):
    home.files.root.mkdir()
    home.files.root.chmod(0o700)
    home.files.pods.write_text("a file where the pods' folder should be")

    up = home.mxjob("local", "up", "--detach")

    assert up.returncode == 1
    assert "the end of its log:" in up.stderr
    assert str(home.files.pods) in up.stderr
    assert home.mxjob("local", "status").returncode == 3


@pytest.mark.exhaustive
def test_killing_the_cluster_takes_its_jobs_with_it_and_the_next_one_starts_clean(home, mxnet_python):
    assert home.mxjob("local", "up", "--detach").returncode == 0
    port, pid = home.state.port, home.state.pid
    home.create(worker_job("asleep", SLEEP))
    home.wait_for("asleep", "Running")
    eventually(lambda: "asleep" in home.log("asleep-worker-0"))
    assert any("sleep 1000" in command for command in home.processes().values())

    os.kill(pid, signal.SIGKILL)

    eventually(lambda: not home.processes())
    assert home.mxjob("local", "status").returncode == 3
    assert home.mxjob("local", "up", "--detach").returncode == 0
    assert home.state.port == port
    assert home.find("mxjobs", "") == []
    eventually(lambda: not list(home.files.pods.iterdir()))


@pytest.mark.exhaustive
def test_what_a_cluster_killed_with_its_reaper_leaves_is_shown_and_ended_by_the_next(home, mxnet_python):
    assert home.mxjob("local", "up", "--detach").returncode == 0
    home.create(worker_job("asleep", SLEEP))
    home.wait_for("asleep", "Running")
    eventually(lambda: "asleep" in home.log("asleep-worker-0"))
    left = home.processes_of("asleep")
    others = home.processes().keys() - left.keys()
    for pid in others:  # the cluster and its reaper: stopped first, so that neither sees the other's end
        os.kill(pid, signal.SIGSTOP)
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: home.processes().keys() == left.keys())
    eventually(lambda: home.mxjob("local", "status", "--json").stdout.startswith('{"state": "Stopped"'))

    assert sorted(left) == status(home)["leftOver"] != []
    shown = home.mxjob("local", "status")
    assert shown.returncode == 3
    assert f"{len(left)} processes of its jobs still run (pid {min(left)}" in shown.stderr
    assert "stop them with: mxjob local up --detach" in shown.stderr

    assert home.mxjob("local", "up", "--detach").returncode == 0
    assert home.processes().keys().isdisjoint(left)
    assert home.mxjob("local", "down").returncode == 0
    assert {key: status(home)[key] for key in ("state", "pid", "leftOver")} == {
        "state": "Stopped",
        "pid": None,
        "leftOver": [],
    }


def test_a_cluster_whose_home_is_deleted_ends_with_its_jobs_and_makes_no_new_one(home, mxnet_python):
    assert home.mxjob("local", "up", "--detach").returncode == 0
    home.create(worker_job("asleep", SLEEP))
    home.wait_for("asleep", "Running")
    log = home.files.log.open()
    (home.home / "images").unlink()

    shutil.rmtree(home.home)

    eventually(lambda: not home.processes())
    assert not home.home.exists()
    with log:
        said = log.read()
    assert "the folder of this cluster was deleted: it stops\n" in said
    assert "Traceback" not in said
    home.home.mkdir(mode=0o700)  # for the end of the fixture


def test_a_run_whose_cluster_is_stopped_says_so_at_once(home, mxnet_python):
    (home.home / "job.json").write_text(json.dumps(worker_job("lost", SLEEP)))
    assert home.mxjob("local", "up", "--detach").returncode == 0
    with home.start_mxjob("run", "-f", str(home.home / "job.json")) as run:
        assert run.stdout.readline() == "asleep\n"
        assert home.mxjob("local", "down").returncode == 0
        _, said = run.communicate(timeout=SECONDS)

    assert run.returncode == 1
    assert said.endswith(
        "the local cluster was stopped, and job lost with it; its files stay for a week: mxjob cp lost:PATH .\n"
    )


def addresses(cluster, job):
    """The address of each pod of a job, by its name."""
    pods = cluster.pods_of(job)
    return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in pods}


@pytest.mark.exhaustive
def test_two_clusters_run_the_same_job_at_once_and_share_neither_ports_nor_addresses(home, local_cluster):
    assert home.mxjob("local", "up", "--detach").returncode == 0
    assert home.state.subnet != local_cluster.state.subnet
    assert home.state.port != local_cluster.state.port
    assert home.kubeconfig.read_text() != local_cluster.kubeconfig.read_text()
    both = (home, local_cluster)
    manifest = gang_job("twins", BASE_IMAGE, ["python", "-u", "-c", MEET])

    for cluster in both:
        cluster.create(manifest)
    finished = [cluster.wait_for("twins", "Succeeded") for cluster in both]

    assert len({job["metadata"]["uid"] for job in finished}) == 2
    for cluster in both:
        given = addresses(cluster, "twins")
        assert len(set(given.values())) == 4
        assert all(address.startswith(f"{cluster.state.subnet}.") for address in given.values())
        for worker in ("twins-worker-0", "twins-worker-1"):
            told, *met = cluster.log(worker).splitlines()[-1].split()
            assert told == given["twins-scheduler-0"]
            assert met == ["sum", "2.0"]  # of the two workers of this cluster, not of all four
    local_cluster.delete("mxjob", "twins")


def test_only_the_owner_can_read_the_cluster_files(local_cluster):
    assert mode(local_cluster.home) == 0o700
    assert mode(local_cluster.files.root) == 0o700
    for path in (local_cluster.kubeconfig, local_cluster.files.state, local_cluster.files.log):
        assert mode(path) == 0o600, path
