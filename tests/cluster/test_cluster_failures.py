"""How jobs end on a real Kubernetes: restartPolicy x exit code x which replica fails x cleanPodPolicy, all at once."""

from itertools import product

import pytest
from builders import make_mxjob
from controller_fixtures import EVENTS, JOBS, PODS, SERVICES, submitted
from fake_nodes import fake_node, fake_nodes, fated

from mxnet_operator.api.conditions import job_state

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes]

RETRYABLE, PERMANENT = (130, 134, 137, 138, 143), (1, 2, 3, 126, 127, 128, 139)
POLICIES = ("Never", "OnFailure", "Always", "ExitCode")
REPLICAS = (("Scheduler", 0), ("Server", 0), ("Worker", 1))
KEEP = ("None", "Running", "All")
PODS_OF_A_JOB = ("scheduler-0", "server-0", "worker-0", "worker-1")
DONE = {"exitCode": 0}
NUMBERED = product(enumerate(POLICIES), enumerate((1, 137)), enumerate(REPLICAS))
"""Each policy, one code of either kind, each replica; the cleanPodPolicies take turns, and meet each of these."""
ROWS = {
    f"{policy}-{code}-{replica_type}-{index}-{keep}".lower(): (policy, code, replica_type, index, keep)
    for policy, code, (replica_type, index), keep in (
        *((policy, code, replica, KEEP[(a + b + c) % 3]) for (a, policy), (b, code), (c, replica) in NUMBERED),
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
    told = {event["involvedObject"]["name"]: event["message"] for event in events if is_end(event)}
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


def is_end(event):
    return event["reason"] in {"MXJobRestarting", "MXJobFailed"}


def is_over(job):
    return job_state(job) in {"Succeeded", "Failed"}


def is_on_its_way(pod):
    return pod["status"]["phase"] in {"Pending", "Running"} or "deletionTimestamp" in pod["metadata"]


async def test_a_job_ends_as_the_tables_say(world, api):
    async with fake_nodes(api, fake_node("large", cpu="9999", pods="9999")):
        for name in ROWS:
            await world.submit(job(name))
        await world.eventually(JOBS, lambda jobs: len(jobs) == len(ROWS) and all(map(is_over, jobs.values())))
        left = sum(len(expected(name)["pods"]) for name in ROWS)
        await world.eventually(PODS, lambda pods: len(pods) == left and not any(map(is_on_its_way, pods.values())))
        services = sum(len(expected(name)["services"]) for name in ROWS)
        await world.eventually(SERVICES, lambda found: len(found) == services)
        await world.eventually(EVENTS, lambda events: sum(map(is_end, events.values())) >= len(ROWS))
        found = await seen(world)
    wrong = {name: (found[name], told) for name in ROWS if found[name] != (told := expected(name))}
    assert wrong == {}
