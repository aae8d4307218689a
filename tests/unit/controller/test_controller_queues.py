"""Jobs that name a queue, in the controller: Kueue is found by discovery, and what it says is done.

The test plays Kueue, on CRDs without its schema; a real one is in tests/cluster/test_cluster_kueue.py.
"""

import asyncio

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted, world
from waiting import MOMENT

from mxnet_operator.api.crd import definitions
from mxnet_operator.api.queue_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from mxnet_operator.controller import discovery as discovery_module
from mxnet_operator.integrations.kueue import reader as reader_module
from mxnet_operator.kube.errors import ApiError

GROUP = "kueue.x-k8s.io"
QUICK = {"discovery_interval": 0.02}


def definition(kind, plural, scope, versions):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {"name": each, "served": True, "storage": each == versions[0], "schema": schema}
                | {"subresources": {"status": {}}}
                for each in versions
            ],
        },
    }


def kueue_definitions(*versions):
    return [
        *definitions(),
        definition("Workload", "workloads", "Namespaced", versions),
        definition("ResourceFlavor", "resourceflavors", "Cluster", versions),
        definition("WorkloadPriorityClass", "workloadpriorityclasses", "Cluster", versions),
    ]


class Kueue:
    """What a test says in Kueue's place."""

    def __init__(self, w, version="v1beta2"):
        self.api, self.world, self.base = w.api, w, f"/apis/{GROUP}/{version}"
        self.workloads = f"{self.base}/namespaces/default/workloads"

    async def workload(self, holds=lambda _: True):
        found = await self.world.eventually(
            self.workloads, lambda all_of_them: any(holds(each) for each in all_of_them.values())
        )
        return next(each for each in found.values() if holds(each))

    async def says(self, admission=None, **conditions):
        """Set conditions of the one Workload: a status, a reason and a message each."""
        workload = await self.workload()
        old = {each["type"]: each for each in workload.get("status", {}).get("conditions", ())}
        new = {
            name: {"type": name, "status": status, "reason": reason, "message": message}
            | {"lastTransitionTime": "2026-11-22T00:00:00Z"}
            for name, (status, reason, message) in conditions.items()
        }
        status = {"conditions": list((old | new).values()), **({"admission": admission} if admission else {})}
        path = f"{self.workloads}/{workload['metadata']['name']}/status"
        (await self.api.merge(path, {"status": status})).ok()

    async def admits(self):
        flavors = [{"name": each, "flavors": {"nvidia.com/gpu": "gpu"}} for each in ("scheduler", "worker")]
        await self.says(
            {"clusterQueue": "team", "podSetAssignments": flavors},
            QuotaReserved=("True", "QuotaReserved", ""),
            Admitted=("True", "Admitted", ""),
            Evicted=("False", "QuotaReserved", ""),
        )

    async def has_a_flavor(self):
        tolerations = [{"key": "gpu", "operator": "Exists"}]
        spec = {"nodeLabels": {"pool": "gpu"}, "tolerations": tolerations}
        body = {"apiVersion": f"{GROUP}/{self.base.rsplit('/', 1)[1]}", "kind": "ResourceFlavor", "spec": spec}
        (await self.api.post(f"{self.base}/resourceflavors", {**body, "metadata": {"name": "gpu"}})).ok()


def job(name="digits", **labels):
    manifest = submitted(make_mxjob(name).scheduler().worker(1, resources={"limits": {"nvidia.com/gpu": 1}}))
    manifest["metadata"]["labels"] = {QUEUE_LABEL: "a", **labels}
    return manifest


def condition(workload, name):
    told = workload.get("status", {}).get("conditions", ())
    return next(((each["status"], each["reason"]) for each in told if each["type"] == name), None)


async def admitted(w, words):
    def holds(jobs):
        told = jobs.get("digits", {}).get("status", {}).get("conditions", ())
        return any(each["type"] == "Admitted" and words in each["message"] for each in told)

    return (await w.eventually(JOBS, holds))["digits"]


