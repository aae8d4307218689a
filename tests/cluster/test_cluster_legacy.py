"""The older kinds on a real Kubernetes: what installing them changes, and a job of each from creation to deletion."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from control_plane import control_plane
from control_plane_fixtures import real_api
from controller_fixtures import PODS, SERVICES, ControllerWorld
from deployment import MANIFESTS, Administrator, rendered, started, user_name
from fake_nodes import EXIT_CODE, NODES, fake_node
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix
from older_jobs import FORMATS, kind_of_format, older_job, pod_template
from waiting import SECONDS

from mxnet_operator.api.kinds import LEGACY
from mxnet_operator.client.resources import resource_of

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes]

OVERLAYS = MANIFESTS / "overlays"
LEGACY_CRDS = ("crd/mxjobs.fioravanzo.org", "crd/mxjobs.mxnet.mlkube.io")


@pytest.fixture(scope="module")
def server():
    """A control plane on which nothing of ours is installed yet."""
    paths = programs_or_skip(CONTROL_PLANE)
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name, control_plane(paths, Path(name), []) as running:
        yield running


@pytest.fixture
async def world(server):
    """The administrator's access, and a node on which KWOK runs pods."""
    async with real_api(server) as api:
        (await api.post(NODES, fake_node("node"))).ok()
        async with asyncio.timeout(SECONDS), api.watch(NODES, labelSelector="type=kwok") as events:
            while (await events.next())["object"]["spec"].get("taints") is not None:
                pass
        yield ControllerWorld(api, None, server.kubeconfig())


def sent_to(job_format):
    """Where a user's client sends a manifest of this format."""
    api_version, kind, _ = FORMATS[job_format]
    return f"/apis/{api_version}/namespaces/default/{kind.plural}"


def ending(job_format, name):
    """A job of the format whose pods succeed a moment after they started."""
    return older_job(job_format, name, pod_template(annotations={EXIT_CODE: "0"}))


async def a_life(world, job_format):
    """A job from its creation to its deletion; returns its last status."""
    kind, name = kind_of_format(job_format), f"of-{job_format}"
    job = await world.submit(ending(job_format, name), sent_to(job_format))
    path = resource_of(kind).path("default")

    def own(pods):
        return [pod for each, pod in pods.items() if each.startswith(f"{name}-")]

    for pod in own(await world.eventually(PODS, lambda pods: len(own(pods)) == 4)):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["uid"]) == (
            *(kind.api_version, kind.kind),
            job["metadata"]["uid"],
        )

    def has_ended(jobs):
        status = jobs.get(name, {}).get("status", {})
        return status.get("state") == "Succeeded" and status.get("phase") != "CleanUp"

    over = await world.eventually(path, has_ended)
    (await world.api.delete(f"{path}/{name}", {"propagationPolicy": "Background"})).ok()
    for children in (PODS, SERVICES):
        await world.eventually(children, lambda found: not own(found))
    return over[name]["status"]


async def test_with_the_overlay_plain_mxjobs_means_fioravanzos_and_a_running_controller_takes_the_new_kinds_up(
    server, world, tmp_path
):
    ask = Administrator(server)
    await ask("apply", "-k", OVERLAYS / "standalone")
    crds = ("crd/mxjobs.kubeflow.org", "crd/mxnetjobs.kubeflow.org")
    await ask.wait("condition=Established", *crds)
    objects = rendered("standalone")
    with started(server, objects, tmp_path):
        ours = await a_life(world, "v1")
        assert "phase" not in ours
        await world.submit(older_job("v1", "ours"), sent_to("v1"))
        await world.submit(older_job("mxnetjob", "proposed"), sent_to("mxnetjob"))
        assert await ask("get", "mxjobs", "-o", "name", cache="before") == "mxjob.kubeflow.org/ours\n"
        assert await ask("get", "mxj", "-o", "name", cache="before") == "mxjob.kubeflow.org/ours\n"

        await ask("apply", "-k", OVERLAYS / "legacy")
        await ask.wait("condition=Established", *LEGACY_CRDS)
        await world.submit(older_job("fioravanzo", "older"), sent_to("fioravanzo"))
        assert await ask("get", "mxjobs", "-o", "name", cache="after") == "mxjob.fioravanzo.org/older\n"
        assert await ask("get", "mxjob", "-o", "name", cache="after") == "mxjob.fioravanzo.org/older\n"
        assert await ask("get", "mxjobs.kubeflow.org", "-o", "name", cache="after") == "mxjob.kubeflow.org/ours\n"
        assert await ask("get", "mxj", "-o", "name", cache="after") == "mxjob.kubeflow.org/ours\n"
        everything = await ask("get", "mxnet", "-o", "name", cache="after")
        assert sorted(everything.split()) == [
            "mxjob.fioravanzo.org/older",
            "mxjob.kubeflow.org/ours",
            "mxnetjob.kubeflow.org/proposed",
        ]
        assert await ask("get", "mxjobs", "-o", "name", cache="before") == "mxjob.kubeflow.org/ours\n"
        await ask("api-resources", cache="before")
        assert await ask("get", "mxjobs", "-o", "name", cache="before") == "mxjob.fioravanzo.org/older\n"
        # The controller was started before the CRD was there.
        await world.eventually(PODS, lambda pods: "older-worker-1" in pods)

        for job_format in FORMATS:
            status = await a_life(world, job_format)
            assert status.get("form", "v1") == job_format
            if job_format in {"v1alpha1", "fioravanzo", "mlkube"}:
                assert (status["phase"], status["state"]) == ("Done", "Succeeded")
                assert all(entry["state"] == "Succeeded" for entry in status["replicaStatuses"][:1])
            elif job_format == "v1beta1":
                assert status["mxReplicaStatuses"] == status["replicaStatuses"]
        answers = [entry for entry in server.requests(user_name(objects)) if "objectRef" in entry]
        refused = {
            each["objectRef"].get("apiGroup") for each in answers if each["responseStatus"]["code"] in {401, 403}
        }
        # kubectl applies the CRDs a moment before the rights: who looks just then is refused, and looks again.
        assert refused <= {kind.group for kind in LEGACY}
