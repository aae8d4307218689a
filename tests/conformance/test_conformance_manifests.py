"""Manifests with mistakes at any path, on both servers: taken or rejected alike, and in the same words where both look.

`MXJOB_TEST_SEED` runs a seed again, `MXJOB_CONFORMANCE_MANIFESTS` sets how many there are.
"""

import asyncio
import os
import random
import re

import pytest
from apiserver_fixtures import running_server
from control_plane_fixtures import new_namespace, real_api
from manifest_mutations import mutate, seeds

from mxnet_operator.api import job_formats
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.validation import decode, without_nulls
from mxnet_operator.builders import build_pod
from mxnet_operator.plan import RejectedCreation

pytestmark = pytest.mark.kubernetes

COUNT = int(os.environ.get("MXJOB_CONFORMANCE_MANIFESTS", "150"))
AT_ONCE = 8
VALUE = r"(Invalid|Unsupported) value: .*?: (?=spec|supported)"
"""Long and odd texts are quoted otherwise in Go."""
UNCHECKED = "some validation rules were not checked"


@pytest.fixture
async def servers(kubernetes, tmp_path):
    """Both servers, and a namespace that both have."""
    async with (
        real_api(kubernetes) as real,
        running_server(tmp_path) as local,
        new_namespace(real, accounts=True) as name,
    ):
        (await local.api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
        yield local.api, real, name


def words(answer):
    """What a server has against an object, cause by cause."""
    if answer.code < 300:
        return set()
    causes = (answer.body.get("details") or {}).get("causes") or [{"message": answer.body["message"]}]
    told = (f"{c.get('field', '')}: {c['message']}" for c in causes if UNCHECKED not in c["message"])
    return {re.sub(VALUE, r"\1 value: ", each, flags=re.DOTALL) for each in told}


async def test_both_servers_judge_mutated_manifests_and_their_pods_alike(servers):
    local, real, namespace = servers
    seed = int(os.environ.get("MXJOB_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MXJOB_TEST_SEED={seed}")
    rng, free = random.Random(seed), asyncio.Semaphore(AT_ONCE)
    manifests = seeds()
    mutants = [mutate(rng, rng.choice(manifests)) for _ in range(COUNT)]

    async def posted(path, body):
        async with free:
            body = body | {"metadata": {**body["metadata"], "namespace": namespace}}
            where = path.format(namespace)
            return [await api.post(where, body, dryRun="All") for api in (local, real)]

    jobs = await asyncio.gather(*(posted("/apis/kubeflow.org/v1/namespaces/{}/mxjobs", each) for each, _ in mutants))
    taken, otherwise = [], []
    for (mutant, said), (ours, theirs) in zip(mutants, jobs, strict=True):
        if (ours.code < 300) != (theirs.code < 300) or not words(ours) <= words(theirs):
            otherwise.append(f"{said}\nours: {ours.code} {words(ours)}\ntheirs: {theirs.code} {words(theirs)}")
        if ours.code < 300 and not job_formats.errors(mutant):
            taken.append((said, pod_of(mutant)))
    pods = await asyncio.gather(*(posted("/api/v1/namespaces/{}/pods", pod) for _, pod in taken))
    ended = 0
    for (said, _), (ours, theirs) in zip(taken, pods, strict=True):
        what = f"pod of {said}\nours: {ours.code} {words(ours)}\ntheirs: {theirs.code} {words(theirs)}"
        if ours.code >= 300 and theirs.code < 300:
            otherwise.append(what)
        if theirs.code >= 300:
            refusal = {"reason": theirs.body["reason"], "message": theirs.body["message"]}
            assert RejectedCreation(kind="Pod", name="p", code=theirs.code, **refusal).is_final, what
            ended += 1
    assert not otherwise, f"seed {seed}: {len(otherwise)}\n" + "\n".join(otherwise)
    rejected = COUNT - sum(answer.code < 300 for _, answer in jobs)
    print(f"{COUNT} manifests: {rejected} rejected, pods of {ended} more, {len(taken) - ended} run")
    assert COUNT / 4 < rejected < COUNT
    assert len(taken) - ended > COUNT / 20


def pod_of(manifest):
    """The first pod that the controller would create for it."""
    named = manifest | {"metadata": {**manifest["metadata"], "uid": "5a4e6e3c-1b0f-4c57-9d4e-0a9c2f6f0001"}}
    job = with_defaults(decode(job_formats.to_v1(without_nulls(named))))
    replica_type = next(kind for kind, spec in job.spec.mx_replica_specs.items() if spec.replicas)
    return build_pod(job, replica_type, 0, 0)
