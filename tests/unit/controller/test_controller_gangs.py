"""What each gang scheduler's objects look like, and that the controller makes them before the pods."""

import asyncio
import itertools
from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, gang, world
from waiting import MOMENT, until

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.controller import discovery as discovery_module
from mxnet_operator.integrations.child_kinds import StoredChild
from mxnet_operator.integrations.gangs import (
    Gangs,
    backends_of,
    child_kinds,
    coscheduling,
    retry,
)
from mxnet_operator.integrations.gangs.backend import GangBackend, group_metadata
from mxnet_operator.integrations.gangs.gang import (
    PODGROUPS,
    UNIQUE_PODGROUPS,
    gang_of,
    unique_group_name,
)
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, InvalidAnswerError
from mxnet_operator.kube.resources import CONFIGMAPS, LEASES

GPU = {"limits": {"nvidia.com/gpu": "1"}}
LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def job(**policy):
    policy = {"priorityClass": "high", "queue": "fast", **policy}
    builder = make_mxjob().scheduler().worker(7, resources=GPU).run_policy(schedulingPolicy=policy)
    return with_defaults(builder.obj())


def objects(backend, of=None):
    """The specs of the objects of a job, by kind; what all have in common is checked here."""
    of = of or job()
    manifests = backend.objects(of, gang_of(of))
    assert [kind.build(of, None, True) for kind in child_kinds(backend)] == list(manifests)
    name = unique_group_name(of) if backend.rule is UNIQUE_PODGROUPS else "digits"
    for manifest, resource in zip(manifests, backend.resources, strict=True):
        assert manifest["apiVersion"] == f"{resource.group}/{resource.version}"
        assert manifest["metadata"]["name"] == name
        assert manifest["metadata"]["labels"][names.LABEL_OPERATOR_NAME] == names.OPERATOR_NAME
        assert [owner["uid"] for owner in manifest["metadata"]["ownerReferences"]] == ["uid-of-digits"]
    return {manifest["kind"]: manifest["spec"] for manifest in manifests}


def decorated(backend, of=None):
    of = of or job()
    return backend.decorate(of, gang_of(of), build_pod(of, "Worker", 1, 0))


def native(version):
    return next(each for each in backends_of("native") if each.resources[0].version == version)


def test_the_native_objects_of_1_36_name_the_size_the_template_and_that_whole_gangs_go():
    found = objects(native("v1alpha2"))
    assert found["Workload"] == {
        "controllerRef": {"apiGroup": "kubeflow.org", "kind": "MXJob", "name": "digits"},
        "podGroupTemplates": [{"name": "all", "schedulingPolicy": {"gang": {"minCount": 8}}}],
    }
    assert found["PodGroup"] == {
        "podGroupTemplateRef": {"workload": {"workloadName": "digits", "podGroupTemplateName": "all"}},
        "schedulingPolicy": {"gang": {"minCount": 8}},
        "disruptionMode": "PodGroup",
        "priorityClassName": "high",
    }
    pod = decorated(native("v1alpha2"))
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "digits"}
    assert pod["spec"]["priorityClassName"] == "high"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_those_of_1_37_say_the_same_in_its_words(version):
    group = objects(native(version))["PodGroup"]
    assert group["workloadRef"] == {"workloadName": "digits", "templateName": "all"}
    assert group["disruptionMode"] == {"all": {}}


def test_the_newest_native_version_goes_first_and_coscheduling_after_all_of_them():
    versions = [each.resources[-1].version for each in backends_of("auto")]
    assert versions == ["v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"]
    assert backends_of("auto")[-1].rule is UNIQUE_PODGROUPS


def test_a_group_of_scheduler_plugins_waits_ten_seconds_per_attempt_and_has_resources_only_if_asked_for():
    (backend,) = backends_of("coscheduling")
    assert objects(backend)["PodGroup"] == {"minMember": 8, "scheduleTimeoutSeconds": 10}
    asked = objects(backend, job(minResources={"nvidia.com/gpu": 7}))["PodGroup"]
    assert asked["minResources"] == {"nvidia.com/gpu": "7"}
    assert objects(backend, job(scheduleTimeoutSeconds=3))["PodGroup"]["scheduleTimeoutSeconds"] == 3
    pod = decorated(backend)
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == unique_group_name(job())
    assert "schedulerName" not in pod["spec"]


