"""The local cluster with Kubernetes' own control plane: the same jobs, run by the same kubelet, look the same."""

import json
import os
import signal
import ssl
import urllib.error
import urllib.request

import pytest
from cluster_fixtures import DIGITS, DIGITS_IMAGE, new_home
from jobs import digits_job, worker_job
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from waiting import SECONDS, eventually

from mxnet_operator.api import names
from mxnet_operator.local.control_plane.programs import PROGRAMS
from mxnet_operator.local.home import running_state

pytestmark = pytest.mark.kubernetes

EPOCHS = ("--epochs", "2")
UP = ("local", "up", "--detach", "--control-plane", "kubernetes", "--cpus", "8")
ASLEEP = "import time; print('asleep', flush=True); time.sleep(1000)"


@pytest.fixture(scope="module")
def programs():
    """The programs are there, where `mxjob` finds them."""
    return programs_or_skip(CONTROL_PLANE)


@pytest.fixture(scope="module")
def cluster(programs, mxnet_python):
    """A cluster with the image of examples/digits."""
    with new_home() as home:
        for args in (("local", "image", "add", DIGITS_IMAGE, str(DIGITS)), UP):
            done = home.mxjob(*args)
            assert done.returncode == 0, done.stderr
        yield home
        log = home.files.log.read_text()
        assert running_state(home.files) is not None, log
        assert " ERROR " not in log


