"""How jobs end on a real Kubernetes: restartPolicy x exit code x which replica fails x cleanPodPolicy, all at once."""

from itertools import product

import pytest
import pytest_asyncio
from builders import make_mxjob
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import EVENTS, JOBS, PODS, SERVICES, ControllerWorld, RecordingClient, submitted
from fake_nodes import fake_node, fake_nodes, fated
from tiers import asked_for

from mxnet_operator.api.conditions import job_state
from mxnet_operator.kube.credentials import load_credentials

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="module")]

RETRYABLE, PERMANENT = (130, 134, 137, 138, 143), (1, 2, 3, 126, 127, 128, 139)
POLICIES = ("Never", "OnFailure", "Always", "ExitCode")
REPLICAS = (("Scheduler", 0), ("Server", 0), ("Worker", 1))
KEEP = ("None", "Running", "All")
PODS_OF_A_JOB = ("scheduler-0", "server-0", "worker-0", "worker-1")
DONE = {"exitCode": 0}
ROWS = {
    f"{policy}-{code}-{replica_type}-{index}-{keep}".lower(): (policy, code, replica_type, index, keep)
    for policy, code, (replica_type, index), keep in (
        *product(POLICIES, (1, 137), REPLICAS, KEEP),  # one code of either kind
        *(("ExitCode", code, ("Worker", 1), "None") for code in (*RETRYABLE, *PERMANENT)),
    )
}
"""The jobs by their names."""


def job(name):
    """A job one of whose replicas fails in its first attempt; the second ends well, but for a server that runs on."""
    policy, code, replica_type, index, keep = ROWS[name]
    succeeds = {(each, number, 1): DONE for each, number in (("Scheduler", 0), ("Worker", 0), ("Worker", 1))}
    fates = {(replica_type, index, 0): {"exitCode": code, "says": "lost the data"}, **succeeds}
    builder = fated(make_mxjob(name).scheduler().server().worker(2), fates, runs_for="2s")
    return submitted(builder.restart(policy).run_policy(cleanPodPolicy=keep))


def expected(name):
    """What the tables of docs say about the row: written down once more, from docs/semantics.md, not from the code."""
    policy, code, replica_type, index, keep = ROWS[name]
    label = f"{replica_type.lower()}-{index}"
    killed = " (killed: out of memory?)" if code == 137 else ""
    words = f"{label} exited with code {code}{killed}:\nlost the data"
    retried = policy in {"OnFailure", "Always"} or (policy == "ExitCode" and code in RETRYABLE)
    if retried:
        message, finished = f"MXJob {name} is successfully completed.", {"scheduler-0", "worker-0", "worker-1"}
        told = (
            f"mxjob {name} is restarting because 1 {replica_type} replica(s) failed (restart 1; 1 of 6 count). {words}"
        )
    else:
        message, finished = f"mxjob {name} is failed because 1 {replica_type} replica(s) failed. {words}", {label}
        told = message
    ended = dict.fromkeys(finished, "Succeeded" if retried else f"Failed {code}")
    stopped = {each: "Failed DeadlineExceeded" for each in PODS_OF_A_JOB if each not in finished}
    return {
        "state": "Succeeded" if retried else "Failed",
        "message": message,
        "restarts": (1, 1) if retried else (0, 0),
        "told": told,
        "pods": {"None": ended | stopped, "Running": ended, "All": {}}[keep],
        "services": ["mx", "scheduler-0"] if keep == "None" else [],
    }


def phase(pod):
    """How a pod ended, in a word or two."""
    status = pod["status"]
    code = status.get("containerStatuses", [{}])[0].get("state", {}).get("terminated", {}).get("exitCode")
    return " ".join(filter(None, (status["phase"], status.get("reason") or (str(code) if code else ""))))


async def seen(world):
    """All jobs as `expected` describes them."""
    jobs, pods, services, events = [
        (await world.api.get(world.path(path))).ok()["items"] for path in (JOBS, PODS, SERVICES, EVENTS)
    ]
    told = {
        event["involvedObject"]["name"]: event["message"]
        for event in events
        if event["reason"] in {"MXJobRestarting", "MXJobFailed"}
    }
    found = {}
    for each in jobs:
        name, status = each["metadata"]["name"], each["status"]
        found[name] = {
            "state": status["state"],
            "message": status["conditions"][-1]["message"],
            "restarts": (status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)),
            "told": told.get(name),
            "pods": {p["metadata"]["name"].removeprefix(f"{name}-"): phase(p) for p in of_job(name, pods)},
            "services": sorted(s["metadata"]["name"].removeprefix(f"{name}-") for s in of_job(name, services)),
        }
    return found


def of_job(name, objects):
    return [each for each in objects if each["metadata"]["ownerReferences"][0]["name"] == name]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(request, kubernetes):
    """What became of the job of each row that is tested."""
    rows = asked_for(request, "name")
    kubeconfig = kubernetes.kubeconfig("controller")
    async with (
        real_api(kubernetes) as api,
        new_namespace(api, accounts=True) as namespace,
        fake_nodes(api, fake_node("large", cpu="9999", pods="9999")),
        RecordingClient(load_credentials(str(kubeconfig))) as client,
    ):
        world = ControllerWorld(api, client, kubeconfig, namespace)
        await world.start()
        for name in rows:
            await world.submit(job(name))
        await world.eventually(JOBS, lambda jobs: len(jobs) == len(rows) and all(map(is_over, jobs.values())))
        left = sum(len(expected(name)["pods"]) for name in rows)
        await world.eventually(PODS, lambda pods: len(pods) == left and not any(map(is_on_its_way, pods.values())))
        services = sum(len(expected(name)["services"]) for name in rows)
        await world.eventually(SERVICES, lambda found: len(found) == services)
        yield await seen(world)
        await world.stop()


def is_over(job):
    return job_state(job) in {"Succeeded", "Failed"}


def is_on_its_way(pod):
    return pod["status"]["phase"] in {"Pending", "Running"} or "deletionTimestamp" in pod["metadata"]


@pytest.mark.sampled(
    "never-1-scheduler-0-none",
    "onfailure-137-worker-1-running",
    "always-1-server-0-all",
    "exitcode-143-worker-1-none",
    "exitcode-127-worker-1-none",
)
@pytest.mark.parametrize("name", ROWS)
async def test_a_job_ends_as_the_tables_say(outcomes, name):
    assert outcomes[name] == expected(name)
