"""Jobs that training-operator 1.8.1 made, after its CRD was replaced by ours and our controller started instead."""

import asyncio
import json
import logging
import subprocess
import tempfile
from pathlib import Path

import pytest
import pytest_asyncio
from builders import make_mxjob
from cluster_fixtures import MXJOB
from control_plane import control_plane
from control_plane_fixtures import real_api
from controller_fixtures import JOBS, PODS, SERVICES, ControllerWorld, RecordingClient, submitted
from fake_nodes import EXIT_CODE, NODES, ending, fake_node
from foreign_children import older_status
from kubernetes_programs import CONTROL_PLANE, kubectl, programs_or_skip
from left_overs import folder_prefix
from training_operator import (
    MXJOB_WEBHOOK,
    WEBHOOK,
    WEBHOOKS,
    install_training_operator,
    its_crd,
    its_webhooks,
    training_operator,
)
from waiting import SECONDS

from mxnet_operator.api.conditions import job_state
from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.kube.credentials import load_credentials

pytestmark = [
    pytest.mark.kubernetes("training-operator", "kubectl"),
    pytest.mark.asyncio(loop_scope="module"),
]

STOP = "activeDeadlineSeconds"
DONE = {"Scheduler": 0, "Server": 0, "Worker": 0}
TUNERS = ("TunerTracker", "TunerServer", "Tuner")


def gang(name):
    return make_mxjob(name).scheduler().server().worker(2)


def tuning():
    """A job whose Tuner ends; 1.8.1 never sees that it has succeeded."""
    builder = make_mxjob("tuning")
    for replica_type in TUNERS:
        builder.replicas(replica_type, 1)
    manifest = submitted(ending(builder, Tuner=0))
    manifest["spec"]["jobMode"] = "MXTune"
    return manifest


MADE = {  # the jobs, and the state in which 1.8.1 leaves each
    "running": (submitted(gang("running")), "Running"),
    "suspended": (submitted(ending(gang("suspended"), **DONE).run_policy(suspend=True)), "Suspended"),
    "paused": (submitted(gang("paused").run_policy(activeDeadlineSeconds=3600)), "Running"),
    "finished": (submitted(ending(gang("finished"), **DONE)), "Succeeded"),
    "failed": (submitted(ending(gang("failed"), Worker=3)), "Failed"),
    "permanent": (submitted(ending(gang("permanent"), Worker=1).restart("ExitCode")), "Failed"),
    "expired": (
        submitted(ending(gang("expired"), Worker=1).restart("ExitCode").run_policy(ttlSecondsAfterFinished=1)),
        "Failed",
    ),
    "tuning": (tuning(), "Created"),
    "misspelt": (submitted(gang("misspelt").run_policy(cleanPodPolicy="none")), "Running"),
}


MISNAMED = {  # names that operators before 1.8.1 took, and what our CRD says of them
    "2024-exp": "must start with a lower-case letter",
    "a-name-of-fifty-nine-characters-which-no-pod-of-the-job-fits": "too long",
}


def run(command, stdin=None):
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=False)


