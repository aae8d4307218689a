"""A kind of child is a row of a table: one that no job needs is created while the server serves it, and else not."""

import asyncio
import re
import runpy
from pathlib import Path

import msgspec
import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, gang, submitted, world
from waiting import MOMENT, until

from mxnet_operator.builders.metadata import job_labels, owner_reference
from mxnet_operator.controller import discovery as discovery_module
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.health import Health
from mxnet_operator.integrations.child_kinds import project_metadata
from mxnet_operator.kube.resources import LEASES, Resource
from mxnet_operator.plan import ChildRule, ChildView
from mxnet_operator.plan.actions import CreateChild, DeleteChild

CONTRIBUTING = Path(__file__).resolve().parents[3] / "CONTRIBUTING.md"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
GROUPS = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class GroupView(ChildView, frozen=True, kw_only=True):
    """What the controller sees of one."""


class CreateGroup(CreateChild, frozen=True):
    """Create one."""


class DeleteGroup(DeleteChild, frozen=True):
    """Delete one."""


def group(job, action, _has_hook):
    metadata = {"name": action.name, "namespace": "default", "labels": job_labels(job)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**metadata, "ownerReferences": [owner_reference(job)]},
    }


def optional(resource=LEASES):
    """Groups, for which a type that every API server has stands in."""
    return ChildKind(
        resource=resource,
        project=lambda raw: project_metadata(raw, GroupView),
        create=CreateGroup,
        build=group,
        end=(DeleteGroup,),
        rule=ChildRule(GroupView, lambda job: (CreateGroup(f"{job.metadata.name}-group"),), DeleteGroup),
    )


@pytest.fixture
def served(monkeypatch):
    """Whether the server is said to serve groups; a test may change its mind."""
    asked, whether = discovery_module.is_served, {"groups": True}

    async def answer(client, resource):
        return whether["groups"] if resource == LEASES else await asked(client, resource)

    monkeypatch.setattr(discovery_module, "is_served", answer)
    return whether


def groups_watched(w):
    return any(each.resource == LEASES and each.synced.is_set() for each in w.controller.reflectors)


async def started(w, *kinds):
    await w.start(child_kinds=(*KINDS, *kinds), discovery_interval=0.02)


async def test_a_kind_that_is_not_served_keeps_no_job_waiting_and_nobody_unready(tmp_path):
    async with world(tmp_path, start=False) as w:
        await started(w, optional(Resource("scheduling.example.com", "v1", "podgroups")))
        assert await Health(w.controller, w.client).readiness() == ""
        await w.submit(gang())
        await w.run_to_success(await w.pods(5))
        await w.state("digits", "Succeeded")


async def test_one_that_is_served_is_created_before_pods_and_goes_when_its_job_is_suspended(tmp_path):
    async with world(tmp_path, start=False) as w:
        await started(w, optional())
        async with asyncio.timeout(MOMENT):
            await until(lambda: groups_watched(w))
        await w.submit(gang())
        await w.pods(5)
        created = [path.rsplit("/", 1)[1] for method, path in w.writes if method == "POST"]
        assert created.index("leases") < created.index("pods")
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        await w.pods(0)
        await w.eventually(GROUPS, lambda groups: "digits-group" not in groups)


async def test_the_kind_that_contributing_adds_is_created_and_goes_when_its_job_is_suspended(tmp_path):
    (text,) = re.findall(
        r'^```python\n("""Row of the ConfigMaps.*?)^```$', CONTRIBUTING.read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "hosts.py").write_text(text)
    hosts = runpy.run_path(str(tmp_path / "hosts.py"))["HOSTS"]
    async with world(tmp_path, start=False) as w:
        await started(w, hosts)
        await w.submit(gang())
        created = await w.eventually(CONFIGMAPS, lambda found: "digits-hosts" in found)
        assert sorted(created["digits-hosts"]["data"]["hosts"].split()) == sorted(await w.pods(5))
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        await w.eventually(CONFIGMAPS, lambda found: "digits-hosts" not in found)


async def test_one_that_goes_is_taken_away_at_the_end_of_its_job(tmp_path):
    async with world(tmp_path, start=False) as w:
        await started(w, optional())
        async with asyncio.timeout(MOMENT):
            await until(lambda: groups_watched(w))
        await w.submit(submitted(make_mxjob().gang().run_policy(cleanPodPolicy="Running")))
        await w.run_to_success(await w.pods(5))
        await w.state("digits", "Succeeded")
        await w.eventually(GROUPS, lambda groups: "digits-group" not in groups)


async def test_a_kind_that_comes_later_is_created_for_jobs_that_run_and_one_that_goes_is_done_without(tmp_path, served):
    served["groups"] = False
    async with world(tmp_path, start=False) as w:
        await started(w, optional())
        await w.submit(gang("before"))
        await w.pods(5)
        served["groups"] = True
        await w.eventually(GROUPS, lambda groups: "before-group" in groups)
        served["groups"] = False
        async with asyncio.timeout(MOMENT):
            await until(lambda: not groups_watched(w))
        await w.submit(gang("after"))
        await w.pods(10)
        assert "after-group" not in await w.names(GROUPS)


def test_a_job_reads_the_table_no_code_knows_another_kind_than_pods_by_name():
    """Every row tells apart its actions: two kinds that shared one would be sent to one resource."""
    actions = [action for kind in KINDS for action in (kind.create, *kind.end)]
    assert len(actions) == len(set(actions))
    assert [kind.resource.plural for kind in KINDS if kind.rule is None] == ["pods"]
    assert all(issubclass(action, msgspec.Struct) for action in actions)
