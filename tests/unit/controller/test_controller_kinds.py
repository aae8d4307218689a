"""The controller and the four kinds: each is run where its CRD is installed, and none is taken for another."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from controller_fixtures import JOBS, PODS, SERVICES, world
from older_jobs import FORMATS, kind_of_format, older_job

from mxnet_operator.api.crd import custom_resource_definition, definitions, legacy_definitions
from mxnet_operator.api.formats.fioravanzo import KIND as FIORAVANZO
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.client.resources import resource_of
from mxnet_operator.controller import controller
from mxnet_operator.controller.health import Health
from mxnet_operator.kube.discovery import is_served
from mxnet_operator.plan import Policy

NAMES = ["digits-scheduler-0", "digits-server-0", "digits-worker-0", "digits-worker-1"]


def path_of(kind):
    return resource_of(kind).path("default")


def created_at(job_format):
    """Where a user's client sends a manifest of this format."""
    api_version, kind, _ = FORMATS[job_format]
    return f"/apis/{api_version}/namespaces/default/{kind.plural}"


@asynccontextmanager
async def every_kind(folder, **options):
    async with world(folder, crds=definitions() + legacy_definitions(), **options) as w:
        yield w


async def has_state(world, kind, name, state):
    """The job, once its state is this one."""

    def there(jobs):
        return jobs.get(name, {}).get("status", {}).get("state") == state

    return (await world.eventually(path_of(kind), there))[name]


@pytest.mark.parametrize("job_format", FORMATS)
async def test_a_job_of_each_format_runs_to_its_end_owns_its_pods_and_takes_them_along(tmp_path, job_format):
    kind = kind_of_format(job_format)
    async with every_kind(tmp_path) as w:
        job = await w.submit(older_job(job_format, "digits"), created_at(job_format))
        pods = await w.pods(4)
        assert sorted(pods) == NAMES
        for pod in pods.values():
            (owner,) = pod["metadata"]["ownerReferences"]
            assert (owner["apiVersion"], owner["kind"]) == (kind.api_version, kind.kind)
            assert owner["uid"] == job["metadata"]["uid"]
        await w.run_to_success(pods)
        over = await has_state(w, kind, "digits", "Succeeded")
        assert over["status"].get("form", "v1") == job_format
        event = await w.event("MXJobSucceeded")
        assert event["involvedObject"].items() >= {"apiVersion": kind.api_version, "kind": kind.kind}.items()
        (await w.api.delete(f"{path_of(kind)}/digits", {"propagationPolicy": "Background"})).ok()
        await w.pods(0)
        await w.eventually(SERVICES, lambda services: not services)


def phase(jobs):
    return jobs.get("digits", {}).get("status", {}).get("phase")


async def test_the_last_phase_is_told_when_the_last_pod_is_gone(tmp_path):
    job = older_job("v1alpha1", "digits")
    job["spec"]["cleanupPodPolicy"] = "All"
    async with every_kind(tmp_path) as w:
        await w.submit(job, created_at("v1alpha1"))
        await w.move(await w.pods(4), "Running")
        keep = {"metadata": {"finalizers": ["test.mxjob/keeps"]}}
        (await w.api.merge(f"{PODS}/digits-worker-0", keep)).ok()
        await w.move(["digits-scheduler-0"], "Succeeded", exit_code=0)
        seen = await w.eventually(JOBS, lambda jobs: phase(jobs) == "CleanUp")
        assert seen["digits"]["status"]["state"] == "Succeeded"
        await w.pods(1)
        (await w.api.merge(f"{PODS}/digits-worker-0", {"metadata": {"finalizers": None}})).ok()
        await w.eventually(JOBS, lambda jobs: phase(jobs) == "Done")


async def test_of_two_kinds_jobs_of_one_name_the_second_says_that_its_names_are_taken(tmp_path):
    async with every_kind(tmp_path) as w:
        first = await w.submit(older_job("fioravanzo", "digits"), created_at("fioravanzo"))
        await w.pods(4)
        await has_state(w, FIORAVANZO, "digits", "Created")
        await w.submit(older_job("v1", "digits"), created_at("v1"))

        def refused(jobs):
            conditions = jobs.get("digits", {}).get("status", {}).get("conditions", ())
            return [c["message"] for c in conditions if (c["type"], c["status"]) == ("ReplicaFailure", "True")]

        (message,) = refused(await w.eventually(JOBS, refused))
        assert "exists already and does not belong to this job" in message
        pods = await w.pods(4)
        assert {p["metadata"]["ownerReferences"][0]["uid"] for p in pods.values()} == {first["metadata"]["uid"]}
        event = await w.event("FailedCreateService")
        assert event["involvedObject"]["apiVersion"] == MXJOB.api_version
        await w.run_to_success(pods)  # the first one's: it ends, and the second neither starts nor ends by them
        await has_state(w, FIORAVANZO, "digits", "Succeeded")
        (await w.api.delete(f"{path_of(FIORAVANZO)}/digits", {"propagationPolicy": "Background"})).ok()
        ours = await w.eventually(
            PODS, lambda found: len(found) == 4 and first["metadata"]["uid"] not in str(found.values())
        )
        await w.run_to_success(ours)
        await has_state(w, MXJOB, "digits", "Succeeded")


