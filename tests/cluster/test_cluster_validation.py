"""The Python twins of the CRD's rules say what the real server's CEL says, word for word, of generated manifests."""

import asyncio
import os
import random
import tempfile
from pathlib import Path

import pytest
from control_plane import control_plane
from control_plane_fixtures import real_api
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix

from mxnet_operator.api.crd import definitions, legacy_definitions
from mxnet_operator.api.formats import definition_of
from mxnet_operator.api.formats.fioravanzo import KIND as FIORAVANZO
from mxnet_operator.api.formats.mlkube import KIND as MLKUBE
from mxnet_operator.api.kinds import ALL, kind_of
from mxnet_operator.api.validation import validate

pytestmark = pytest.mark.kubernetes

COUNT = 400
AT_ONCE = 8
NAMES = ("digits", "1a", "a" * 50, "a" * 54, "a" * 60, "A", "a-", "a.b", "x")
GANGS = (("Worker",), ("Scheduler", "Server", "Worker"), ("TunerTracker", "TunerServer", "Tuner"))
OTHER_TYPES = ("scheduler", "worker", "Worker", "Scheduler", "Tuner", "Wroker")
REPLICAS = (0, 2, 10, -1, "two", 100_000)
UNCHECKED = "some validation rules were not checked"
RULE_MESSAGES = tuple(rule.message for kind in ALL for rule in definition_of(kind).rules)
VERSIONS = ("kubeflow.org/v1", "kubeflow.org/v1beta1", "kubeflow.org/v1alpha1")
LISTS = ("kubeflow.org/v1alpha1", FIORAVANZO.api_version, MLKUBE.api_version)
FOREIGN = {
    "cleanPodPolicy": "All",
    "cleanupPodPolicy": "All",
    "backoffLimit": 3,
    "runPolicy": {},
    "successPolicy": "AllWorkers",
    "terminationPolicy": {"chief": {"replicaName": "SERVER", "replicaIndex": 1}},
    "schedulerName": "x",
    "mxImage": "x",
    "RuntimeId": "aycw",
    "jobMode": "Dist",
}
"""Fields that some format has, and others refuse."""


@pytest.fixture(scope="module")
def server():
    """A control plane that serves every kind; those of the overlay `legacy` would change what others' kubectl says."""
    paths = programs_or_skip(CONTROL_PLANE)
    crds = definitions() + legacy_definitions()
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name, control_plane(paths, Path(name), crds) as running:
        yield running


@pytest.fixture
async def api(server):
    """Its administrator's access."""
    async with real_api(server) as real:
        yield real


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


def mixed(rng, spec):
    """The spec, now and then with a field of another format, or replicas in the way of another."""
    if rng.random() < 0.06:
        field = rng.choice(list(FOREIGN))
        spec[field] = FOREIGN[field]
    if rng.random() < 0.02:
        spec.setdefault("mxReplicaSpecs", {"Worker": replica_spec(rng)})
    if rng.random() < 0.02:
        spec.setdefault("replicaSpecs", [entry(rng, "WORKER")])
    return spec


def entry(rng, replica_type):
    """One entry of a list of replicas."""
    written = replica_spec(rng) | {"mxReplicaType": replica_type}
    if rng.random() < 0.9:
        written.pop("restartPolicy", None)
    if rng.random() < 0.05:
        del written["mxReplicaType"]
    if rng.random() < 0.08:
        written[rng.choice(["PsRootPort", "mxPort"])] = rng.choice([9000, 0])
    return written


def older(rng):
    """A job of an older format, or of a mixture."""
    which = rng.random()
    metadata = {"name": rng.choice(NAMES) if rng.random() < 0.1 else "digits"}
    if which < 0.3:
        return manifest(rng) | {
            "apiVersion": rng.choice(VERSIONS[:2]) if rng.random() < 0.9 else VERSIONS[2],
            "spec": mixed(rng, manifest(rng)["spec"]),
        }
    if which < 0.5:
        types = [each for each in ("scheduler", "server", "worker") if rng.random() > 0.1]
        types += ["Worker"] if rng.random() < 0.1 else []
        spec = mixed(rng, {"replicaSpecs": {each: replica_spec(rng) for each in types}})
        if isinstance(spec.get("mxReplicaSpecs"), dict):
            spec.pop("mxReplicaSpecs")
        return {"apiVersion": "kubeflow.org/v1alpha1", "kind": "MXNetJob", "metadata": metadata, "spec": spec}
    types = [each for each in ("SCHEDULER", "SERVER", "WORKER") if rng.random() > 0.04]
    if rng.random() < 0.1:
        types.append(rng.choice(["WORKER", "MASTER"]))
    version = rng.choice(LISTS)
    spec = {"replicaSpecs": [entry(rng, each) for each in types]}
    if version != FIORAVANZO.api_version and rng.random() < 0.9:
        spec["jobMode"] = "local" if rng.random() < 0.1 else "dist"
    if rng.random() < 0.2:
        spec["terminationPolicy"] = {"chief": {"replicaName": rng.choice(["", "WORKER", "SCHEDULER"])}}
    kind = "MxJob" if version == MLKUBE.api_version else "MXJob"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": mixed(rng, spec)}


async def refusals(api, namespace, job):
    """What the server has against a manifest, without its remark that it didn't look at everything."""
    kind = kind_of(job["apiVersion"], job["kind"])
    path = f"/apis/{job['apiVersion']}/namespaces/{namespace}/{kind.plural}"
    answer = await api.post(path, job, dryRun="All")
    if answer.code == 201:
        return []
    assert answer.code == 422, answer.text
    causes = [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]
    return sorted(cause for cause in causes if UNCHECKED not in cause)


def of_rules(messages):
    return [each for each in messages if any(message in each for message in RULE_MESSAGES)]


@pytest.mark.sampled
@pytest.mark.parametrize("generated", [manifest, older])
async def test_generated_manifests_are_judged_alike(api, namespace, generated):
    seed = int(os.environ.get("MXJOB_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MXJOB_TEST_SEED={seed}")
    rng = random.Random(seed)
    jobs = [generated(rng) for _ in range(COUNT)]
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
