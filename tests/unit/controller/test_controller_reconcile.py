"""One look at a job whose caches lag behind, as they do: what they don't show must not be done twice."""

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, SERVICES, gang, submitted, world
from reconcilers import make_reconciler

from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.projection import project_job, project_pod, project_service
from mxnet_operator.controller.reconcile import REQUEUE_AFTER
from mxnet_operator.kube import resources
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.plan.placement import IGNORED_AFTER


class Caches:
    """The three caches, which show what a test lets them see."""

    def __init__(self, world):
        self._world = world
        self.now = 100.0
        self.time = datetime.now(UTC)
        self.jobs, self.children = Indexer(), ChildCaches()
        self.reconciler = self.another_controller()

    def another_controller(self):
        """One that remembers no writes: restarted, or a second leader."""
        writes = OwnWrites({MXJOBS: self.jobs, **self.children.by_resource}, lambda: self.now)
        return make_reconciler(self._world.client, self.jobs, self.children, writes, now=lambda: self.time)

    async def turn_back_to_the_first_pod(self):
        """Let it be the second in which the first pod was made, by the API server's clock."""
        pods = (await self._world.api.get(PODS)).ok()["items"]
        self.time = min(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods)

    async def see(self, cache, path, project):
        whole = (await self._world.api.get(path)).ok()
        for item in whole["items"]:
            key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            raw = msgspec.Raw(json.dumps(item).encode())
            cache.store(key, item["metadata"]["resourceVersion"], project(raw))
        cache.advance(whole["metadata"]["resourceVersion"])

    async def see_job(self):
        await self.see(self.jobs, JOBS, project_job)

    async def see_all(self):
        await self.see_job()
        await self.see(self.children.by_resource[resources.PODS], PODS, project_pod)
        await self.see(self.children.by_resource[resources.SERVICES], SERVICES, project_service)


@asynccontextmanager
async def caches_of(tmp_path, manifest):
    async with world(tmp_path, start=False) as w:
        await w.submit(manifest)
        caches = Caches(w)
        await caches.see_all()
        yield w, caches


async def test_a_job_is_not_looked_at_again_until_the_caches_show_what_was_written(tmp_path):
    async with caches_of(tmp_path, gang()) as (w, caches):
        assert await caches.reconciler.reconcile("default/digits") is None
        done = len(w.writes)
        await caches.see_job()
        assert await caches.reconciler.reconcile("default/digits") == REQUEUE_AFTER
        assert len(w.writes) == done
        await caches.see_all()
        await caches.turn_back_to_the_first_pod()
        assert await caches.reconciler.reconcile("default/digits") == IGNORED_AFTER
        assert len(w.writes) == done


async def test_caches_that_never_show_a_write_are_believed_again_after_a_while(tmp_path):
    async with caches_of(tmp_path, gang()) as (_, caches):
        await caches.reconciler.reconcile("default/digits")
        caches.now += 31
        await caches.see_job()
        assert await caches.reconciler.reconcile("default/digits") is None


async def test_a_status_write_takes_away_what_is_no_longer_so(tmp_path):
    async with caches_of(tmp_path, submitted(make_mxjob("digits").worker(1))) as (w, caches):
        stale = {"status": {"replicaStatuses": {"Server": {"active": 2}, "Worker": {"active": 1}}}}
        (await w.api.merge(f"{JOBS}/digits/status", stale)).ok()
        await caches.see_all()
        await caches.reconciler.reconcile("default/digits")
        status = (await w.api.get(f"{JOBS}/digits")).ok()["status"]
        assert status["replicaStatuses"] == {"Worker": {}}


async def test_a_namesake_made_after_a_job_was_deleted_keeps_its_pods(tmp_path):
    async with caches_of(tmp_path, submitted(make_mxjob("digits").worker(1).run_policy(cleanPodPolicy="All"))) as (
        w,
        caches,
    ):
        await caches.reconciler.reconcile("default/digits")
        await w.move(["digits-worker-0"], "Succeeded", exit_code=0)
        await caches.see_all()
        await caches.reconciler.reconcile("default/digits")  # Succeeded is stored; the clean-up is next
        await caches.see_all()
        (await w.api.delete(f"{PODS}/digits-worker-0", {"gracePeriodSeconds": 0})).ok()
        namesake = {"metadata": {"name": "digits-worker-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await w.submit(namesake, PODS)
        await caches.reconciler.reconcile("default/digits")
        assert ("DELETE", f"{PODS}/digits-worker-0") in w.writes
        assert await w.names(PODS) == ["digits-worker-0"]
