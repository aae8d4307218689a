"""What the five documents promise, from their own manifests, on the local cluster with real MXNet and TVM.

Which sentence each test is for stands in the READMEs of examples/seeds.
"""

import json
import re
from dataclasses import dataclass

import pytest
import yaml
from cluster_fixtures import new_home
from seed_jobs import CIFAR, LINEAR, LOCAL, MNIST, NAMESPACES, PROPOSED, SHARE, SINGLE, TRAIN, TUNE, image_commands
from seed_manifests import SEED_001_STORED, manifest
from tiers import asked_for
from waiting import MINUTES, eventually

TRAINED = (PROPOSED, SINGLE, TRAIN, LOCAL, CIFAR, LINEAR, MNIST)
SPEED = re.compile(r"INFO:root:Epoch\[\d+\] Batch \[[\d-]+\]\tSpeed: [\d.]+ samples/sec\taccuracy=[\d.]+")


@dataclass(frozen=True)
class Run:
    """What `mxjob run` said of a job to its end, and the job and its pods a moment after."""

    code: int
    log: str
    told: str
    job: dict
    pods: dict[str, dict]


@pytest.fixture(scope="module")
def cluster(mxnet_python, tvm_python):
    """A cluster with the documents' kinds, images and two GPUs, which no MXNet can use but pods can have."""
    with new_home() as cluster:
        ups = ["local", "up", "--detach", "--cpus", "64", "--gpus", "2", "--legacy"]
        for arguments in (*image_commands(), ups):
            done = cluster.mxjob(*arguments)
            assert done.returncode == 0, done.stderr
        for name in NAMESPACES:
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield cluster
        assert " ERROR " not in cluster.files.log.read_text()


class Runs:
    """The jobs' runs: those of `at_once` are begun together, another when a test first asks for it."""

    def __init__(self, cluster, at_once):
        self._cluster = cluster
        self._started = {}
        self._ended = {}
        for job in at_once:
            self._start(job)

    def _start(self, job):
        arguments = ("run", "-n", job.namespace, "-f", str(job.file))
        self._started[job] = self._cluster.start_mxjob(*arguments)

    def __getitem__(self, job):
        if job not in self._ended:
            if job not in self._started:
                self._start(job)
            process = self._started[job]
            log, told = process.communicate(timeout=MINUTES)
            pods = {each["metadata"]["name"]: each for each in self._cluster.pods_of(job.name, job.namespace)}
            stored = self._cluster.get(job.type, job.name, job.namespace)
            self._ended[job] = Run(process.returncode, log, told, stored, pods)
        return self._ended[job]

    def kill(self):
        for process in self._started.values():
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def runs(request, cluster):
    """What became of each job."""
    found = Runs(cluster, dict.fromkeys(asked_for(request, "job")))
    yield found
    found.kill()


def variables(pod):
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