class Problems(logging.Handler):
    """What the controller complains of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


class TakeoverWorld(ControllerWorld):
    """The cluster of a user who moves from training-operator, with what was there before."""

    def __init__(self, server, api, client):
        super().__init__(api, client, server.kubeconfig())
        self.problems = Problems()
        self.before = {}
        self.uids = {}

    def kubectl(self, *args, stdin=None):
        return run([kubectl(), f"--kubeconfig={self.kubeconfig}", *args], stdin)

    async def leave(self, name, state):
        """Wait until 1.8.1 has brought a job so far."""
        jobs = await self.eventually(JOBS, lambda jobs: job_state(jobs.get(name, {})) == state)
        return jobs[name]

    async def uids_of(self, name):
        listed = (await self.api.get(PODS, labelSelector=f"training.kubeflow.org/job-name={name}")).ok()
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in listed["items"]}

    async def stopped(self, name):
        """The pods of a job that were deleted, or told to end: the controller does that by a deadline."""
        listed = (await self.api.get(PODS, labelSelector=f"training.kubeflow.org/job-name={name}")).ok()
        ended = (p for p in listed["items"] if "deletionTimestamp" in p["metadata"] or STOP in p["spec"])
        return [pod["metadata"]["name"] for pod in ended]

    async def end_pods(self, name):
        """Have the pods of a job end well."""
        for pod in await self.uids_of(name):
            (await self.api.merge(f"{PODS}/{pod}", {"metadata": {"annotations": {EXIT_CODE: "0"}}})).ok()


async def run_by_the_peer(server, cluster):
    """All jobs as 1.8.1 leaves them."""
    install_training_operator(server)
    with training_operator(server, server.kubeconfig()):
        for manifest, _ in MADE.values():
            await cluster.submit(manifest)
        for name, (_, state) in MADE.items():
            await cluster.leave(name, state)
        await cluster.eventually(
            PODS, lambda pods: running_or_over(pods, {"running", "tuning", "paused", "misspelt"}, 4 + 3 + 4 + 4)
        )
        (await cluster.api.merge(f"{JOBS}/paused", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        await cluster.leave("paused", "Suspended")
        await cluster.eventually(PODS, lambda pods: not any(pod.startswith("paused-") for pod in pods))
    for name in MADE:
        cluster.before[name] = (await cluster.api.get(f"{JOBS}/{name}")).ok()
        cluster.uids[name] = await cluster.uids_of(name)


def condition_of(job, condition_type):
    """The status of a condition of a job."""
    found = (c["status"] for c in job["status"]["conditions"] if c["type"] == condition_type)
    return next(found, "")


def running_or_over(pods, names, count):
    phases = [
        pod["status"]["phase"]
        for pod in pods.values()
        if pod["metadata"]["labels"]["training.kubeflow.org/job-name"] in names
    ]
    return len(phases) == count and "Pending" not in phases


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster():
    paths = programs_or_skip([*CONTROL_PLANE, "training-operator"])
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder,
        control_plane(paths, Path(folder), [its_crd()]) as server,
    ):
        async with (
            real_api(server) as api,
            RecordingClient(load_credentials(str(server.kubeconfig("controller")))) as client,
        ):
            (await api.post(NODES, fake_node("node", cpu="64"))).ok()
            made = TakeoverWorld(server, api, client)
            await run_by_the_peer(server, made)
            # a user's cluster asks its webhook, which is gone by now
            (await api.delete(f"{WEBHOOKS}/{WEBHOOK}")).ok()
            for name in MISNAMED:
                await made.submit(submitted(gang(name)))
                (await api.merge(f"{JOBS}/{name}/status", {"status": older_status("Created")})).ok()
            (await api.post(WEBHOOKS, its_webhooks())).ok()
            yield made
            await made.stop()
            logging.getLogger("mxnet_operator").removeHandler(made.problems)


async def until_served(api):
    """Wait until the server goes by our CRD, which takes it a moment after it has stored it."""
    status = {"status": {"state": "Running"}}
    async with asyncio.timeout(SECONDS):
        while "state" not in (await api.merge(f"{JOBS}/running/status", status, dryRun="All")).ok()["status"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def taken_over(cluster):
    """The cluster after the steps of docs/migrate.md."""
    position = [each["name"] for each in its_webhooks()["webhooks"]].index(MXJOB_WEBHOOK)
    patch = [
        {"op": "test", "path": f"/webhooks/{position}/name", "value": MXJOB_WEBHOOK},
        {"op": "remove", "path": f"/webhooks/{position}"},
    ]
    crd = json.dumps(custom_resource_definition())
    steps = [
        (["patch", "validatingwebhookconfiguration", WEBHOOK, "--type=json", "-p", json.dumps(patch)], None),
        (["apply", "--server-side", "--force-conflicts", "-f", "-"], crd),
    ]
    for args, stdin in steps:
        done = cluster.kubectl(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
    await until_served(cluster.api)
    logging.getLogger("mxnet_operator").addHandler(cluster.problems)
    await cluster.start()
    return cluster


async def test_what_our_crd_would_refuse_is_found_beforehand(cluster):
    stored = cluster.kubectl("get", "mxjobs", "-A", "-o", "yaml").stdout
    checked = run([*MXJOB, "validate", "-"], stored)
    wrong = [line for line in checked.stdout.splitlines() if ": ok: " not in line]
    of_names = [line for line in wrong if "metadata.name" in line]
    assert len(of_names) == len(MISNAMED), checked
    (misspelt,) = (line for line in wrong if line not in of_names)
    assert 'spec.runPolicy.cleanPodPolicy: Unsupported value: "none"' in misspelt


async def test_the_pods_of_a_running_job_stay_and_it_succeeds(taken_over):
    assert len(taken_over.uids["running"]) == 4
    state = await taken_over.state("running", "Running")
    assert state["status"]["conditions"] == taken_over.before["running"]["status"]["conditions"]
    await taken_over.end_pods("running")
    done = await taken_over.state("running", "Succeeded")
    assert await taken_over.uids_of("running") == taken_over.uids["running"]
    assert done["status"].get("restarts", 0) == 0
    assert done["status"]["startTime"] == taken_over.before["running"]["status"]["startTime"]


async def test_a_suspended_job_stays_so_until_it_is_resumed(taken_over):
    job = await taken_over.state("suspended", "Suspended")
    assert job["status"]["conditions"] == taken_over.before["suspended"]["status"]["conditions"]
    assert await taken_over.uids_of("suspended") == {}
    (await taken_over.api.merge(f"{JOBS}/suspended", {"spec": {"runPolicy": {"suspend": False}}})).ok()
    await taken_over.state("suspended", "Succeeded")


async def test_the_time_that_a_paused_job_had_run_does_not_count(taken_over):
    assert "startTime" in taken_over.before["paused"]["status"]
    job = await taken_over.state("paused", "Suspended")
    assert "startTime" not in job["status"]
    (await taken_over.api.merge(f"{JOBS}/paused", {"spec": {"runPolicy": {"suspend": False}}})).ok()
    await taken_over.state("paused", "Running")
    await taken_over.end_pods("paused")
    await taken_over.state("paused", "Succeeded")


async def test_a_tuning_job_that_it_could_not_finish_succeeds(taken_over):
    await taken_over.state("tuning", "Succeeded")
    assert await taken_over.uids_of("tuning") == taken_over.uids["tuning"]


async def test_a_failed_job_that_it_could_not_delete_goes(taken_over):
    assert "completionTime" not in taken_over.before["expired"]["status"]
    async with asyncio.timeout(SECONDS):
        await taken_over.eventually(JOBS, lambda jobs: jobs and "expired" not in jobs)


@pytest.mark.parametrize("name", ["finished", "failed", "permanent"])
async def test_what_is_over_keeps_its_status_and_never_runs_again(taken_over, name):
    before = taken_over.before[name]["status"]
    job = await taken_over.state(name, MADE[name][1])
    assert job["status"] == before | {"state": MADE[name][1], "restarts": 0}
    for pod in taken_over.uids[name]:
        await taken_over.api.delete(f"{PODS}/{pod}")
    after = f"after-{name}"
    await taken_over.submit(submitted(ending(gang(after), **DONE)))
    await taken_over.state(after, "Succeeded")  # a controller that would run the other one again would have by now
    assert await taken_over.uids_of(name) == {}
    assert (await taken_over.api.get(f"{JOBS}/{name}")).ok()["status"] == job["status"]


async def test_a_job_that_is_not_valid_any_more_says_so_and_goes_on_once_it_is_corrected(taken_over):
    said = await taken_over.event("ReconcileError", says="cleanPodPolicy")
    assert said["involvedObject"]["name"] == "misspelt"
    assert await taken_over.uids_of("misspelt") == taken_over.uids["misspelt"]
    assert await taken_over.stopped("misspelt") == []
    assert (await taken_over.api.get(f"{JOBS}/misspelt")).ok()["status"]["state"] == "Running"
    (await taken_over.api.merge(f"{JOBS}/misspelt", {"spec": {"runPolicy": {"cleanPodPolicy": "None"}}})).ok()
    await taken_over.eventually(JOBS, lambda jobs: condition_of(jobs["misspelt"], "ReconcileError") == "False")
    assert await taken_over.stopped("misspelt") == []
    await taken_over.end_pods("misspelt")
    await taken_over.state("misspelt", "Succeeded")
    assert await taken_over.uids_of("misspelt") == taken_over.uids["misspelt"]


@pytest.mark.parametrize("name", MISNAMED)
async def test_a_job_whose_name_our_crd_rejects_gets_a_status(taken_over, name):
    job = await taken_over.state(name, "Failed")
    assert MISNAMED[name] in job["status"]["conditions"][-1]["message"]
    annotated = await taken_over.api.merge(f"{JOBS}/{name}", {"metadata": {"annotations": {"a": "b"}}})
    assert annotated.code == 200, annotated.text
    refused = await taken_over.api.post(JOBS, submitted(gang(f"{name}x")))
    assert refused.code == 422
    assert MISNAMED[name] in refused.text


async def test_a_deleted_job_takes_along_what_the_other_operator_made(taken_over):
    (await taken_over.api.delete(f"{JOBS}/finished", {"propagationPolicy": "Background"})).ok()
    await taken_over.eventually(SERVICES, lambda services: not any(name.startswith("finished-") for name in services))


async def test_the_controller_had_nothing_to_complain_of(taken_over):
    assert taken_over.problems.messages == []
