"""Precedence of a gang that has waited long: which jobs it keeps from getting pods, and what these say."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, make_mxjob, make_pod, make_services

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Claimant, HeldBack, Observed, Plan, claimant, comes_before, plan
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.gang import PODGROUPS, CreatePodGroup, PodGroupView
from mxnet_operator.plan.precedence import LONGEST, next_by_age, precedence_lasts
from mxnet_operator.plan.queue_workload import QueueSystem
from mxnet_operator.plan.services import SERVICES

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
LACKS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: not eligible"
OTHER_WORDS = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
FIRST = HeldBack("default/large", f"12 {GPU}", NOW - timedelta(minutes=5), timedelta(seconds=40))
POOL = "cloud.google.com/gke-nodepool"


def asks(name: str = "large", resource: str = GPU, workers: int = 12, **run_policy: Any) -> JobBuilder:
    """A job of a scheduler and workers that ask for one of a resource each."""
    builder = make_mxjob(name).scheduler().worker(workers, resources={"limits": {resource: "1"}})
    return builder.run_policy(**run_policy) if run_policy else builder


def created(builder: JobBuilder, seconds: int = 0, **metadata: Any) -> MXJob:
    """The job, created so many seconds after noon."""
    job = builder.obj()
    moment = NOW + timedelta(seconds=seconds)
    metadata = msgspec.structs.replace(job.metadata, creation_timestamp=moment, **metadata)
    return msgspec.structs.replace(job, metadata=metadata)


def observed(*pods: PodBuilder, gangs: bool = True, children: tuple[Any, ...] = ()) -> Observed:
    rules = (SERVICES, PODGROUPS) if gangs else (SERVICES,)
    return Observed(tuple(pod.obj() for pod in pods), children, rules=rules)


def waiting_pods(job: MXJob, words: str = LACKS) -> list[PodBuilder]:
    """All pods of the job, none with a node."""
    specs = with_defaults(job).spec.mx_replica_specs.items()
    pods = [make_pod(job, kind, i) for kind, spec in specs for i in range(spec.replicas or 0)]
    return [pod.unscheduled().set(created_at=NOW, unschedulable=words) for pod in pods]


def waiting(builder: JobBuilder, seconds: int = 0, words: str = LACKS) -> Claimant:
    job = created(builder, seconds)
    found = claimant(job, observed(*waiting_pods(job, words)))
    assert found is not None
    return found


def starting(builder: JobBuilder, seconds: int = 10) -> Claimant:
    found = claimant(created(builder, seconds), observed())
    assert found is not None
    return found


class TestWhoWaits:
    def test_a_gang_of_which_no_pod_has_a_node_waits_for_what_the_scheduler_says_it_lacks(self) -> None:
        found = waiting(asks())
        assert (found.waits_since, found.lacks, found.starts) == (NOW, {GPU}, False)

    def test_it_waits_from_the_creation_of_its_last_pod(self) -> None:
        job = created(asks())
        *others, last = waiting_pods(job)
        found = claimant(job, observed(*others, last.set(created_at=NOW + timedelta(seconds=3))))
        assert found is not None
        assert found.waits_since == NOW + timedelta(seconds=3)

    @pytest.mark.parametrize("words", [OTHER_WORDS, "", "0/2 nodes are available: 2 Insufficient cpu."])
    def test_one_that_lacks_none_by_the_schedulers_words_lacks_none(self, words: str) -> None:
        assert waiting(asks(), words=words).lacks == frozenset()

    @pytest.mark.parametrize("case", ["a pod has a node", "a pod is missing", "a pod goes", "no gang scheduler"])
    def test_others_do_not_wait(self, case: str) -> None:
        job = created(asks())
        *others, last = waiting_pods(job)
        cases = {
            "a pod has a node": observed(*others, last.set(node_name="node-1", unschedulable="")),
            "a pod is missing": observed(*others),
            "a pod goes": observed(*others, last.deleting()),
            "no gang scheduler": observed(*others, last, gangs=False),
        }
        found = claimant(job, cases[case])
        assert found is not None
        assert (found.waits_since, found.lacks) == (None, frozenset())

    @pytest.mark.parametrize(
        "builder",
        [
            make_mxjob().scheduler().worker(2, resources={"limits": {"cpu": "1"}}),
            asks(suspend=True),
            asks(schedulingPolicy={"minAvailable": 99}),
            asks().condition("Succeeded"),
            asks().condition("Failed"),
        ],
        ids=["no extended resource", "suspended", "minAvailable too large", "succeeded", "failed"],
    )
    def test_these_neither_wait_nor_are_held_back(self, builder: JobBuilder) -> None:
        job = created(builder)
        assert claimant(job, observed()) is None
        assert claimant(job, observed(*waiting_pods(job))) is None

    @pytest.mark.parametrize(("state", "stands_in_a_queue"), [("Served", True), ("Unknown", True), ("Absent", False)])
    def test_a_job_of_kueue_has_its_place_there(self, state: Any, stands_in_a_queue: bool) -> None:
        job = created(asks(), labels={"kueue.x-k8s.io/queue-name": "a"})
        seen = msgspec.structs.replace(observed(*waiting_pods(job)), queues=QueueSystem(state))
        assert (claimant(job, seen) is None) is stands_in_a_queue


class TestWhoYields:
    @pytest.mark.parametrize(
        "younger",
        [
            asks("small", workers=1),
            asks("small", "alpha.kubernetes.io/nvidia-gpu"),
            asks("small").condition("Created"),
            asks("small").condition("Suspended"),
            make_mxjob("lone").worker(1, resources={"requests": {GPU: 1}, "limits": {GPU: 1}}),
            make_mxjob("tuning").replicas("TunerTracker", 1).replicas("Tuner", 1, resources={"limits": {GPU: "1"}}),
            asks("small").template("Worker", nodeSelector={"zone": "a"}),
        ],
        ids=["gang", "old name", "looked at before", "resumed", "one pod", "tuning", "other label"],
    )
    def test_a_younger_job_that_asks_for_what_the_gang_lacks(self, younger: JobBuilder) -> None:
        assert comes_before(waiting(asks().template("Worker", nodeSelector={POOL: "a100"})), starting(younger), GPU)

    @pytest.mark.parametrize(
        ("other", "seconds"),
        [
            (asks("older"), -10),
            (asks("of the same second"), 0),
            (asks("other device", MIG), 10),
            (asks("other nodes").template("Worker", nodeSelector={POOL: "t4"}), 10),
            (asks("urgent", schedulingPolicy={"priorityClass": "high"}), 10),
            (asks("urgent pods").template("Worker", priorityClassName="high"), 10),
            (asks("restarting").condition("Restarting"), 10),
            (asks("running").condition("Running"), 10),
        ],
        ids=lambda each: each.manifest()["metadata"]["name"] if isinstance(each, JobBuilder) else str(each),
    )
    def test_no_other_does(self, other: JobBuilder, seconds: int) -> None:
        first = waiting(asks().template("Worker", nodeSelector={POOL: "a100"}))
        assert not comes_before(first, starting(other, seconds), GPU)

    def test_one_that_has_a_pod_does_not(self) -> None:
        job = created(asks("small"), 10)
        found = claimant(job, observed(make_pod(job, "Worker").unscheduled()))
        assert found is not None
        assert not comes_before(waiting(asks()), found, GPU)


class TestHeldBack:
    def held(self, builder: JobBuilder, **fields: Any) -> Plan:
        job = created(builder, 10)
        seen = msgspec.structs.replace(observed(), held_back_by=FIRST)
        return plan(job, msgspec.structs.replace(seen, **fields), NOW)

    def test_a_job_that_is_held_back_gets_nothing_and_says_for_whom(self) -> None:
        answer = self.held(asks("small"))
        assert answer.actions == ()
        assert answer.status is not None
        condition = answer.status.conditions[-1]
        assert (condition.type, condition.status, condition.reason) == ("PodsScheduled", "False", "HeldBack")
        assert condition.message == (
            "The job waits for its turn, and gets no pods yet: default/large, which has waited for 12 nvidia.com/gpu"
            " since 2026-11-21T11:55:00Z, comes first."
        )
        assert answer.requeue_after == timedelta(seconds=40)

    def test_what_it_says_is_not_written_again(self) -> None:
        first = self.held(asks("small"))
        assert first.status is not None
        job = msgspec.structs.replace(created(asks("small"), 10), status=first.status)
        seen = msgspec.structs.replace(observed(), held_back_by=FIRST)
        later = NOW + timedelta(seconds=20)
        assert plan(job, seen, later).status is None

    def test_a_job_of_another_namespace_is_not_named(self) -> None:
        answer = self.held(asks("small"), held_back_by=msgspec.structs.replace(FIRST, job="secret/merger"))
        assert answer.status is not None
        assert "a job of another namespace, which has waited" in answer.status.conditions[-1].message
        assert "merger" not in answer.status.conditions[-1].message

    def test_once_nobody_comes_first_it_gets_its_pods_and_says_no_more_of_it(self) -> None:
        first = self.held(asks("small"))
        assert first.status is not None
        job = msgspec.structs.replace(created(asks("small"), 10), status=first.status)
        answer = plan(job, observed(), NOW)
        kinds = [type(action) for action in answer.actions]
        assert CreatePodGroup in kinds
        assert kinds.count(CreatePod) == 13
        assert answer.status is not None
        assert [c.type for c in answer.status.conditions] == ["Created"]

    def test_pods_that_exist_are_left_and_completed(self) -> None:
        job = created(asks("small", workers=2).condition("Created"), 10)
        group = PodGroupView(name="small", uid="g", owner_uid=job.metadata.uid)
        seen = Observed(
            (make_pod(job, "Worker").unscheduled().obj(),),
            (*make_services(job), group),
            held_back_by=FIRST,
            rules=(SERVICES,),
        )
        answer = plan(job, seen, NOW)
        assert [type(action) for action in answer.actions].count(CreatePod) == 2

    def test_its_time_to_be_scheduled_runs_meanwhile(self) -> None:
        job = created(asks("small", schedulingPolicy={"scheduleTimeoutSeconds": 60}).condition("Created"), 10)
        answer = plan(job, msgspec.structs.replace(observed(), held_back_by=FIRST), NOW)
        assert answer.status is not None
        assert answer.status.state == "Failed"


def test_a_gang_that_was_not_placed_comes_first_for_longer_the_next_time_and_never_for_ever_longer() -> None:
    minute = timedelta(minutes=1)
    assert [precedence_lasts(minute, times) for times in (0, 1, 2)] == [minute, 2 * minute, 3 * minute]
    assert precedence_lasts(minute, 1000) == LONGEST * minute


def test_the_oldest_comes_first_every_second_time_and_nobody_is_left_out() -> None:
    assert [next_by_age(4, in_vain) for in_vain in range(8)] == [0, 1, 0, 2, 0, 1, 0, 3]
    assert {next_by_age(1, in_vain) for in_vain in range(8)} == {0}
