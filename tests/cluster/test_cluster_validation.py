"""The Python twins of the CRD's rules say what the real server's CEL says, word for word, of generated manifests."""

import asyncio
import os
import random

import pytest
from apiserver_objects import JOBS

from mxnet_operator.api.rules import RULES
from mxnet_operator.api.validation import validate

pytestmark = pytest.mark.kubernetes

COUNT = 400
AT_ONCE = 8
NAMES = ("digits", "1a", "a" * 50, "a" * 54, "a" * 60, "A", "a-", "a.b", "x")
GANGS = (("Worker",), ("Scheduler", "Server", "Worker"), ("TunerTracker", "TunerServer", "Tuner"))
OTHER_TYPES = ("scheduler", "worker", "Worker", "Scheduler", "Tuner", "Wroker")
REPLICAS = (0, 2, 10, -1, "two", 100_000)
UNCHECKED = "some validation rules were not checked"
RULE_MESSAGES = tuple(f"Invalid value: {rule.message}" for rule in RULES)


def replica_spec(rng):
    container = {"name": "main" if rng.random() < 0.05 else "mxnet", "image": "x"}
    spec = {"template": {"spec": {"containers": [] if rng.random() < 0.02 else [container]}}}
    if rng.random() < 0.5:
        spec["replicas"] = rng.choice(REPLICAS) if rng.random() < 0.2 else 1
    if rng.random() < 0.1:
        spec["restartPolicy"] = rng.choice(["Never", "ExitCode", "Sometimes", ""])
    if rng.random() < 0.02:
        del spec["template"]
    return spec


def manifest(rng):
    """An MXJob that may have any of the mistakes that people make, or none."""
    types = [each for each in rng.choice(GANGS) if rng.random() > 0.1]
    if rng.random() < 0.1:
        types.append(rng.choice(OTHER_TYPES))
    mode = "MXTune" if "Tuner" in types else "MXTrain"
    spec = {"jobMode": rng.choice(["MXTrain", "MXTune", "Other"]) if rng.random() < 0.1 else mode}
    spec["mxReplicaSpecs"] = {each: replica_spec(rng) for each in types}
    if rng.random() < 0.1:
        spec["runPolicy"] = {
            "cleanPodPolicy": rng.choice(["All", "none", ""]),
            "backoffLimit": rng.choice([1, -1]),
            "exitCodes": {"retryable": [rng.choice([1, 300])]},
        }
    if rng.random() < 0.1:
        spec["successPolicy"] = rng.choice(["", "AllWorkers", "Most"])
    if rng.random() < 0.02:
        del spec["jobMode"]
    name = rng.choice(NAMES) if rng.random() < 0.2 else "digits"
    return {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name}, "spec": spec}


async def refusals(api, namespace, job):
    """What the server has against a manifest, without its remark that it didn't look at everything."""
    answer = await api.post(JOBS.format(namespace), job, dryRun="All")
    if answer.code == 201:
        return []
    assert answer.code == 422, answer.text
    causes = [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]
    return sorted(cause for cause in causes if UNCHECKED not in cause)


def of_rules(messages):
    return [each for each in messages if each.endswith(RULE_MESSAGES)]


async def test_generated_manifests_are_judged_alike(api, namespace):
    seed = int(os.environ.get("MXJOB_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MXJOB_TEST_SEED={seed}")
    rng = random.Random(seed)
    jobs = [manifest(rng) for _ in range(COUNT)]
    free = asyncio.Semaphore(AT_ONCE)

    async def judged(job):
        async with free:
            return await refusals(api, namespace, job)

    refused = 0
    for job, theirs in zip(jobs, await asyncio.gather(*map(judged, jobs)), strict=True):
        ours = sorted(error.message for error in validate(job))
        what = f"seed {seed}: {job}\nours: {ours}\ntheirs: {theirs}"
        assert bool(ours) == bool(theirs), what
        if of_rules(ours):
            assert of_rules(ours) == of_rules(theirs), what
        assert set(ours) <= set(theirs), what
        refused += bool(theirs)
    print(f"{refused} of {COUNT} refused")
    assert COUNT / 4 < refused < COUNT * 3 / 4