def shape(value):
    """The value's structure: its keys, and of what kind the leaves are."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


def described(cluster, name):
    """What a user sees of a finished job and its pods, without what is another each time."""
    job = cluster.get("mxjob", name)
    pods = cluster.pods_of(name)
    described = {
        "conditions": [
            {key: each.get(key) for key in ("type", "status", "reason", "message")}
            for each in job["status"]["conditions"]
        ],
        "replicas": job["status"]["replicaStatuses"],
        "status": sorted(job["status"]),
        "services": {
            each["metadata"]["name"]: (each["spec"]["selector"], each["spec"]["ports"][0]["port"])
            for each in cluster.find("services", labels=f"training.kubeflow.org/job-name={name}")
        },
        "pods": {
            pod["metadata"]["name"]: {
                "labels": pod["metadata"]["labels"],
                "env": pod["spec"]["containers"][0]["env"],
                "phase": pod["status"]["phase"],
                "conditions": sorted((each["type"], each["status"]) for each in pod["status"]["conditions"]),
                "container": shape(pod["status"]["containerStatuses"][0]["state"]),
            }
            for pod in pods
        },
    }
    runtime_id = pods[0]["metadata"]["labels"][names.LABEL_RUNTIME_ID]
    text = json.dumps(described).replace(job["metadata"]["uid"], "UID").replace(f'"{runtime_id}"', '"RUNTIME"')
    return json.loads(text)


@pytest.mark.exhaustive
def test_the_example_trains_and_looks_as_on_the_local_control_plane(cluster, local_cluster):
    manifest = json.dumps(digits_job("same", *EPOCHS))
    for each in (cluster, local_cluster):
        applied = each.kubectl("apply", "-f", "-", stdin=manifest)
        assert applied.returncode == 0, applied.stderr
    for each in (cluster, local_cluster):
        each.wait_for("same", "Succeeded")

    here, there = described(cluster, "same"), described(local_cluster, "same")

    replicas = ("scheduler-0", "server-0", "server-1", "worker-0", "worker-1")
    assert set(here["pods"]) == {f"same-{each}" for each in replicas}
    assert here == there


def test_the_node_is_ready_and_renews_its_lease(cluster):
    def renewed():
        return cluster.get("lease", "local", "kube-node-lease")["spec"]["renewTime"]

    first = eventually(renewed)
    eventually(lambda: renewed() > first)
    node = cluster.get("node", "local")
    assert "taints" not in node["spec"]
    assert [(each["type"], each["status"]) for each in node["status"]["conditions"]] == [("Ready", "True")]


def test_kubernetes_own_scheduler_places_the_pods(cluster):
    cluster.create(worker_job("placed", "pass"))
    cluster.wait_for("placed", "Succeeded")

    selector = "involvedObject.name=placed-worker-0,reason=Scheduled"
    (event,) = cluster.find("events", fields=selector)

    assert event["message"] == "Successfully assigned default/placed-worker-0 to local"
    assert event["metadata"]["managedFields"][0]["manager"] == "kube-scheduler"


def test_a_job_that_asks_for_too_much_waits_in_the_schedulers_words(cluster):
    manifest = worker_job("too-big", "pass")
    container = manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "100"}}
    cluster.create(manifest)

    def message():
        pod = cluster.get("pod", "too-big-worker-0") or {}
        conditions = pod.get("status", {}).get("conditions", [])
        return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

    assert "Insufficient cpu" in eventually(message)
    cluster.delete("mxjob", "too-big")


def test_mxjob_run_and_kubectl_logs_show_what_the_worker_prints(cluster):
    run = cluster.mxjob("run", "-f", "-", stdin=json.dumps(worker_job("shown", "print('first'); print('last')")))

    assert run.returncode == 0, run.stderr
    assert run.stdout == "first\nlast\n"
    logs = cluster.kubectl("logs", "shown-worker-0", "--tail", "1", "--timestamps")
    assert logs.returncode == 0, logs.stderr
    assert logs.stdout.count("\n") == 1
    assert logs.stdout.startswith("20")
    assert logs.stdout.endswith(" last\n")


def test_a_log_is_followed_while_it_is_written_and_a_deleted_job_leaves_no_process(cluster):
    cluster.create(worker_job("asleep", ASLEEP))
    cluster.wait_for("asleep", "Running")
    with cluster.start_kubectl("logs", "-f", "asleep-worker-0") as follow:
        assert follow.stdout.readline() == "asleep\n"
        deleted = cluster.kubectl("delete", "mxjob", "asleep", "--cascade=foreground")
        assert deleted.returncode == 0, deleted.stderr
        assert follow.wait(SECONDS) == 0
    assert not [line for line in cluster.processes().values() if "asleep" in line]
    assert cluster.find("pods", labels="training.kubeflow.org/job-name=asleep") == []


def test_the_kubelet_shows_logs_only_to_the_api_server(cluster):
    node = cluster.get("node", "local")
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    url, folder = f"https://127.0.0.1:{port}/containerLogs/default/nobody/mxnet", cluster.files.control_plane
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    with pytest.raises(OSError, match=r"certificate required|closed connection|reset by peer"):
        urllib.request.urlopen(url, context=context, timeout=SECONDS)

    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    with pytest.raises(urllib.error.HTTPError, match="404") as refusal:
        urllib.request.urlopen(url, context=context, timeout=SECONDS)
    refusal.value.close()


def test_a_log_that_is_not_there_yet_is_refused_in_the_kubelets_words(cluster):
    manifest = worker_job("imageless", "pass")
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "mxjob/nope:1"
    cluster.create(manifest)
    eventually(lambda: "ErrImagePull" in cluster.kubectl("get", "pods", "imageless-worker-0").stdout)

    logs = cluster.kubectl("logs", "imageless-worker-0")

    assert logs.returncode == 1
    assert 'container "mxnet" in pod "imageless-worker-0" is waiting to start' in logs.stderr
    cluster.delete("mxjob", "imageless")


@pytest.mark.exhaustive
def test_the_cluster_and_its_control_plane_end_with_each_other_and_the_next_one_starts_clean(home, programs):
    assert home.mxjob(*UP).returncode == 0
    state = home.state
    status = json.loads(home.mxjob("local", "status", "--json").stdout)
    assert status["controlPlane"] == "kubernetes"
    running = " ".join(home.processes().values())
    assert all(program in running for program in PROGRAMS)

    os.kill(state.pid, signal.SIGKILL)

    eventually(lambda: not home.processes())
    assert home.mxjob("local", "status").returncode == 3
    up = home.mxjob(*UP)
    assert up.returncode == 0, up.stderr
    assert home.state.port == state.port
    assert home.find("mxjobs", "") == []

    scheduler = next(pid for pid, command in home.processes().items() if "/kube-scheduler " in command)

    os.kill(scheduler, signal.SIGKILL)

    eventually(lambda: not home.processes())
    assert "kube-scheduler ended with -9" in home.files.log.read_text()


@pytest.mark.exhaustive
def test_a_start_that_is_broken_off_leaves_nothing(home, programs):
    with home.start_mxjob("local", "up", "--control-plane", "kubernetes") as starting:
        eventually(lambda: "/etcd " in " ".join(home.processes().values()))

        starting.send_signal(signal.SIGTERM)

        starting.communicate(timeout=SECONDS)
    assert home.processes() == {}
    assert home.mxjob("local", "status").returncode == 3


def test_without_the_programs_the_command_says_how_to_get_them(home, tmp_path):
    nowhere = {"KUBEBUILDER_ASSETS": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    up = home.mxjob("local", "up", "--control-plane", "kubernetes", environment=nowhere)

    assert up.returncode == 1
    assert all(word in up.stderr for word in (*PROGRAMS, "KUBEBUILDER_ASSETS", "in a checkout"))
    assert home.processes() == {}


@pytest.mark.sampled
@pytest.mark.parametrize("plane", ["local", "kubernetes"])
def test_kubectl_and_mxjob_show_change_await_and_delete_jobs_and_pods(plane, request):
    home = request.getfixturevalue("cluster" if plane == "kubernetes" else "local_cluster")
    name = "handled"
    home.create(worker_job(name, ASLEEP))
    waited = home.mxjob("wait", name, "--for", "Running", "--timeout", "60")
    assert waited.returncode == 0, waited.stderr

    for kind, which in (("mxjob", name), ("pod", f"{name}-worker-0")):
        assert home.kubectl("label", kind, which, "team=vision").returncode == 0
        assert home.kubectl("annotate", kind, which, "note=mine").returncode == 0
        patch = json.dumps({"metadata": {"labels": {"patched": "yes"}}})
        assert home.kubectl("patch", kind, which, "--type=merge", "-p", patch).returncode == 0
        metadata = home.get(kind, which)["metadata"]
        assert metadata["labels"].items() >= {"team": "vision", "patched": "yes"}.items()
        assert metadata["annotations"]["note"] == "mine"
        described = home.kubectl("describe", kind, which)
        assert described.returncode == 0, described.stderr
        assert "Events:" in described.stdout

    shown = home.mxjob("get", name)
    assert "Running" in shown.stdout, shown.stderr
    assert home.kubectl("get", "mxj", name, "--no-headers").stdout.split()[:2] == [name, "Running"]
    described = home.mxjob("describe", name)
    assert f"{name}-worker-0" in described.stdout, described.stderr
    deleted = home.mxjob("delete", name)
    assert deleted.returncode == 0, deleted.stderr
    assert home.get("mxjob", name) is None
    assert home.pods_of(name) == []