def replicas(run, job):
    return [name.removeprefix(f"{job.name}-") for name in sorted(run.pods)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("job", TRAINED, ids=lambda job: job.file.name)
def test_a_document_s_job_trains_to_its_end_as_it_stands(runs, job):
    run = runs[job]
    assert run.code == 0, run.told
    assert f"{job.kind.kind} {job.name} created in namespace {job.namespace}" in run.told
    assert run.told.splitlines()[-1].startswith(f"MXJob {job.name} is successfully completed.")
    if job is LINEAR:
        assert "found: slopes 2.00, -3.40, start 4.20" in run.log
    else:
        assert float(re.search(r"Accuracy on the test images: ([\d.]+)", run.log)[1]) > 0.8


@pytest.mark.exhaustive
def test_000_a_single_node_job_is_one_pod(runs):
    assert replicas(runs[SINGLE], SINGLE) == ["worker-0"]


@pytest.mark.exhaustive
def test_001_the_worker_has_the_gpu_that_it_asks_for(runs):
    run = runs[TRAIN]
    assert re.search(r"CUDA_VISIBLE_DEVICES=[01]\): --gpus 0 is the CPU", run.log)


def test_001_the_status_is_the_one_that_the_document_shows(runs):
    shown = manifest(SEED_001_STORED)["status"]
    status = runs[TRAIN].job["status"]

    def told(conditions):
        return [tuple(each[key] for key in ("type", "status", "reason", "message")) for each in conditions]

    started = [each for each in status["conditions"] if each["type"] in {"Created", "Running", "Succeeded"}]
    assert told(started) == told(shown["conditions"])
    assert status["mxReplicaStatuses"].keys() == shown["mxReplicaStatuses"].keys()
    assert status["startTime"] <= status["completionTime"]
    assert (status["state"], status["RuntimeId"]) == ("Succeeded", runs[TRAIN].job["metadata"]["uid"][:4])


def test_001_clean_pod_policy_all_leaves_no_pod(cluster, runs):
    assert runs[TRAIN].job["spec"]["cleanPodPolicy"] == "All"
    of_job = f"training.kubeflow.org/job-name={TRAIN.name}"
    for type_ in ("pods", "services"):
        eventually(lambda type_=type_: cluster.find(type_, TRAIN.namespace, labels=of_job) == [])


@pytest.mark.exhaustive
def test_001_tuning_runs_on_real_tvm_with_the_parameters_from_its_environment(cluster, runs):
    run = runs[TUNE]
    assert run.code == 0, run.told
    assert re.search(r"on 1 servers? with the key '2080ti'", run.log)
    assert re.search(r"Trial 4 of 4: \d\.\d{4} ms on tunerserver-0", run.log)
    assert "Its largest relative error against numpy is" in run.log
    eventually(lambda: cluster.pods_of(TUNE.name, TUNE.namespace) == [])


def test_002_a_local_job_writes_the_documents_log_and_its_checkpoint(runs):
    run = runs[LOCAL]
    assert replicas(run, LOCAL) == ["worker-0"]
    assert "start with arguments Namespace(" in run.log
    assert SPEED.search(run.log)
    assert re.search(r"INFO:root:Epoch\[0\] Train-accuracy=[\d.]+", run.log)
    assert re.search(r"INFO:root:Epoch\[0\] Time cost=[\d.]+", run.log)
    assert 'INFO:root:Saved checkpoint to "./wltest-0001.params"' in run.log


@pytest.mark.exhaustive
def test_002_each_of_three_workers_has_a_log_of_its_own_and_its_checkpoint(cluster, runs):
    run = runs[CIFAR]
    kinds = ["scheduler-0", "server-0", "server-1", "worker-0", "worker-1", "worker-2"]
    assert replicas(run, CIFAR) == kinds
    saved = set()
    for index in range(3):
        log = cluster.log(f"{CIFAR.name}-worker-{index}", CIFAR.namespace)
        assert SPEED.search(log)
        saved |= set(re.findall(r'Saved checkpoint to "(\S+-0001.params)"', log))
    assert saved == {"./wltest-0001.params", "./wltest-1-0001.params", "./wltest-2-0001.params"}


def phase(job):
    """The phase in the status of a job in a list format; empty while there is no job, or it has none."""
    return (job or {}).get("status", {}).get("phase", "")


@pytest.mark.sampled
@pytest.mark.parametrize("job", [LOCAL, CIFAR, LINEAR, MNIST], ids=lambda job: f"{job.namespace}-{job.name}")
def test_the_status_of_a_list_format_has_phase_state_and_the_replicas_of_each_type(cluster, runs, job):
    found = cluster.wait_until(job.type, job.name, lambda each: phase(each) == "Done", job.namespace)
    status = found["status"]
    assert (status["state"], status["reason"]) == ("Succeeded", "")
    assert status["RuntimeId"] == found["metadata"]["uid"][:4]
    type_of = "Mx_replica_type" if job.namespace == "seed-002" else "mx_replica_type"
    written = {each.get("mxReplicaType") for each in found["spec"]["replicaSpecs"]}
    assert {each[type_of] for each in status["replicaStatuses"]} == written
    (workers,) = [each for each in status["replicaStatuses"] if each[type_of] == "WORKER"]
    assert (workers["state"], set(workers["ReplicasStates"])) == ("Succeeded", {"Succeeded"})


@pytest.mark.exhaustive
def test_003_processes_meet_at_the_documents_port(runs):
    assert {variables(pod)["DMLC_PS_ROOT_PORT"] for pod in runs[LINEAR].pods.values()} == {"9000"}


@pytest.mark.exhaustive
def test_003_a_share_that_this_machine_can_not_mount_is_told_by_the_pods_events(cluster):
    cluster.create(yaml.safe_load(SHARE.file.read_text()), SHARE.namespace)

    def told():
        events = cluster.find("events", SHARE.namespace)
        return [each["message"] for each in events if each["reason"] == "FailedMount"]

    assert "azureFile" in json.dumps(eventually(told))
    gone = cluster.mxjob("delete", "-n", SHARE.namespace, f"{SHARE.type}/{SHARE.name}")
    assert gone.returncode == 0, gone.stderr
