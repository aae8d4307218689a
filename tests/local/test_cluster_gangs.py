"""The twelve jobs that deadlock where pods are placed one by one, on a local cluster of 8 GPUs that are only counted.

Their processes are shells: a gang waits until all of its members run, as ps-lite does, and ends with 0 a moment later.
"""

from collections import Counter

import pytest
from waiting import eventually

WORKERS = (7, 6, 5, 7, 3, 6, 4, 7, 5, 6, 3, 7)
GPUS = 8
GPU = "nvidia.com/gpu"
IMAGE = "test/tiny:1"
LOCK = """# python: 3.11
six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
"""
MEET = """
touch /meet/$HOSTNAME
while set -- /meet/*; [ $# -lt %d ]; do sleep 0.2; done
echo devices=$CUDA_VISIBLE_DEVICES
sleep 0.3
"""


def job(name, folder, workers, *, waits_for=0, **policy):
    """A job of so many one-GPU workers, a scheduler and a server, which wait for all, or so many, in a folder.

    `policy` is its schedulingPolicy.
    """
    folder.mkdir()
    script = MEET % (waits_for or workers + 2)

    def replica(count, resources):
        container = {
            "name": "mxnet",
            "image": IMAGE,
            "command": ["sh", "-c", script],
            "resources": resources,
            "volumeMounts": [{"name": "meet", "mountPath": "/meet"}],
        }
        volume = {"name": "meet", "hostPath": {"path": str(folder)}}
        return {"replicas": count, "template": {"spec": {"containers": [container], "volumes": [volume]}}}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": name},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": {"schedulingPolicy": policy} if policy else {},
            "mxReplicaSpecs": {
                "Scheduler": replica(1, {}),
                "Server": replica(1, {}),
                "Worker": replica(workers, {"limits": {GPU: "1"}}),
            },
        },
    }


def says(cluster, name, words):
    """Wait for these words in a condition of the job; looking with the program would keep a core busy."""

    def holds(job):
        return any(words in each["message"] for each in job.get("status", {}).get("conditions", ()))

    cluster.wait_until("mxjob", name, holds)


@pytest.fixture
def gpu_cluster(home, tmp_path):
    """A cluster of 8 GPUs with an image that needs no building to speak of."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "requirements.txt").write_text(LOCK)
    for args in (
        ("image", "add", IMAGE, str(tmp_path / "image")),
        ("up", "--detach", "--cpus", "64", "--gpus", str(GPUS)),
    ):
        done = home.mxjob("local", *args)
        assert done.returncode == 0, done.stderr
    return home


def held_over_time(events):
    """For each change of a pod, how many pods of each job have a node, and how many GPUs they hold."""
    placed = {}
    for event in events:
        pod = event["object"]
        name, owner = pod["metadata"]["name"], pod["metadata"]["ownerReferences"][0]["name"]
        over = pod["status"].get("phase") in {"Succeeded", "Failed"} or event["type"] == "DELETED"
        if not pod["spec"].get("nodeName"):
            placed.pop(name, None)
            continue
        gpus = pod["spec"]["containers"][0]["resources"].get("limits", {}).get(GPU, "0")
        placed[name] = (owner, 0 if over else int(gpus))
        yield Counter(job for job, _ in placed.values()), sum(count for _, count in placed.values())


@pytest.mark.exhaustive
def test_twelve_jobs_that_compete_for_eight_gpus_all_succeed(gpu_cluster, tmp_path):
    jobs = {f"gang-{index}": workers for index, workers in enumerate(WORKERS)}
    manifests = [job(name, tmp_path / name, workers) for name, workers in jobs.items()]
    with gpu_cluster.events("pods") as events:
        for manifest in manifests:
            gpu_cluster.create(manifest)
        for name in jobs:
            gpu_cluster.wait_for(name, "Succeeded")
        eventually(lambda: [*held_over_time(events)][-1][1] == 0)  # the watch may be behind

    over_time = list(held_over_time(events))
    assert max(gpus for _, gpus in over_time) <= GPUS
    # All pods of a gang are bound one after the other: none is bound while one of another gang is still to come.
    incomplete = [{name: n for name, n in placed.items() if n < jobs[name] + 2} for placed, _ in over_time]
    assert max(map(len, incomplete)) == 1
    assert over_time[-1] == (Counter({name: workers + 2 for name, workers in jobs.items()}), 0)


def test_a_job_that_waits_says_what_is_missing_and_how_many_come_first(gpu_cluster, tmp_path):
    gpu_cluster.create(job("running", tmp_path / "running", 6, waits_for=99))
    gpu_cluster.wait_for("running", "Running")
    waiting = {
        "large": (8, f"4 of 10 can be placed, missing 6 {GPU}"),
        "small": (1, "3 of 3 can be placed, but default/large comes first; 1 job before it in the queue"),
        "huge": (9, f"0/1 nodes are available: 1 Insufficient {GPU}. The job needs 9 {GPU}, this cluster has 8."),
    }
    for name, (workers, words) in waiting.items():
        gpu_cluster.create(job(name, tmp_path / name, workers))
        says(gpu_cluster, name, words)
        assert words in gpu_cluster.mxjob("get", name, "-o", "wide").stdout
        assert words in gpu_cluster.mxjob("describe", name).stdout
    assert gpu_cluster.mxjob("delete", "running").returncode == 0
    for name in ("large", "small"):
        gpu_cluster.wait_for(name, "Succeeded")


@pytest.mark.exhaustive
def test_a_job_is_placed_by_its_scheduling_policy(gpu_cluster, tmp_path):
    """`minAvailable`, put right while it waits; and the time to wait at most."""
    gpu_cluster.create(job("running", tmp_path / "running", 6, waits_for=99))
    gpu_cluster.wait_for("running", "Running")
    # Two of its ten workers fit beside the other job; with the scheduler and the server these are four pods.
    gpu_cluster.create(job("part", tmp_path / "part", 10, waits_for=4, minAvailable=13))
    too_many = "minAvailable is 13, and the job has 12 pods: set it to 12 or less"
    says(gpu_cluster, "part", too_many)
    assert too_many in gpu_cluster.mxjob("get", "part", "-o", "wide").stdout
    gpu_cluster.create(job("early", tmp_path / "early", 8))
    gpu_cluster.create(job("late", tmp_path / "late", 8))
    missing = "4 of 10 can be placed, missing 6 nvidia.com/gpu; 1 job before it in the queue"
    says(gpu_cluster, "late", missing)
    change_policy(gpu_cluster, "late", scheduleTimeoutSeconds=1)
    failed = gpu_cluster.wait_for("late", "Failed")["status"]["conditions"][-1]["message"]
    assert f"within 1 s (scheduleTimeoutSeconds): {missing}" in failed

    gpu_cluster.delete("mxjob", "early")
    change_policy(gpu_cluster, "part", minAvailable=4)
    gpu_cluster.wait_for("part", "Succeeded")


def change_policy(cluster, name, **policy):
    cluster.patch("mxjob", name, {"spec": {"runPolicy": {"schedulingPolicy": policy}}})