async def test_a_kind_whose_crd_is_absent_is_no_error_and_waited_for_by_nobody(tmp_path):
    async with world(tmp_path, crds=[custom_resource_definition()]) as w:
        assert {str(each.resource) for each in w.controller.reflectors} == {"mxjobs.kubeflow.org", "pods", "services"}
        assert await Health(w.controller, w.client).readiness() == ""
        await w.submit(older_job("v1", "digits"), created_at("v1"))
        await w.pods(4)


async def test_a_running_controller_takes_up_a_kind_whose_crd_is_installed_later(tmp_path, monkeypatch):
    asked, installed = asyncio.Event(), asyncio.Event()

    async def is_served_now(client, resource):
        if resource != resource_of(FIORAVANZO):
            return await is_served(client, resource)
        asked.set()
        return installed.is_set()

    monkeypatch.setattr(controller, "is_served", is_served_now)
    async with every_kind(tmp_path, start=False) as w:
        await w.start(discovery_interval=0.01)
        await w.submit(older_job("fioravanzo", "digits"), created_at("fioravanzo"))
        await asked.wait()
        assert await w.names(PODS) == []
        installed.set()
        await w.run_to_success(await w.pods(4))
        await has_state(w, FIORAVANZO, "digits", "Succeeded")


async def test_a_controller_of_one_namespace_runs_its_jobs_of_every_kind_and_no_others(tmp_path):
    async with every_kind(tmp_path, start=False) as w:
        (await w.api.post("/api/v1/namespaces", {"metadata": {"name": "mine"}})).ok()
        await w.start(namespaces=["mine"])
        for job_format in ("mlkube", "mxnetjob"):
            await w.submit(older_job(job_format, f"theirs-{job_format}"), created_at(job_format))
            mine = created_at(job_format).replace("default", "mine")
            await w.submit(older_job(job_format, f"ours-{job_format}"), mine)
        await w.eventually(PODS.replace("default", "mine"), lambda pods: len(pods) == 8)
        assert await w.names(PODS) == []


async def test_only_an_mxjob_gets_the_address_of_a_page(tmp_path):
    """The address names no kind, and jobs of two kinds may have one name."""
    policy = Policy(job_url_template="https://jobs.example.com/{namespace}/{name}")
    async with every_kind(tmp_path, start=False) as w:
        await w.start(policy=policy)
        for job_format in FORMATS:
            await w.submit(older_job(job_format, f"digits-{job_format}"), created_at(job_format))
        for job_format in FORMATS:
            kind = kind_of_format(job_format)
            job = await has_state(w, kind, f"digits-{job_format}", "Created")
            expected = f"https://jobs.example.com/default/digits-{job_format}" if kind is MXJOB else None
            assert job["status"].get("url") == expected


async def test_another_template_reaches_the_jobs_that_are_there_and_none_takes_the_address_away(tmp_path):
    def url(jobs):
        return jobs["digits"].get("status", {}).get("url")

    async with every_kind(tmp_path, start=False) as w:
        await w.start(policy=Policy(job_url_template="https://old.example.com/{name}"))
        await w.submit(older_job("v1", "digits"))
        await w.run_to_success(await w.pods(4))
        over = await has_state(w, MXJOB, "digits", "Succeeded")
        assert over["status"]["url"] == "https://old.example.com/digits"
        await w.stop()
        await w.start(policy=Policy(job_url_template="https://new.example.com/{name}"))
        await w.eventually(JOBS, lambda jobs: url(jobs) == "https://new.example.com/digits")
        await w.stop()
        await w.start()
        changed = await w.eventually(JOBS, lambda jobs: url(jobs) is None)
        expected = {key: value for key, value in over["status"].items() if key != "url"}
        assert changed["digits"]["status"] == expected
