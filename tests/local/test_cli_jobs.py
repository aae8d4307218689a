"""`mxjob get`, `describe`, `wait` and `delete` on the local cluster."""

import json
import signal

import pytest
import yaml
from jobs import worker_job
from waiting import SECONDS

SLEEP = "import time; print('asleep', flush=True); time.sleep(1000)"


@pytest.fixture(scope="module")
def cluster(local_cluster):
    """A cluster with one job that Succeeded, one that Failed and one that runs."""
    good = worker_job("jobs-good", "pass")
    good["metadata"]["labels"] = {"team": "a"}
    good["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = 2
    for job in (good, worker_job("jobs-bad", "print('oh'); raise SystemExit(7)"), worker_job("jobs-asleep", SLEEP)):
        job["metadata"]["labels"] = {"suite": "cli-jobs", **job["metadata"].get("labels", {})}
        local_cluster.create(job)
    for name, state in (("jobs-good", "Succeeded"), ("jobs-bad", "Failed"), ("jobs-asleep", "Running")):
        local_cluster.wait_for(name, state)
    yield local_cluster
    for name in ("jobs-good", "jobs-bad", "jobs-asleep"):
        local_cluster.delete("mxjob", name)


def rows(done):
    """The table of an answer, by the name of the job."""
    heading, *lines = (line.split() for line in done.stdout.splitlines())
    return {line[heading.index("NAME")]: dict(zip(heading, line, strict=False)) for line in lines}


def test_get_shows_the_state_of_every_job_and_its_replicas(cluster):
    done = cluster.mxjob("get", "-l", "suite=cli-jobs")  # a tuning that another test left has columns of its own

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[0].split() == [
        *("NAME", "STATE", "SCHEDULER", "SERVER", "WORKER", "RESTARTS", "DURATION", "AGE")
    ]
    assert "\x1b" not in done.stdout
    found = rows(done)
    assert found["jobs-good"].items() >= {"STATE": "Succeeded", "WORKER": "2/2", "SERVER": "-", "RESTARTS": "0"}.items()
    assert (found["jobs-bad"]["STATE"], found["jobs-bad"]["WORKER"]) == ("Failed", "0/1")
    assert (found["jobs-asleep"]["STATE"], found["jobs-asleep"]["WORKER"]) == ("Running", "1/1")
    assert found["jobs-asleep"]["AGE"].endswith("s")


def test_get_chooses_by_name_by_label_and_by_namespace(cluster):
    assert list(rows(cluster.mxjob("get", "jobs-bad"))) == ["jobs-bad"]
    assert list(rows(cluster.mxjob("get", "-l", "team=a"))) == ["jobs-good"]
    assert rows(cluster.mxjob("get", "-A"))["jobs-bad"]["NAMESPACE"] == "default"
    elsewhere = cluster.mxjob("get", "-n", "kube-system")
    assert (elsewhere.returncode, elsewhere.stdout) == (0, "")
    assert elsewhere.stderr == "no MXJobs in namespace kube-system\n"


def test_get_in_full_is_what_the_server_stores_and_wide_says_what_went_wrong(cluster):
    stored = cluster.get("mxjob", "jobs-bad")

    assert json.loads(cluster.mxjob("get", "jobs-bad", "-o", "json").stdout) == stored
    assert yaml.safe_load(cluster.mxjob("get", "jobs-bad", "-o", "yaml").stdout) == stored
    assert cluster.mxjob("get", "jobs-bad", "-o", "name").stdout == "mxjob.kubeflow.org/jobs-bad\n"
    everything = json.loads(cluster.mxjob("get", "-o", "json").stdout)
    assert stored in everything["items"]
    wide = cluster.mxjob("get", "jobs-bad", "-o", "wide").stdout
    assert "worker-0 exited with code 7" in wide


def test_get_watches_until_ctrl_c(cluster):
    with cluster.start_mxjob("get", "-w", "jobs-asleep") as watch:
        assert watch.stdout.readline().split()[0] == "NAME"
        assert watch.stdout.readline().split()[:2] == ["jobs-asleep", "Running"]
        cluster.patch("mxjob", "jobs-asleep", {"metadata": {"labels": {"seen": "yes"}}})
        assert watch.stdout.readline().split()[:2] == ["jobs-asleep", "Running"]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(SECONDS) == 130
        assert watch.stderr.read() == ""


def test_describe_tells_of_a_failure_from_the_spec_to_the_last_line(cluster):
    done = cluster.mxjob("describe", "jobs-bad")

    assert (done.returncode, done.stderr) == (0, "")
    sections = {part.split("\n")[0].rstrip(":"): part for part in done.stdout.split("\n\n")}
    assert "State:      Failed\n" in done.stdout
    assert "mxjob/mxnet:1.9.1" in sections["Spec"]
    assert "MXJobFailed" in sections["Conditions"]
    (pod,) = (line.split() for line in sections["Replicas"].splitlines() if "jobs-bad-worker-0" in line)
    assert pod[:4] == ["jobs-bad-worker-0", "Failed", "Error", "7"]
    assert pod[5] == "local"
    assert "jobs-bad-worker-0" in sections["Events"]
    assert sections["Last lines of worker-0, which exited with code 7"].endswith("  oh\n")


def waiting(pod):
    """What the pod's container waits for; empty where there is no pod, or it waits for nothing."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
    return statuses[0]["state"].get("waiting", {}) if statuses else {}


def test_describe_says_what_a_replica_waits_for(cluster):
    manifest = worker_job("jobs-unknown-image", "pass")
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "nobody/knows:1"
    cluster.create(manifest)
    cluster.wait_until("pod", "jobs-unknown-image-worker-0", lambda pod: "nobody/knows:1" in str(waiting(pod)))

    (row,) = (line for line in cluster.mxjob("describe", "jobs-unknown-image").stdout.splitlines() if "Pending" in line)

    assert "nobody/knows:1" in row
    assert cluster.mxjob("delete", "jobs-unknown-image").returncode == 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("jobs-good",), 0, "jobs-good is successfully completed."),
        (("jobs-bad",), 1, "worker-0 exited with code 7"),
        (("jobs-bad", "--for", "finished"), 0, "worker-0 exited with code 7"),
        (("jobs-bad", "--for", "Running"), 1, "worker-0 exited with code 7"),
        (("jobs-asleep", "--for", "running"), 0, "jobs-asleep: Running (worker 1/1)"),
        (("jobs-asleep", "--timeout", "1s"), 124, "job jobs-asleep: not Succeeded after 1s"),
        (("nope",), 1, "no MXJob nope in namespace default\nlist all jobs: mxjob get -A"),
        (("jobs-asleep", "--for", "dinner"), 2, "dinner"),
    ],
)
def test_wait_tells_by_its_exit_code_what_became_of_the_job(cluster, args, code, said):
    done = cluster.mxjob("wait", *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_waiting_ends_when_the_job_is_deleted_and_deleting_when_it_is_gone(cluster):
    cluster.create(worker_job("jobs-deleted", SLEEP))
    assert cluster.mxjob("wait", "jobs-deleted", "--for", "Running").returncode == 0
    with cluster.start_mxjob("wait", "jobs-deleted") as waiting:
        assert "Running" in waiting.stderr.readline()

        deleted = cluster.mxjob("delete", "jobs-deleted", "jobs-nope")

        assert (deleted.returncode, deleted.stdout) == (1, "")
        assert "no MXJob jobs-nope in namespace default" in deleted.stderr
        assert deleted.stderr.endswith("job jobs-deleted is gone\n")
        assert cluster.get("mxjob", "jobs-deleted") is None
        assert cluster.get("pod", "jobs-deleted-worker-0") is None
        assert waiting.wait(SECONDS) == 1
        assert waiting.stderr.read().endswith("job jobs-deleted was deleted before it was Succeeded\n")


def test_delete_need_not_wait(cluster):
    manifest = worker_job("jobs-stuck", SLEEP)
    manifest["metadata"]["finalizers"] = ["example.com/stay"]
    cluster.create(manifest)

    done = cluster.mxjob("delete", "jobs-stuck", "--no-wait")

    assert (done.returncode, done.stderr) == (0, "job jobs-stuck is being deleted\n")
    assert rows(cluster.mxjob("get", "jobs-stuck"))["jobs-stuck"]["STATE"] == "Terminating"
    cluster.patch("mxjob", "jobs-stuck", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("command", [("get", "nope"), ("describe", "nope"), ("delete", "nope")])
def test_a_job_that_is_not_there_is_said_so(cluster, command):
    done = cluster.mxjob(*command)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no MXJob nope in namespace default\nlist all jobs: mxjob get -A\n"
