"""Lines of gangs that wait: who comes first and for how long, over random jobs behind small ones that pass.

The scheduler is a stand-in, as bad as one can be that places whole gangs; a real one is in `tests/cluster`.
"""

import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.precedence import Precedence
from mxnet_operator.plan import Observed, Policy, plan
from mxnet_operator.plan.actions import CreatePod, CreateService
from mxnet_operator.plan.gang import PODGROUPS, CreatePodGroup, DeletePodGroup, PodGroupView, fingerprint, gang_of
from mxnet_operator.plan.precedence import LONGEST
from mxnet_operator.plan.services import SERVICES, ServiceView

GPU = "nvidia.com/gpu"
LACKS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
GPUS = 16
AFTER = 5
"""Seconds after which a gang may come first."""


class Job:
    """A job of the stand-in cluster."""

    def __init__(self, name: str, gpus: int, born: int, seconds: int) -> None:
        builder = make_mxjob(name).worker(1, resources={"limits": {GPU: str(gpus)}})  # one pod: a look costs less
        job = builder.run_policy(restartScope="Job", schedulingPolicy={}).obj()
        moment = NOW + timedelta(seconds=born)
        metadata = msgspec.structs.replace(job.metadata, creation_timestamp=moment)
        self.job: MXJob = msgspec.structs.replace(job, metadata=metadata)
        self.name, self.gpus, self.born, self.seconds = name, gpus, born, seconds
        self.pods: dict[str, Any] = {}
        self.children: dict[str, Any] = {}
        self.ends: int | None = None
        self.held_since: int | None = None
        self.longest_hold = 0

    @property
    def is_over(self) -> bool:
        return conditions.is_terminal(self.job.status)

    @property
    def is_placed(self) -> bool:
        return self.ends is not None

    @property
    def waits(self) -> bool:
        return bool(self.pods) and not self.is_placed


class Cluster:
    """GPUs, jobs, a controller's looks at them, and a scheduler that takes the smallest gang that fits."""

    def __init__(self, after: int | None = AFTER) -> None:
        self.now = 0
        self.jobs: dict[str, Job] = {}
        self.due: dict[str, int] = {}
        self.policy = Policy(gang_precedence_after=None if after is None else timedelta(seconds=after))
        self.precedence = None
        if self.policy.gang_precedence_after is not None:
            self.precedence = Precedence(
                self.policy.gang_precedence_after,
                self.look_soon,
                now=lambda: NOW + timedelta(seconds=self.now),
                clock=lambda: float(self.now),
            )

    def submit(self, name: str, gpus: int, seconds: int = 1) -> Job:
        self.jobs[name] = Job(name, gpus, self.now, seconds)
        self.look_soon(name)
        return self.jobs[name]

    def delete(self, name: str) -> None:
        del self.jobs[name]
        self.due.pop(name, None)
        if self.precedence is not None:
            self.precedence.forget(name)

    def look_soon(self, name: str) -> None:
        self.due[name] = self.now

    def second(self) -> None:
        """Let a second pass: pods end, gangs are placed, and the controller looks at what asked for it."""
        self.now += 1
        for each in self.jobs.values():
            if each.ends == self.now:
                done = {"phase": "Succeeded", "exit_code": 0, "finished_at": NOW + timedelta(seconds=self.now)}
                self._change(each, **done)
        self._schedule()
        while ready := [name for name, when in self.due.items() if when <= self.now]:
            for name in ready:
                del self.due[name]
                if name in self.jobs:
                    self._look(self.jobs[name])

    def _change(self, each: Job, **fields: Any) -> None:
        each.pods = {name: msgspec.structs.replace(pod, **fields) for name, pod in each.pods.items()}
        self.look_soon(each.name)

    @property
    def free(self) -> int:
        return GPUS - sum(each.gpus for each in self.jobs.values() if each.is_placed and not each.is_over)

    def _schedule(self) -> None:
        for each in sorted((job for job in self.jobs.values() if job.waits), key=lambda job: job.gpus):
            if each.gpus <= self.free:
                each.ends = self.now + each.seconds
                started = NOW + timedelta(seconds=self.now)
                self._change(each, node_name="node", unschedulable="", phase="Running", started_at=started)
            elif any(not pod.unschedulable for pod in each.pods.values()):
                self._change(each, unschedulable=LACKS)

    def _look(self, each: Job) -> None:
        seen = Observed(tuple(each.pods.values()), tuple(each.children.values()), rules=(SERVICES, PODGROUPS))
        if self.precedence is not None:
            held = self.precedence.held_back_by(each.name, each.job, seen)
            seen = msgspec.structs.replace(seen, held_back_by=held)
        moment = NOW + timedelta(seconds=self.now)
        decided = plan(each.job, seen, moment, self.policy)
        self._note_hold(each, held=seen.held_back_by is not None)
        for action in decided.actions:
            self._carry_out(each, action)
        if decided.status is not None:
            each.job = msgspec.structs.replace(each.job, status=decided.status)
            self.look_soon(each.name)
        if decided.requeue_after is not None:
            again = self.now + max(int(decided.requeue_after.total_seconds()), 1)
            self.due[each.name] = min(again, self.due.get(each.name, again))

    def _note_hold(self, each: Job, *, held: bool) -> None:
        if held and each.held_since is None:
            each.held_since = self.now
        if not held and each.held_since is not None:
            each.longest_hold = max(each.longest_hold, self.now - each.held_since)
            each.held_since = None

    def _carry_out(self, each: Job, action: Any) -> None:
        uid = each.job.metadata.uid
        if isinstance(action, CreatePod):
            pod = make_pod(each.job, action.type, action.index).unscheduled()
            pod = pod.set(attempt=action.attempt, created_at=NOW + timedelta(seconds=self.now)).obj()
            each.pods[pod.name] = pod
        elif isinstance(action, CreatePodGroup):
            gang = gang_of(with_defaults(each.job))
            assert gang is not None
            group = PodGroupView(name=action.name, uid="g", owner_uid=uid, fingerprint=fingerprint(gang))
            each.children[f"group {action.name}"] = group
        elif isinstance(action, CreateService):
            each.children[action.name] = ServiceView(name=action.name, uid="s", owner_uid=uid)
        elif isinstance(action, DeletePodGroup):
            del each.children[f"group {action.name}"]
        self.look_soon(each.name)