def test_pods_get_the_schedulers_name_where_their_template_has_none():
    (backend,) = backends_of("coscheduling", "scheduler-plugins-scheduler")
    assert decorated(backend)["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    own = with_defaults(make_mxjob().worker(2).template("Worker", schedulerName="mine").obj())
    assert decorated(backend, own)["spec"]["schedulerName"] == "mine"


def test_a_volcano_group_has_a_queue_and_its_pods_wait_for_it():
    (backend,) = backends_of("volcano")
    assert objects(backend)["PodGroup"] == {
        "minMember": 8,
        "queue": "fast",
        "priorityClassName": "high",
        "minResources": {"nvidia.com/gpu": "7"},
    }
    pod = decorated(backend)
    assert pod["spec"]["schedulerName"] == "volcano"
    annotations = pod["metadata"]["annotations"]
    assert (annotations["scheduling.k8s.io/group-name"], annotations["volcano.sh/task-spec"]) == ("digits", "worker")
    phases = {phase: backend.ready_for_pods({"status": {"phase": phase}}) for phase in ("", "Pending", "Inqueue")}
    assert phases == {"": False, "Pending": False, "Inqueue": True}
    assert not backend.ready_for_pods({})


def test_what_the_server_dropped_is_said_where_the_job_asked_for_it():
    backend = native("v1alpha2")
    stored = stored_child("PodGroup", disruptionMode="Pod")
    assert "dropped priorityClassName high" in backend.dropped(job(), gang_of(job()), stored)
    plain = with_defaults(make_mxjob().worker(2).obj())
    assert backend.dropped(plain, gang_of(plain), stored) == ""
    assert "placed one by one" in backend.dropped_of_pod(stored_child("Pod"))
    assert backend.dropped_of_pod(stored_child("Pod", schedulingGroup={"podGroupName": "digits"})) == ""


def stored_child(kind, **spec):
    metadata = {"name": "digits-worker-0", "uid": "u", "resourceVersion": "7"}
    return msgspec.json.decode(
        msgspec.json.encode({"kind": kind, "metadata": metadata, "spec": spec}), type=StoredChild
    )


def group_as_stored(backend, **status):
    of = job()
    manifest = backend.objects(of, gang_of(of))[-1]
    manifest["metadata"] |= {"uid": "g", "finalizers": ["podgroup-protection"]}
    raw = msgspec.Raw(msgspec.json.encode({**manifest, "status": status}))
    return child_kinds(backend)[-1].project(raw).view


def test_a_group_is_read_with_what_it_was_made_from_and_what_its_scheduler_says():
    condition = {"type": "PodGroupScheduled", "status": "False", "message": "pod group is unschedulable"}
    view = group_as_stored(native("v1alpha2"), conditions=[condition])
    assert view.says == "pod group is unschedulable"
    assert view.finalizers == ("podgroup-protection",)
    assert view.fingerprint
    unschedulable = {"type": "Unschedulable", "status": "True", "message": "3/8 tasks in gang unschedulable"}
    view = group_as_stored(backends_of("volcano")[0], phase="Pending", conditions=[unschedulable])
    assert (view.ready, view.says) == (False, "3/8 tasks in gang unschedulable")


def stand_in(rule=PODGROUPS):
    """A gang scheduler whose groups are Leases, which every API server has; as for the rest it is coscheduling."""

    def lease(of, gang):
        name = unique_group_name(of) if rule is UNIQUE_PODGROUPS else ""
        return ({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": group_metadata(of, gang, name)},)

    decorate = coscheduling.backend().decorate
    return GangBackend(resources=(LEASES,), objects=lease, decorate=decorate, rule=rule)


@pytest.fixture
def served(monkeypatch):
    """Whether the server is said to serve groups; an error where it doesn't say, or what it says one after another."""
    asked, whether = discovery_module.is_served, {"groups": True, "asked": 0}

    async def answer(client, resource):
        if resource != LEASES:
            return await asked(client, resource)
        whether["asked"] += 1
        says = next(whether["groups"]) if isinstance(whether["groups"], Iterator) else whether["groups"]
        if isinstance(says, Exception):
            raise says
        return says

    monkeypatch.setattr(discovery_module, "is_served", answer)
    return whether


async def test_the_first_job_that_is_looked_at_gets_its_group_before_its_pods(tmp_path, served):
    async with world(tmp_path, start=False) as w:
        await w.submit(gang())
        await w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02)
        pods = await w.pods(5)
        created = [path.rsplit("/", 1)[1] for method, path in w.writes if method == "POST"]
        assert created.index("leases") < created.index("pods")
        assert all(coscheduling.LABEL in pod["metadata"]["labels"] for pod in pods.values())


async def test_jobs_run_without_groups_once_none_is_known_to_be_served_and_get_them_later(tmp_path, served):
    served["groups"] = False
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02)
        await w.submit(gang("before"))
        assert not any(coscheduling.LABEL in pod["metadata"]["labels"] for pod in (await w.pods(5)).values())
        served["groups"] = True
        await w.eventually(LEASES_PATH, lambda groups: "before" in groups)
        await w.submit(gang("after"))
        after = {name: pod for name, pod in (await w.pods(10)).items() if name.startswith("after-")}
        assert all(coscheduling.LABEL in pod["metadata"]["labels"] for pod in after.values())


async def test_no_job_is_looked_at_before_the_server_says_what_it_serves(tmp_path, served, monkeypatch):
    monkeypatch.setattr(discovery_module, "_ASK_AGAIN", 0.01)
    monkeypatch.setattr(discovery_module, "SYNC_SECONDS", 0.01)
    served["groups"] = ApiUnavailable("connection refused")
    async with world(tmp_path, start=False) as w:
        starting = asyncio.create_task(w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02))
        async with asyncio.timeout(MOMENT):
            await until(lambda: served["asked"] > 3)
        assert not w.controller.synced.is_set()
        served["groups"] = False
        await starting


