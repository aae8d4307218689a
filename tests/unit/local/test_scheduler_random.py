"""The scheduler over random jobs, priorities, minimums, arrivals, ends, kills, lost answers and restarts of its own.

Its API server here is a dictionary whose watch lags behind; that a real one says the same is
tests/local/kubelet/test_kubelet_scheduler.py's.
"""

import dataclasses
import itertools
import math
from collections import Counter
from typing import Any

from gang_pods import GPU, gang_pods
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from stored_pods import StoredPods, result, scheduler_of

GPUS = 8


@dataclasses.dataclass(frozen=True)
class Job:
    """A job: what each of its pods asks for, its priority, its minAvailable, and its attempt."""

    asked: tuple[int, ...]
    priority: int
    minimum: int | None
    attempt: int = 0

    @property
    def needed(self) -> int:
        """How many of its pods it can run with; more than it has are never placed."""
        return self.minimum or len(self.asked)

    @property
    def least(self) -> float:
        """The GPUs that so many ask for, the smallest first."""
        return sum(sorted(self.asked)[: self.needed]) if self.needed <= len(self.asked) else math.inf


class Cluster(RuleBasedStateMachine):
    """Jobs come, run, end and are killed, while the scheduler looks now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.pods = StoredPods()
        self.jobs: dict[str, Job] = {}
        self.to_create: list[dict[str, Any]] = []
        self.settled = True
        self.started: set[str] = set()
        self.restart()

    @rule()
    def restart(self) -> None:
        """The scheduler starts anew, with a watch that has caught up, as a reflector's has that has listed."""
        self.pods.watch()
        self.scheduler = scheduler_of(self.pods, GPUS, clock=itertools.count(step=10.0).__next__)

    @rule(
        asked=st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple),
        priority=st.sampled_from([0, 0, 7, -7]),
        minimum=st.sampled_from([None, None, 1, 2, 3, 7]),
    )
    def a_job_comes(self, asked: tuple[int, ...], priority: int, minimum: int | None) -> None:
        name = f"job-{len(self.jobs)}"
        self.jobs[name] = Job(asked, priority, minimum)
        self.to_create += self.new_pods(name)

    def new_pods(self, name: str) -> list[dict[str, Any]]:
        job = self.jobs[name]
        return gang_pods(name, *job.asked, attempt=job.attempt, priority=job.priority, minimum=job.minimum)

    @precondition(lambda self: self.to_create)
    @rule(data=st.data())
    def some_pods_are_created(self, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, len(self.to_create)))):
            pod = self.to_create.pop(data.draw(st.integers(0, len(self.to_create) - 1)))
            self.pods.write(pod["metadata"]["name"], pod)

    @rule(faults=st.lists(st.sampled_from(["", "", "answer lost", "request lost", "refused"]), max_size=3))
    def the_scheduler_looks(self, faults: list[str]) -> None:
        before = self.gangs()
        self.pods.faults = list(faults)
        again = result(self.scheduler._pass())
        self.pods.faults = []
        self.settled = again is None
        self.started |= set(self.running())
        if not any(faults):
            self.none_passed_one_of_a_higher_priority(before)

    def none_passed_one_of_a_higher_priority(self, before: dict[str, int]) -> None:
        """Where a gang that the scheduler has seen whole waits for GPUs, none of a lower priority just got any.

        One that has gone meanwhile, which the watch still shows, waits for none.
        """
        there = {pod["metadata"]["uid"] for pod in self.pods.stored.values()}
        seen = Counter(self.job_of(pod) for pod in self.pods.watched.values() if pod["metadata"]["uid"] in there)
        waiting = [
            self.jobs[name].priority
            for name, placed in self.gangs().items()
            if not placed and seen[name] == len(self.jobs[name].asked) and 0 < self.jobs[name].least <= GPUS
        ]
        for name, placed in self.gangs().items():
            if placed and not before[name] and self.jobs[name].least > 0:
                assert self.jobs[name].priority >= max(waiting, default=-99)

    @precondition(lambda self: self.pods.unseen)
    @rule(data=st.data())
    def the_watch_goes_on(self, data: st.DataObject) -> None:
        self.pods.watch(data.draw(st.integers(1, len(self.pods.unseen))))

    @precondition(lambda self: self.running())
    @rule(data=st.data(), killed=st.booleans())
    def a_job_ends_or_is_killed_and_starts_again(self, data: st.DataObject, *, killed: bool) -> None:
        name = data.draw(st.sampled_from(self.running()))
        self.end(name)
        if killed:
            self.jobs[name] = dataclasses.replace(self.jobs[name], attempt=self.jobs[name].attempt + 1)
            self.started.discard(name)
            self.to_create += self.new_pods(name)

    def end(self, name: str) -> None:
        for pod in [pod for pod in self.pods.stored.values() if self.job_of(pod) == name]:
            self.pods.write(pod["metadata"]["name"], None)
        self.to_create = [pod for pod in self.to_create if self.job_of(pod) != name]

    def running(self) -> list[str]:
        """The jobs that have all that they need to run."""
        return sorted(name for name, placed in self.gangs().items() if placed >= self.jobs[name].needed)

    def gangs(self) -> dict[str, int]:
        """How many pods of each job have a node."""
        placed = Counter(self.job_of(pod) for pod in self.pods.stored.values() if pod["spec"].get("nodeName"))
        return {name: placed[name] for name in self.jobs}

    @staticmethod
    def job_of(pod: dict[str, Any]) -> str:
        return str(pod["metadata"]["ownerReferences"][0]["name"])

    @invariant()
    def no_gpu_is_given_twice(self) -> None:
        assert self.gpus_held() <= GPUS

    def gpus_held(self, *jobs: str) -> int:
        return sum(
            int((pod["spec"]["containers"][0]["resources"]["limits"]).get(GPU, 0))
            for pod in self.pods.stored.values()
            if pod["spec"].get("nodeName") and (not jobs or self.job_of(pod) in jobs)
        )

    @invariant()
    def no_incomplete_gang_holds_a_gpu(self) -> None:
        """While nothing stands between the scheduler and the API server, that is: it finishes what it began."""
        if self.settled:
            incomplete = {name for name, placed in self.gangs().items() if 0 < placed < self.jobs[name].needed}
            assert incomplete == set()

    def teardown(self) -> None:
        """Once no more jobs come, each that fits the node has its turn, and none that doesn't holds anything."""
        for pod in self.to_create:
            self.pods.write(pod["metadata"]["name"], pod)
        for _ in range(2 * len(self.jobs) + 2):
            for _ in range(3):
                self.pods.watch()
                self.the_scheduler_looks([])
            self.no_gpu_is_given_twice()
            self.no_incomplete_gang_holds_a_gpu()
            for name in self.running():
                self.end(name)
        fitting = {name for name, job in self.jobs.items() if job.least <= GPUS}
        assert self.started >= fitting
        assert set(self.gangs().values()) <= {0}


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=40)