def keep_coming(cluster: Cluster, rng: random.Random, gpus: int = 4) -> None:
    """Keep small jobs waiting, as a team does that has more work than GPUs."""
    while sum(not each.is_placed and each.name.startswith("small") for each in cluster.jobs.values()) < 8:
        cluster.submit(f"small-{len(cluster.jobs)}", rng.randint(1, gpus), rng.randint(1, 4))


def run(cluster: Cluster, seconds: int, rng: random.Random, until: Any = lambda: False) -> None:
    for _ in range(seconds):
        keep_coming(cluster, rng)
        cluster.second()
        if until():
            return


def test_a_large_gang_starves_behind_small_ones_where_nobody_comes_first() -> None:
    """What the rest is for: with the same seconds and the same small jobs."""
    cluster, rng = Cluster(after=None), random.Random(1)
    run(cluster, 10, rng)
    large = cluster.submit("large", 12)
    run(cluster, 300, rng)
    assert not large.is_placed
    assert sum(each.is_over for each in cluster.jobs.values()) > 100


def test_it_is_placed_where_it_comes_first_and_the_small_ones_go_on_after_it() -> None:
    cluster, rng = Cluster(), random.Random(1)
    run(cluster, 10, rng)
    large = cluster.submit("large", 12)
    run(cluster, 300, rng, until=lambda: large.is_over)
    assert large.is_over
    done = sum(each.is_over for each in cluster.jobs.values())
    run(cluster, 20, rng)
    assert sum(each.is_over for each in cluster.jobs.values()) > done + 10


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12))
def test_every_gang_that_fits_is_placed_and_none_that_never_fits_holds_anybody_for_ever(seed: int) -> None:
    """Random gangs, some larger than the cluster, behind small jobs that never stop coming."""
    cluster, rng = Cluster(), random.Random(seed)
    sizes = [rng.choice([*range(5, GPUS + 1), GPUS + 1, 99]) for _ in range(rng.randint(1, 6))]
    gangs = []
    for index, size in enumerate(sizes):
        run(cluster, rng.randint(0, 15), rng)
        gangs.append(cluster.submit(f"gang-{index}", size, rng.randint(1, 8)))
    fitting = [each for each in gangs if each.gpus <= GPUS]
    run(cluster, 2000, rng, until=lambda: all(each.is_over for each in fitting))
    assert [each.name for each in fitting if not each.is_over] == []
    run(cluster, 200, rng)
    longest = max(each.longest_hold for each in cluster.jobs.values())
    assert longest <= len(gangs) * LONGEST * AFTER
    small = [each for each in cluster.jobs.values() if each.name.startswith("small")]
    waited = [cluster.now - each.born for each in small if not each.is_placed]
    assert max(waited) <= len(gangs) * LONGEST * AFTER + 60


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_held_back_where_it_is_not_asked_for(seed: int) -> None:
    cluster, rng = Cluster(after=None), random.Random(seed)
    for index in range(4):
        run(cluster, 10, rng)
        cluster.submit(f"gang-{index}", rng.randint(5, 20))
    run(cluster, 60, rng)
    assert all(each.pods for each in cluster.jobs.values() if each.born < cluster.now - 1)


