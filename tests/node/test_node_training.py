"""Real MXNet and TVM in real containers: the examples as they are, a checkpoint on a volume, a drained node."""

import json

import pytest
import yaml
from jobs import example_job
from real_node.images import ROOT, TUNE, archives
from waiting import SECONDS, eventually

DIGITS = ROOT / "examples" / "digits" / "mxjob.yaml"
RESOLVE = (
    "import socket as s; print(s.gethostbyname('digits-scheduler-0'), s.gethostbyname('digits-worker-1.digits-mx'))"
)
HARDENED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
CHECKPOINTS = {"name": "checkpoints", "mountPath": "/workspace/checkpoints"}


def digits():
    """The example with restartPolicy ExitCode; each type has a template of its own."""
    job = json.loads(json.dumps(yaml.safe_load(DIGITS.read_text())))
    for spec in job["spec"]["mxReplicaSpecs"].values():
        spec["restartPolicy"] = "ExitCode"
    return job


def message(world, pod):
    """What a replica that has ended wrote as its result, decoded."""
    (container,) = world.get("pod", pod)["status"]["containerStatuses"]
    return json.loads(container["state"]["terminated"]["message"])


def templates(job):
    return [spec["template"]["spec"] for spec in job["spec"]["mxReplicaSpecs"].values()]


def test_the_example_trains_and_its_pods_find_each_other_by_name(world):
    world.kubectl("create", "-f", DIGITS)
    world.wait("mxjob/digits", "condition=Running")
    addresses = world.kubectl("exec", "digits-worker-0", "--", "python", "-c", RESOLVE).split()
    pods = world.pods("digits")
    assert addresses == [pods[name]["status"]["podIP"] for name in ("digits-scheduler-0", "digits-worker-1")]
    world.ended("digits", "Succeeded")
    assert message(world, "digits-worker-0")["accuracy"] > 0.97
    assert "Epoch[19] Validation-accuracy=0.9" in world.kubectl("logs", "digits-worker-0")


@pytest.mark.node(TUNE)
def test_the_tuning_example_shares_its_trials_among_its_servers_which_its_end_stops(world):
    world.node.load(archives([TUNE]))
    world.create(example_job("tune", "tune", "--trials", "4", "--round", "4", "--wait", "200"))
    world.ended("tune", "Succeeded")
    result = message(world, "tune-tuner-0")
    assert (len(result["trials_ms"]), result["failed_trials"]) == (4, 0)
    assert sum(result["servers"].values()) == 4
    assert set(result["servers"]) == {"tunerserver-0", "tunerserver-1"}
    eventually(lambda: {pod["status"]["phase"] for pod in world.pods("tune").values()} <= {"Succeeded", "Failed"})


def test_in_a_restricted_namespace_a_gang_whose_server_is_killed_goes_on_from_the_checkpoint_on_its_volume(world):
    """Its root is read-only."""
    world.kubectl("label", "namespace", world.namespace, "pod-security.kubernetes.io/enforce=restricted")
    world.claim("checkpoints")
    job = digits()
    for pod in templates(job):
        pod["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}]
        pod["containers"][0] |= {"securityContext": HARDENED, "volumeMounts": [CHECKPOINTS]}
    world.create(job)
    world.wait("mxjob/digits", "condition=Running")
    with world.follow("digits-worker-0") as lines:
        assert any("Epoch[2] Validation-accuracy" in line for line in lines)
    world.kubectl("exec", "digits-server-0", "--", "python", "-c", "import os; os.kill(-1, 9)")
    world.ended("digits", "Succeeded")
    assert world.get("mxjob", "digits")["status"]["restarts"] == 1
    logs = [world.kubectl("logs", f"digits-worker-{index}") for index in (0, 1)]
    assert any("Resumed from checkpoint" in log for log in logs)


def test_a_drained_node_ends_every_replica_by_sigterm_and_the_gang_comes_again(world):
    """A grace period that outlasts the test: a replica that ignored SIGTERM would hold the drain up for as long."""
    job = digits()
    for pod in templates(job):
        pod["terminationGracePeriodSeconds"] = 3600
    world.create(job)
    world.wait("mxjob/digits", "condition=Running")
    with world.follow("digits-worker-0") as lines:
        assert any("Epoch[0] Validation-accuracy" in line for line in lines)
    chosen = ("--pod-selector=training.kubeflow.org/job-name=digits", "--force", f"--timeout={SECONDS}s")
    try:
        world.node.kubectl("drain", "node1", *chosen)
    finally:
        world.node.kubectl("uncordon", "node1")
    world.ended("digits", "Succeeded")
    assert world.get("mxjob", "digits")["status"]["restarts"] == 1
