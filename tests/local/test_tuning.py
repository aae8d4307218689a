"""Tuning jobs on the local cluster: real TVM, several servers, what ends them, and the contract of AutoTVM's days."""

import json
import re
import socket

import pytest
from cluster_fixtures import EXAMPLES
from jobs import example_job, worker_job
from waiting import MINUTES, eventually

from mxnet_operator.api.conditions import terminal_message

IMAGE = "mxjob/tune:1.0"

# What the start-up script of the documents' AutoTVM image reads of its environment, and nothing else. In place of TVM's
# programs it has a tracker, servers and a tuner that only tell each other of themselves.
AUTOTVM_DAYS = """
import json, os, socket, time
config = json.loads(os.environ.get("MX_CONFIG") or "{}")
cluster, labels, task = config.get("cluster", {}), config.get("labels", {}), config.get("task", {})
tracker = cluster["tunertracker"][0]
address = (tracker.get("url"), tracker.get("port"))

def told(word):
    while True:
        try:
            with socket.create_connection(address, timeout=60) as connection:
                connection.sendall(word.encode() + b"\\n")
                return connection.makefile().readline().split()
        except ConnectionRefusedError:
            time.sleep(0.05)

if task.get("type") == "tunertracker":
    listener, keys = socket.create_server(("0.0.0.0", tracker.get("port"))), []
    while True:
        connection, _ = listener.accept()
        with connection:
            word = connection.makefile().readline().strip()
            keys += [word] if word != "tuner" else []
            connection.sendall(" ".join(keys).encode() + b"\\n")
elif task.get("type") == "tunerserver":
    told(labels["tunerserver"])
    time.sleep(3600)
elif task.get("type") == "tuner":
    while len(keys := told("tuner")) < 2:
        time.sleep(0.05)
    print("--tracker", *address, "--server_key", labels["tunerserver"], "found", *keys, "index", task.get("index"))
"""


@pytest.fixture(scope="module")
def cluster(local_cluster, tvm_python):
    """The cluster with the image of examples/tune."""
    added = local_cluster.mxjob("local", "image", "add", IMAGE, str(EXAMPLES / "tune"), "--base", "mxjob/tvm:0.27")
    assert added.returncode == 0, added.stderr
    return local_cluster


def logs(cluster, pod):
    return cluster.log(pod)


def has_ended(cluster, job):
    """Whether every pod of the job has ended, and none of the processes that it started is left."""
    pods = cluster.pods_of(job)
    assert pods
    running = [line for line in cluster.processes().values() if "start.py" in line or "tvm.exec" in line]
    return {pod["status"]["phase"] for pod in pods} <= {"Succeeded", "Failed"} and not running


def test_a_tuning_shares_its_trials_among_the_servers_and_its_success_stops_them(cluster, tmp_path):
    manifest, page = tmp_path / "tune.json", tmp_path / "tuning.html"
    manifest.write_text(json.dumps(example_job("tune", "tune", "--trials", "6", "--round", "6", "--wait", "200")))

    with cluster.start_mxjob("run", "-f", str(manifest), "--report", str(page)) as run:
        lines = []
        for line in iter(run.stdout.readline, ""):
            lines.append(line)
            if "Trial 1 of 6" in line:
                workers = [each for each in cluster.processes().values() if "tvm.exec.popen_worker" in each]
        _, said = run.communicate(timeout=MINUTES)

    log = "".join(lines)
    assert run.returncode == 0, (log, said)
    assert re.search(r"Trial 6 of 6: \d\.\d{4} ms on tunerserver-[01], best", log)
    assert len(workers) >= 5  # the tracker's, one of each server, and two of the tuner
    eventually(lambda: has_ended(cluster, "tune"))
    (container,) = cluster.get("pod", "tune-tuner-0")["status"]["containerStatuses"]
    result = json.loads(container["state"]["terminated"]["message"])
    assert result["error"] < 1e-3
    assert (len(result["trials_ms"]), result["failed_trials"]) == (6, 0)
    assert sum(result["servers"].values()) == 6
    for server in ("tunerserver-0", "tunerserver-1"):
        measured = len(re.findall(r"load_module .*candidate\.tar", logs(cluster, f"tune-{server}")))
        assert measured == result["servers"][server] > 0
    assert "6 trials: " in page.read_text()
    assert "times as fast" in page.read_text()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("servers", "key"), [(0, "cpu"), (1, "gpu")], ids=["no-server", "wrong-key"])
def test_a_tuner_that_no_server_serves_fails_its_job_and_says_so(cluster, servers, key):
    name = f"alone-{key}"
    job = example_job("tune", name)
    specs = job["spec"]["mxReplicaSpecs"]
    specs["TunerServer"]["replicas"] = servers
    specs["Tuner"]["template"]["spec"]["containers"][0]["args"] = [
        *("env", f"TVM_TRACKER_KEY={key}", "python", "tune.py", "--wait", "3")
    ]

    cluster.create(job)

    message = terminal_message(cluster.wait_for(name, "Failed"))
    assert "tuner-0 exited with code 1" in message
    assert f"No RPC server with the key '{key}' came within 3 s: the tracker " in message
    eventually(lambda: has_ended(cluster, name))


def test_servers_without_a_key_fail_their_job_and_say_where_it_belongs(cluster):
    job = example_job("tune", "keyless")
    for spec in job["spec"]["mxReplicaSpecs"].values():
        del spec["template"]["metadata"]
    cluster.create(job)

    message = terminal_message(cluster.wait_for("keyless", "Failed"))

    assert "the annotation tuner-server-key in the metadata of the TunerServer's template" in message
    eventually(lambda: has_ended(cluster, "keyless"))


def test_a_start_script_of_autotvm_days_finds_tracker_port_and_key_in_mx_config(local_cluster):
    with socket.create_server(("0.0.0.0", 0)) as free:
        port = free.getsockname()[1]
    local_cluster.create(tuning_job("autotvm", AUTOTVM_DAYS, servers=2, port=port))

    local_cluster.wait_for("autotvm", "Succeeded")

    address = local_cluster.get("pod", "autotvm-tunertracker-0")["status"]["podIP"]
    expected = f"--tracker {address} {port} --server_key 2080ti found 2080ti 2080ti index 0\n"
    assert logs(local_cluster, "autotvm-tuner-0") == expected
    eventually(lambda: not [line for line in local_cluster.processes().values() if "autotvm" in line])


def tuning_job(name, program, *, servers, port=9091):
    """A tuning job of which every replica runs one program, with the documents' key."""
    job = worker_job(name, program)
    template = job["spec"]["mxReplicaSpecs"].pop("Worker")["template"]
    template["metadata"] = {"annotations": {"tuner-server-key": "2080ti"}}
    template["spec"]["containers"][0]["ports"] = [{"name": "mxjob-port", "containerPort": port}]
    counts = {"TunerTracker": 1, "TunerServer": servers, "Tuner": 1}
    job["spec"]["mxReplicaSpecs"] = {kind: {"replicas": count, "template": template} for kind, count in counts.items()}
    job["spec"]["jobMode"] = "MXTune"
    return job