class TestALine:
    def world(self) -> Cluster:
        """A cluster that is full for long, and a gang of 12 that has waited for as long as it must."""
        cluster = Cluster()
        for index in range(4):
            cluster.submit(f"running-{index}", 4, 1000)
        cluster.second()
        cluster.second()
        cluster.submit("large", 12)
        for _ in range(AFTER + 2):
            cluster.second()
        return cluster

    def is_held(self, cluster: Cluster, name: str) -> bool:
        return not cluster.jobs[name].pods

    def test_a_job_that_comes_before_that_is_not_held(self) -> None:
        cluster = Cluster()
        cluster.submit("running", 16, 1000)
        cluster.second()
        cluster.submit("large", 12)
        cluster.second()
        cluster.second()
        cluster.submit("small", 1)
        cluster.second()
        assert not self.is_held(cluster, "small")

    def test_one_that_comes_later_is_held_until_the_gang_is_placed(self) -> None:
        cluster = self.world()
        cluster.submit("small", 1)
        cluster.second()
        assert self.is_held(cluster, "small")
        for name in ("running-0", "running-1", "running-2"):
            cluster.delete(name)
        cluster.second()
        cluster.second()
        assert cluster.jobs["large"].is_placed
        assert not self.is_held(cluster, "small")

    def test_one_that_comes_later_is_held_until_the_gang_is_deleted(self) -> None:
        cluster = self.world()
        cluster.submit("small", 1)
        cluster.second()
        cluster.delete("large")
        cluster.second()
        assert not self.is_held(cluster, "small")

    def test_it_is_held_no_longer_than_the_gang_comes_first(self) -> None:
        cluster = self.world()
        cluster.submit("small", 1)
        for _ in range(AFTER + 1):
            cluster.second()
        assert not self.is_held(cluster, "small")

    def test_then_nobody_comes_first_for_a_while_and_the_next_in_the_line_does(self) -> None:
        cluster = self.world()
        cluster.submit("next", 13)
        cluster.second()
        assert self.is_held(cluster, "next")
        firsts = []
        for second in range(8 * AFTER):
            probe = cluster.submit(f"probe-{second}", 1)
            cluster.second()
            held = probe.job.status.conditions[-1].message if self.is_held(cluster, probe.name) else ""
            firsts.append(next((name for name in ("large", "next") if f"default/{name}," in held), "nobody"))
        turns = [name for index, name in enumerate(firsts) if index == 0 or firsts[index - 1] != name]
        assert turns[:5] == ["large", "nobody", "next", "nobody", "large"]
        assert firsts[AFTER:].count("large") == 2 * AFTER

    def test_a_controller_that_takes_over_begins_anew(self) -> None:
        cluster = self.world()
        assert cluster.precedence is not None
        cluster.submit("small", 1)
        cluster.second()
        cluster.precedence.clear()
        cluster.look_soon("large")
        cluster.second()
        cluster.submit("later", 1)
        cluster.second()
        assert self.is_held(cluster, "later")