@pytest.mark.parametrize("versions", [("v1beta2", "v1beta1"), ("v1beta1",)], ids=["newer", "older"])
async def test_a_job_waits_runs_gives_way_and_comes_back(tmp_path, versions):
    async with world(tmp_path, start=False, crds=kueue_definitions(*versions)) as w:
        kueue = Kueue(w, versions[0])
        await kueue.has_a_flavor()
        await w.start(**QUICK)
        await w.submit(job())
        await w.state("digits", "Suspended")
        workload = await kueue.workload()
        assert workload["spec"]["queueName"] == "a"
        assert [(each["name"], each["count"]) for each in workload["spec"]["podSets"]] == [
            ("scheduler", 1),
            ("worker", 1),
        ]
        await kueue.says(QuotaReserved=("False", "Pending", "1 more needed"))
        await admitted(w, "Queue a: 1 more needed")
        assert not await w.names(PODS)

        await kueue.admits()
        pods = await w.pods(2)
        assert {each["spec"]["nodeSelector"]["pool"] for each in pods.values()} == {"gpu"}
        await w.move(pods, "Running")
        await kueue.workload(lambda each: condition(each, "PodsReady") == ("True", "Started"))

        await kueue.says(Evicted=("True", "Preempted", "by another"))
        back = await kueue.workload(lambda each: condition(each, "QuotaReserved") == ("False", "Pending"))
        assert back["status"].get("admission") is None
        assert condition(back, "Requeued") == ("True", "Preempted")
        assert not await w.names(PODS)

        await kueue.admits()
        await w.run_to_success(await w.pods(2))
        await w.state("digits", "Succeeded")
        await kueue.workload(lambda each: condition(each, "Finished") == ("True", "Succeeded"))


async def test_a_queue_that_is_named_anew_and_a_class_that_comes_are_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "REMEMBERED", reader_module.REMEMBERED * 0)
    async with world(tmp_path, start=False, crds=kueue_definitions("v1beta2")) as w:
        kueue = Kueue(w)
        await w.start(**QUICK)
        await w.submit(job(**{QUEUE_PRIORITY_LABEL: "urgent"}))
        await admitted(w, "until WorkloadPriorityClass urgent can be read")
        assert not await w.names(kueue.workloads)
        body = {"apiVersion": f"{GROUP}/v1beta2", "kind": "WorkloadPriorityClass", "value": 7}
        (await w.api.post(f"{kueue.base}/workloadpriorityclasses", {**body, "metadata": {"name": "urgent"}})).ok()
        (await w.api.merge(f"{JOBS}/digits", {"metadata": {"annotations": {"look": "again"}}})).ok()
        assert (await kueue.workload())["spec"]["priority"] == 7
        (await w.api.merge(f"{JOBS}/digits", {"metadata": {"labels": {QUEUE_LABEL: "b"}}})).ok()
        await kueue.workload(lambda each: each["spec"]["queueName"] == "b")


@pytest.mark.parametrize("comes_later", [False, True], ids=["there before", "installed later"])
async def test_a_controller_that_may_not_read_workloads_says_so_and_starts_nothing(tmp_path, monkeypatch, comes_later):
    asked, is_installed, was_refused = discovery_module.is_served, asyncio.Event(), asyncio.Event()

    async def answer(client, resource):
        return is_installed.is_set() and await asked(client, resource)

    monkeypatch.setattr(discovery_module, "is_served", answer)
    async with world(tmp_path, start=False, crds=kueue_definitions("v1beta2")) as w:
        read = w.client.watch

        async def refused(path, *args, **options):
            if "workloads" in path:
                was_refused.set()
                raise ApiError(403, "Forbidden", "workloads.kueue.x-k8s.io is forbidden")
            async for line in read(path, *args, **options):
                yield line

        monkeypatch.setattr(w.client, "watch", refused)
        if not comes_later:
            is_installed.set()
        await w.start(**QUICK)
        if comes_later:
            await w.submit(job("before"))
            await w.event("KueueNotInstalled")
            is_installed.set()
        async with asyncio.timeout(MOMENT):
            await was_refused.wait()
        await w.submit(job())
        await w.event("KueueUnreadable", says="is forbidden")
        assert not any(name.startswith("digits") for name in await w.names(PODS))
        monkeypatch.setattr(w.client, "watch", read)
        await Kueue(w).workload(lambda each: each["metadata"]["ownerReferences"][0]["name"] == "digits")


async def test_a_flavor_that_comes_late_lets_the_pods_go(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "REMEMBERED", reader_module.REMEMBERED * 0)
    async with world(tmp_path, start=False, crds=kueue_definitions("v1beta2")) as w:
        kueue = Kueue(w)
        await w.start(**QUICK)
        await w.submit(job())
        await kueue.admits()
        await admitted(w, "gets no pods before ResourceFlavor gpu can be read")
        assert not await w.names(PODS)
        await kueue.has_a_flavor()
        (await w.api.merge(f"{JOBS}/digits", {"metadata": {"annotations": {"look": "again"}}})).ok()
        await w.pods(2)
