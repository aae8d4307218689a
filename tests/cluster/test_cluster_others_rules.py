"""A job among others' rules: default and maximum resources, pod security, webhooks that change pods, other managers."""

import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import trustme
from aiohttp import web
from controller_fixtures import JOBS, PODS, gang

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes]

APPLY = "application/apply-patch+yaml"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
LIMITS = "/api/v1/namespaces/default/limitranges"
CONTAINER = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
POD = {"securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}}
SIDECAR = {"name": "proxy", "image": "mesh:1", **CONTAINER}
INIT = {"name": "mesh-init", "image": "mesh:1", **CONTAINER}


@contextlib.asynccontextmanager
async def webhook(world) -> AsyncIterator[None]:
    """Give each pod a sidecar before its container, an init container, and its image from another registry."""
    authority, seen = trustme.CA(), []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)

    async def mutate(request: web.Request) -> web.Response:
        review = (await request.json())["request"]
        spec = review["object"]["spec"]
        seen.append(review["uid"])
        patch = [
            {"op": "replace", "path": "/spec/containers/0/image", "value": f"mirror/{spec['containers'][0]['image']}"},
            {"op": "add", "path": "/spec/containers/0", "value": SIDECAR},
            {"op": "add", "path": "/spec/initContainers", "value": [INIT, *spec.get("initContainers", [])]},
        ]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        answer = {"uid": review["uid"], "allowed": True, "patchType": "JSONPatch", "patch": encoded}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    app = web.Application()
    app.router.add_post("/", mutate)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    name = f"mesh-{world.namespace}"
    hook = {
        "name": "mesh.example.com",
        "clientConfig": {
            "url": f"https://127.0.0.1:{runner.addresses[0][1]}/",
            "caBundle": base64.b64encode(authority.cert_pem.bytes()).decode(),
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    try:
        (await world.api.post(WEBHOOKS, {"metadata": {"name": name}, "webhooks": [hook]})).ok()
        probe = {"metadata": {"generateName": "probe-"}, "spec": {**POD, "containers": [{**SIDECAR, "name": "a"}]}}
        while not seen:  # the API server learns of a webhook a moment later
            (await world.api.post(world.path(PODS), probe, dryRun="All")).ok()
        yield
    finally:
        await world.api.delete(f"{WEBHOOKS}/{name}")
        await runner.cleanup()


def secure(name, **container):
    """A gang whose templates a namespace of restricted pods takes."""
    job = gang(name)
    del job["metadata"]["namespace"]
    for replica in job["spec"]["mxReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec |= POD
        spec["containers"][0] |= CONTAINER | {"command": ["python", "train.py"]} | container
    return job


def beside_a_sidecar():
    """The status of a pod whose program has ended well, and whose sidecar runs on."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    states = {"proxy": {"running": {"startedAt": now}}, "mxnet": ended}
    common = {"image": "i", "imageID": "", "ready": True, "restartCount": 0}
    return {"containerStatuses": [{"name": name, "state": state, **common} for name, state in states.items()]}


async def test_a_job_runs_as_its_users_want_it_where_others_change_and_limit_its_pods(world):
    async def apply(manager, job):
        path = f"{world.path(JOBS)}/{job['metadata']['name']}"
        return (await world.api.ask("PATCH", path, job, content_type=APPLY, fieldManager=manager)).ok()

    async def of_restricted_pods():
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        (await world.api.merge(f"/api/v1/namespaces/{world.namespace}", {"metadata": {"labels": labels}})).ok()

    limit = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "50m"}, "max": {"cpu": "2"}}
    (await world.api.post(world.path(LIMITS), {"metadata": {"name": "few"}, "spec": {"limits": [limit]}})).ok()
    await of_restricted_pods()
    job = secure("digits")
    async with webhook(world):
        await apply("pipeline", job)
        pods = await world.pods(5)
        for pod in pods.values():
            names = [each["name"] for each in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])]
            assert names[:3] == ["mesh-init", "proxy", "mxnet"]
            main = pod["spec"]["containers"][1]
            assert main["image"].startswith("mirror/")
            assert main["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "50m"}}
        await world.move(pods, "Running")
        await world.state("digits", "Running")

        head = {key: job[key] for key in ("apiVersion", "kind", "metadata")}
        await apply("administrator", {**head, "spec": {"runPolicy": {"suspend": True}}})
        await world.emptied(PODS)
        await world.state("digits", "Suspended")
        assert (await apply("pipeline", job))["spec"]["runPolicy"]["suspend"] is True
        await apply("administrator", head)
        pods = await world.pods(5)
    await world.move(pods, "Running")
    for name in pods:
        answer = await world.api.merge(world.path(f"{PODS}/{name}/status"), {"status": beside_a_sidecar()})
        assert answer.code in (200, 404), "or the job has succeeded, and is cleaned up"
    await world.state("digits", "Succeeded")

    for name, refused, words in (
        ("big", secure("big", resources={"limits": {"cpu": "4"}}), "maximum cpu usage per Container is 2"),
        ("root", secure("root", securityContext={}), 'violates PodSecurity "restricted'),
    ):
        await world.submit(refused)

        def reports(found, name=name, words=words):
            conditions = found[name].get("status", {}).get("conditions", ())
            return any(each["type"] == "ReplicaFailure" and words in each["message"] for each in conditions)

        await world.eventually(JOBS, reports)
