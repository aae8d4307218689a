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

pytestmark = pytest.mark.kubernetes

COUNT = int(os.environ.get("MXJOB_CONFORMANCE_MANIFESTS", "150"))
AT_ONCE = 8
VALUE = r"(Invalid|Unsupported) value: .*?: (?=spec|supported|did you mean)"
"""Long and odd texts are quoted otherwise in Go."""
UNCHECKED = "some validation rules were not checked"


@pytest.fixture
async def servers(kubernetes, tmp_path):
    """Both servers, and a namespace that both have."""
    async with (
        real_api(kubernetes) as real,
        running_server(tmp_path) as local,
        new_namespace(real, settled=True) as name,
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


async def test_both_servers_judge_mutated_manifests_alike(servers):
    local, real, namespace = servers
    seed = int(os.environ.get("MXJOB_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MXJOB_TEST_SEED={seed}")
    rng, free = random.Random(seed), asyncio.Semaphore(AT_ONCE)
    manifests = seeds()
    mutants = [mutate(rng, rng.choice(manifests)) for _ in range(COUNT)]

    async def posted(body):
        async with free:
            body = body | {"metadata": {**body["metadata"], "namespace": namespace}}
            where = f"/apis/kubeflow.org/v1/namespaces/{namespace}/mxjobs"
            return [await api.post(where, body, dryRun="All") for api in (local, real)]

    jobs = await asyncio.gather(*(posted(each) for each, _ in mutants))
    otherwise = []
    for (_, said), (ours, theirs) in zip(mutants, jobs, strict=True):
        if (ours.code < 300) != (theirs.code < 300) or not words(ours) <= words(theirs):
            otherwise.append(f"{said}\nours: {ours.code} {words(ours)}\ntheirs: {theirs.code} {words(theirs)}")
    assert not otherwise, f"seed {seed}: {len(otherwise)}\n" + "\n".join(otherwise)
    rejected = COUNT - sum(answer.code < 300 for _, answer in jobs)
    assert COUNT / 4 < rejected < COUNT