@pytest.mark.parametrize(
    "answer",
    [ApiError(403, "Forbidden", "may not look"), InvalidAnswerError("a page that says may not look")],
    ids=["403", "a proxy's page"],
)
async def test_a_server_that_never_says_what_it_serves_has_jobs_run_without_groups_until_it_does(
    tmp_path, served, monkeypatch, caplog, answer
):
    monkeypatch.setattr(discovery_module, "_ASK_AGAIN", 0.01)
    monkeypatch.setattr(discovery_module, "SYNC_SECONDS", 0.1)
    served["groups"] = answer
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02)
        warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert [each for each in warnings if "jobs go without" in each and "may not look" in each]
        await w.submit(gang("before"))
        assert not any(coscheduling.LABEL in pod["metadata"]["labels"] for pod in (await w.pods(5)).values())
        served["groups"] = True
        await w.eventually(LEASES_PATH, lambda groups: "before" in groups)


async def test_a_gang_scheduler_is_believed_to_be_gone_at_the_second_answer_in_a_row(tmp_path, served, caplog):
    def is_gone():
        return any("are no longer served" in each.getMessage() for each in caplog.records)

    caplog.set_level("INFO")
    served["groups"] = itertools.cycle([True, False])
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02)
        async with asyncio.timeout(MOMENT):
            await until(lambda: served["asked"] > 6)
            assert not is_gone()
            served["groups"] = False
            await until(is_gone)


async def test_one_whose_groups_may_not_be_listed_does_not_keep_the_next_one_from_being_used(
    tmp_path, served, monkeypatch
):
    async with world(tmp_path, start=False) as w:
        ask = w.client.get

        async def forbidden(path, *args, **kwargs):
            if path.endswith("/configmaps"):
                raise ApiError(403, "Forbidden", "configmaps is forbidden")
            return await ask(path, *args, **kwargs)

        monkeypatch.setattr(w.client, "get", forbidden)
        first = msgspec.structs.replace(stand_in(), resources=(CONFIGMAPS,))
        await w.start(integrations=[Gangs((first, stand_in()))], discovery_interval=0.02)
        await w.submit(gang())
        await w.pods(5)
        assert "digits" in await w.names(LEASES_PATH)


async def test_the_group_of_a_waiting_gang_is_replaced_though_its_pods_hold_it_and_the_pods_stay(tmp_path, served):
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(),))], discovery_interval=0.02)
        await w.submit(gang())
        before = await w.pods(5)
        held = (await w.api.merge(f"{LEASES_PATH}/digits", {"metadata": {"finalizers": ["example.com/held"]}})).ok()
        uid = held["metadata"]["uid"]
        policy = {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}}
        (await w.api.merge(f"{JOBS}/digits", policy)).ok()

        def is_another(groups):
            return "digits" in groups and groups["digits"]["metadata"]["uid"] != uid

        await w.eventually(LEASES_PATH, is_another)
        after = await w.pods(5)
        assert {pod["metadata"]["uid"] for pod in after.values()} == {pod["metadata"]["uid"] for pod in before.values()}


async def test_the_group_of_a_gang_that_its_scheduler_rejects_is_changed_again_and_again(tmp_path, served, monkeypatch):
    monkeypatch.setattr(retry, "SHORTEST", timedelta(seconds=1))
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(UNIQUE_PODGROUPS),))], discovery_interval=0.02)
        await w.submit(gang())
        rejected = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "rejected"}
        for name in await w.pods(5):
            (await w.api.merge(w.path(f"{PODS}/{name}/status"), {"status": {"conditions": [rejected]}})).ok()

        def times(groups):
            return {group["metadata"].get("annotations", {}).get(names.TOUCHED_ANNOTATION) for group in groups.values()}

        (first,) = times(await w.eventually(LEASES_PATH, lambda groups: any(times(groups))))
        await w.eventually(LEASES_PATH, lambda groups: any(times(groups) - {first, None}))


async def test_who_watches_the_group_of_a_job_that_is_over_sees_it_change_once_no_pod_runs(tmp_path, served):
    async with world(tmp_path, start=False) as w:
        await w.start(integrations=[Gangs((stand_in(UNIQUE_PODGROUPS),))], discovery_interval=0.02)
        await w.submit(gang())
        pods = await w.pods(5)
        await w.move(pods, "Running")
        listed = (await w.api.get(LEASES_PATH)).ok()
        group = next(each["metadata"]["name"] for each in listed["items"] if "ownerReferences" in each["metadata"])
        since = listed["metadata"]["resourceVersion"]
        await w.move(pods, "Succeeded", exit_code=0)
        async with asyncio.timeout(MOMENT), w.api.watch(LEASES_PATH, resourceVersion=since) as events:
            event = await events.next()
            while event["object"]["metadata"]["name"] != group:
                event = await events.next()
        assert (event["type"], "deletionTimestamp" in event["object"]["metadata"]) == ("MODIFIED", True)
        await w.eventually(LEASES_PATH, lambda groups: group not in groups)
