"""A job that names a queue of Kueue's: when it waits, what it asks for, and when it gives its quota back."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, after, make_mxjob, make_pod
from builders import plan as decided

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.pod_additions import Toleration
from mxnet_operator.api.queue_labels import QUEUE_LABEL
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.child_kinds import KindsState
from mxnet_operator.integrations.kueue.policy import (
    KueuePolicy,
    asks_for,
    flavors_wanted,
    priority_wanted,
    workload_name,
)
from mxnet_operator.integrations.kueue.workload import (
    AdmissionCheck,
    Assignment,
    ChangeQueueWorkload,
    CreateQueueWorkload,
    DeleteQueueWorkload,
    PodSetUpdate,
    QueuePriority,
    QueueState,
    QueueWorkload,
    ResourceFlavor,
    SetQueueConditions,
    WorkloadCondition,
)
from mxnet_operator.plan import (
    Effects,
    Observed,
    PodView,
    reconcile_failed,
)
from mxnet_operator.plan.actions import CreatePod, DeletePod

SECOND = timedelta(seconds=1)
SERVED = KindsState("Served")
PRIORITY = QueuePriority("PriorityClass", "")
GPU = {"limits": {"nvidia.com/gpu": 2}}
TOLERATION = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
FLAVOR = ResourceFlavor(name="gpu", node_labels=(("pool", "gpu"),), tolerations=(TOLERATION,))
ASSIGNED = tuple(Assignment(name, {"nvidia.com/gpu": "gpu"}) for name in ("scheduler", "worker"))
QUOTA, ADMITTED = ("QuotaReserved", "True", "QuotaReserved", ""), ("Admitted", "True", "Admitted", "")
PENDING = ("QuotaReserved", "False", "Pending", "4 more needed")
EVICTED = ("Evicted", "True", "Preempted", "by another job")


def queued(builder: JobBuilder | None = None, queue: str = "a", **labels: str) -> MXJob:
    job = (builder or make_mxjob().scheduler().worker(2, resources=GPU)).obj()
    marked = {QUEUE_LABEL: queue, **{f"kueue.x-k8s.io/{k.replace('_', '-')}": v for k, v in labels.items()}}
    return msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, labels=marked))


def workload(job: MXJob, *told: tuple[str, str, str, str], **fields: Any) -> QueueWorkload:
    """The Workload of a job, of which Kueue says this."""
    said = tuple(WorkloadCondition(*each, "2026-11-21T11:00:00Z") for each in told)
    quota = any(each[:2] == ("QuotaReserved", "True") for each in told)
    seen = QueueWorkload(
        name=workload_name(job),
        uid="uid-of-workload",
        owner_uid=job.metadata.uid,
        resource_version="7",
        asks_for=asks_for(with_defaults(job)),
        cluster_queue="team-a" if quota else "",
        assignments=ASSIGNED if quota else (),
        conditions=said,
    )
    return msgspec.structs.replace(seen, **fields)


def plan(job: MXJob, observed: Observed, now: datetime) -> Effects:
    """What is decided where only the queue is of interest, and no other child."""
    return decided(job, observed, now, rules=(), integrations=(KueuePolicy(),))


def seen(of: QueueWorkload | None = None, *pods: PodView, **fields: Any) -> Observed:
    known: dict[str, Any] = {"kinds": SERVED, "flavors": (FLAVOR,), "priority": PRIORITY}
    return Observed(pods=pods, facts=(QueueState(workload=of, **(known | fields)),))


def admitted_words(job: MXJob) -> tuple[str, str, str]:
    (found,) = [each for each in job.status.conditions if each.type == conditions.ADMITTED]
    return found.status, found.reason, found.message


def waiting(job: MXJob) -> MXJob:
    return after(job, plan(job, seen(), NOW))


def running(job: MXJob) -> tuple[MXJob, tuple[PodView, ...]]:
    """The job, admitted, all of whose pods run."""
    pods = tuple(
        make_pod(job, replica_type, index).running().obj()
        for replica_type, spec in job.spec.mx_replica_specs.items()
        for index in range(spec.replicas or 1)
    )
    return after(job, plan(job, seen(workload(job, QUOTA, ADMITTED), *pods), NOW)), pods


class TestEntering:
    def test_a_job_that_names_a_queue_waits_suspended_behind_a_workload(self) -> None:
        job = queued()
        answer = plan(job, seen(), NOW)
        name = workload_name(job)
        assert answer.actions == (CreateQueueWorkload(name, asks_for(with_defaults(job)), PRIORITY),)
        job = after(job, answer)
        assert (job.status.state, job.status.start_time) == ("Suspended", None)
        assert admitted_words(job) == ("False", "Queued", "Queue a: the job has been handed to Kueue.")
        assert job.spec.run_policy.suspend is None

    def test_nothing_is_asked_for_twice(self) -> None:
        job = waiting(queued())
        assert plan(job, seen(workload(job)), NOW) == Effects()

    def test_a_job_without_a_queue_asks_for_nothing(self) -> None:
        job = make_mxjob().worker(1).obj()
        assert priority_wanted(job, seen()) is None
        answer = plan(job, seen(), NOW)
        assert [type(each) for each in answer.actions] == [CreatePod]
        assert all(each.type != conditions.ADMITTED for each in after(job, answer).status.conditions)

    @pytest.mark.parametrize(
        ("told", "fields", "words"),
        [
            ((PENDING,), {}, ("Pending", "Queue a: 4 more needed")),
            (
                (("QuotaReserved", "False", "Inadmissible", "LocalQueue a doesn't exist"),),
                {},
                ("Inadmissible", "Queue a: LocalQueue a doesn't exist"),
            ),
            (
                (QUOTA, ("Admitted", "False", "NoChecks", "")),
                {"checks": (AdmissionCheck("nodes", "Pending", "no room"), AdmissionCheck("ok", "Ready"))},
                (
                    "AdmissionChecksPending",
                    "Queue a: quota is reserved, and admission checks are pending (nodes: no room).",
                ),
            ),
            (
                (("Evicted", "True", "Deactivated", "The workload is deactivated"), PENDING),
                {"active": False},
                (
                    "Deactivated",
                    "Queue a: Workload mxjob-digits-uid-o is not active: The workload is deactivated. It waits until"
                    " spec.active of that is true again, or the job is suspended and resumed.",
                ),
            ),
        ],
        ids=["no room", "unknown queue", "checks", "deactivated"],
    )
    def test_a_waiting_job_says_what_kueue_says(self, told: Any, fields: dict[str, Any], words: Any) -> None:
        job = waiting(queued())
        answer = plan(job, seen(workload(job, *told, **fields)), NOW + 4 * SECOND)
        assert admitted_words(after(job, answer)) == ("False", *words)
        warns = words[0] in ("Inadmissible", "Deactivated")
        assert [each.reason for each in answer.events] == ([words[0]] if warns else [])
        assert answer.actions == ()

    def test_words_that_change_often_are_passed_on_every_three_seconds(self) -> None:
        job = waiting(queued())
        job = after(job, plan(job, seen(workload(job, PENDING)), NOW))
        again = ("QuotaReserved", "False", "Pending", "3 more needed")
        answer = plan(job, seen(workload(job, again)), NOW + 2 * SECOND)
        assert (answer.status, answer.requeue_after) == (None, SECOND)
        job = after(job, plan(job, seen(workload(job, again)), NOW + 3 * SECOND))
        assert admitted_words(job)[2] == "Queue a: 3 more needed"

    def test_what_is_asked_for_follows_the_job_while_it_waits(self) -> None:
        job = waiting(queued())
        old = workload(job, PENDING)
        moved = msgspec.structs.replace(job, metadata=queued(queue="b").metadata)
        answer = plan(moved, seen(old), NOW)
        digest = asks_for(with_defaults(moved))
        assert answer.actions == (ChangeQueueWorkload(old.name, old.uid, "7", digest, PRIORITY),)

    def test_another_program_keeps_its_place(self) -> None:
        job = waiting(queued())
        other = queued(make_mxjob().scheduler().worker(2, resources=GPU, command=["other"], image="another"))
        assert asks_for(with_defaults(job)) == asks_for(with_defaults(other))


class TestPriority:
    @pytest.mark.parametrize(
        ("label", "policy", "template", "wanted"),
        [
            ("urgent", "high", "low", QueuePriority("WorkloadPriorityClass", "urgent")),
            ("", "high", "low", QueuePriority("PriorityClass", "high")),
            ("", "", "low", QueuePriority("PriorityClass", "low")),
            ("", "", "", QueuePriority("PriorityClass", "")),
        ],
    )
    def test_it_is_the_labels_else_the_run_policys_else_the_templates_as_in_kueues_kubeflow_integration(
        self, label: str, policy: str, template: str, wanted: QueuePriority
    ) -> None:
        builder = make_mxjob().worker(1).run_policy(schedulingPolicy={"priorityClass": policy})
        if template:
            builder.template("Worker", priorityClassName=template)
        job = queued(builder, **({"priority_class": label} if label else {}))
        assert priority_wanted(job, seen()) == wanted

    def test_another_one_in_the_run_policy_is_asked_for_while_the_job_waits_unless_a_label_decides(self) -> None:
        def job(policy: str, **labels: str) -> MXJob:
            return queued(make_mxjob().worker(1).run_policy(schedulingPolicy={"priorityClass": policy}), **labels)

        entered, changed = workload(job("low"), PENDING), job("high")
        assert priority_wanted(changed, seen(entered)) == QueuePriority("PriorityClass", "high")
        read = QueuePriority("PriorityClass", "high", value=7)
        (change,) = plan(waiting(changed), seen(entered, priority=read), NOW).actions
        assert isinstance(change, ChangeQueueWorkload)
        assert (change.priority, change.asks_for) == (read, asks_for(with_defaults(changed)))
        labelled = (asks_for(with_defaults(job(policy, priority_class="label"))) for policy in ("high", "low"))
        assert len(set(labelled)) == 1

    def test_a_class_that_can_not_be_read_is_told_and_nothing_enters_the_queue(self) -> None:
        job = queued(priority_class="nope")
        missing = QueuePriority("WorkloadPriorityClass", "nope", problem="not found")
        answer = plan(job, seen(priority=missing), NOW)
        words = "The job waits until WorkloadPriorityClass nope can be read: not found"
        assert admitted_words(after(job, answer)) == ("False", "PriorityClassUnreadable", words)
        assert (answer.actions, answer.requeue_after) == ((), 15 * SECOND)
        assert [(each.type, each.message) for each in answer.events] == [("Warning", words)]


class TestLongestRun:
    @pytest.mark.parametrize("text", ["24h", "0", "9999999999", "2147483648", "-", ""])
    def test_a_limit_that_kueue_can_not_take_is_said_while_the_job_waits_and_runs(self, text: str) -> None:
        job = queued(max_exec_time_seconds=text)
        words = (
            f'The label kueue.x-k8s.io/max-exec-time-seconds has no effect: "{text}" is no whole number of seconds from'
            " 1 to 2147483647."
        )
        for observed in (seen(), seen(workload(job, PENDING)), seen(workload(job, QUOTA, ADMITTED))):
            told = admitted_words(after(job, plan(job, observed, NOW)))[2]
            assert told.endswith((f". {words}", f" needed {words}"))

    @pytest.mark.parametrize("text", ["1", "86400", "2147483647", "007"])
    def test_one_that_it_takes_needs_no_word(self, text: str) -> None:
        job = queued(max_exec_time_seconds=text)
        assert "has no effect" not in admitted_words(waiting(job))[2]


class TestAdmitted:
    def test_an_admitted_job_gets_its_pods_where_its_flavor_is(self) -> None:
        job = waiting(queued())
        answer = plan(job, seen(workload(job, QUOTA, ADMITTED)), NOW + SECOND)
        pods = [each for each in answer.actions if isinstance(each, CreatePod)]
        assert [each.type for each in pods] == ["Worker", "Worker", "Scheduler"]
        for each in pods:
            (added,) = each.additions
            assert added.node_selector == (("pool", "gpu"),)
            assert added.tolerations == (TOLERATION,)
        job = after(job, answer)
        assert admitted_words(job) == ("True", "Admitted", "Admitted by ClusterQueue team-a with flavor gpu.")
        assert (job.status.state, job.status.start_time) == ("Created", NOW + SECOND)
        assert [(each.type, each.reason) for each in answer.events] == [("Normal", "Admitted")]

    def test_what_an_admission_check_adds_is_added_and_wins_over_the_flavors(self) -> None:
        job = waiting(queued())
        update = PodSetUpdate("worker", {"l": "1"}, {"a": "2"}, {"zone": "b", "pool": "new"}, [TOLERATION])
        checks = (AdmissionCheck("provisioned", "Ready", "", [update]),)
        answer = plan(job, seen(workload(job, QUOTA, ADMITTED, checks=checks)), NOW)
        placements = {each.type: each.additions[0] for each in answer.actions if isinstance(each, CreatePod)}
        assert placements["Worker"].node_selector == (("pool", "new"), ("zone", "b"))
        assert placements["Worker"].tolerations == (TOLERATION,)
        assert ("l", "1") in placements["Worker"].labels
        assert ("a", "2") in placements["Worker"].annotations
        assert placements["Scheduler"].node_selector == (("pool", "gpu"),)

    def test_a_flavor_that_can_not_be_read_holds_the_pods_back_and_is_told(self) -> None:
        job = waiting(queued())
        of = workload(job, QUOTA, ADMITTED)
        assert flavors_wanted(job, seen(of)) == ("gpu",)
        answer = plan(job, seen(of, flavors=(ResourceFlavor(name="gpu", problem="forbidden"),)), NOW + SECOND)
        assert answer.actions == ()
        assert admitted_words(after(job, answer))[1:] == (
            "ResourceFlavorUnreadable",
            "The job is admitted and gets no pods before ResourceFlavor gpu can be read: forbidden",
        )

    def test_a_job_that_runs_asks_for_no_flavor_and_says_that_its_pods_are_ready(self) -> None:
        job = waiting(queued())
        job, pods = running(job)
        of = workload(job, QUOTA, ADMITTED)
        assert flavors_wanted(job, seen(of, *pods)) == ()
        answer = plan(job, seen(of, *pods, flavors=()), NOW)
        (told,) = [each for each in answer.actions if isinstance(each, SetQueueConditions)]
        ready = told.conditions[-1]
        assert (ready.type, ready.status, ready.reason) == ("PodsReady", "True", "Started")
        assert [each.type for each in told.conditions[:-1]] == ["QuotaReserved", "Admitted"]
        assert (told.resource_version, told.gives_quota_back) == ("7", False)
        done = workload(job, QUOTA, ADMITTED, ("PodsReady", "True", "Started", ""))
        assert plan(job, seen(done, *pods), NOW).actions == ()

    def test_a_restart_keeps_the_quota_and_says_that_pods_are_waited_for(self) -> None:
        job = queued(make_mxjob().scheduler().worker(2, resources=GPU).restart("OnFailure"))
        job, pods = running(waiting(job))
        failed = msgspec.structs.replace(pods[2], phase="Failed", exit_code=137, finished_at=NOW)
        of = workload(job, QUOTA, ADMITTED, ("PodsReady", "True", "Started", ""))
        job = after(job, plan(job, seen(of, *pods[:2], failed), NOW))
        assert job.status.state == "Restarting"
        answer = plan(job, seen(of), NOW + 60 * SECOND)
        (told,) = [each for each in answer.actions if isinstance(each, SetQueueConditions)]
        assert (told.conditions[-1].status, told.conditions[-1].reason) == ("False", "WaitForRecovery")
        assert {each.attempt for each in answer.actions if isinstance(each, CreatePod)} == {1}

    def test_a_restart_that_needs_more_than_was_admitted_queues_anew(self) -> None:
        job, _ = running(waiting(queued()))
        more = msgspec.structs.replace(
            job, spec=queued(make_mxjob().scheduler().worker(2, resources={"limits": {"nvidia.com/gpu": 8}})).spec
        )
        status = msgspec.structs.replace(more.status, restarts=1, conditions=more.status.conditions[:1])
        more = msgspec.structs.replace(more, status=status)
        of = workload(job, QUOTA, ADMITTED)
        answer = plan(more, seen(of), NOW)
        deletion = DeleteQueueWorkload(of.name, of.uid, of.resource_version)
        while answer.status is not None and deletion not in answer.actions:
            more = after(more, answer)
            answer = plan(more, seen(of), NOW)
        assert not [each for each in answer.actions if isinstance(each, CreatePod)]


class TestGivingBack:
    def test_an_evicted_job_gives_its_quota_back_only_once_its_pods_have_gone(self) -> None:
        job, pods = running(waiting(queued()))
        of = workload(job, QUOTA, ADMITTED, EVICTED, ("PodsReady", "True", "Started", ""))
        raised = plan(job, seen(of, *pods), NOW)
        assert raised.actions == ()
        assert [(each.type, each.reason) for each in raised.events] == [("Warning", "Evicted")]
        job = after(job, raised)
        assert (job.status.restarts, job.status.restarts_count_towards_max) == (1, 0)
        assert admitted_words(job) == ("False", "Evicted", "Queue a: Preempted: by another job")
        deleting = plan(job, seen(of, *pods), NOW)
        assert {type(each) for each in deleting.actions} == {DeletePod}
        going = tuple(msgspec.structs.replace(each, deleting=True) for each in pods)
        assert plan(job, seen(of, *going[:1]), NOW).actions == ()
        gone = plan(job, seen(of), NOW)
        (back,) = gone.actions
        assert isinstance(back, SetQueueConditions)
        assert back.gives_quota_back
        assert {each.type: (each.status, each.reason) for each in back.conditions} == {
            "QuotaReserved": ("False", "Pending"),
            "Admitted": ("False", "NoReservation"),
            "Evicted": ("True", "Preempted"),
            "PodsReady": ("False", "WaitForStart"),
            "Requeued": ("True", "Preempted"),
        }
        assert after(job, gone).status.state == "Suspended"

    @pytest.mark.parametrize(
        ("reason", "at_once"),
        [("Preempted", "True"), ("NodeFailures", "True"), ("PodsReadyTimeout", "False"), ("Deactivated", "False")],
    )
    def test_kueue_decides_when_a_job_queues_again_unless_it_was_preempted(self, reason: str, at_once: str) -> None:
        job = waiting(queued())
        of = workload(job, QUOTA, ADMITTED, ("Evicted", "True", reason, ""))
        (back,) = plan(job, seen(of), NOW).actions
        assert isinstance(back, SetQueueConditions)
        assert [each.status for each in back.conditions if each.type == "Requeued"] == [at_once]

    def test_conditions_are_written_with_all_that_their_schema_requires(self) -> None:
        job = waiting(queued())
        of = workload(job, QUOTA, ADMITTED, ("Evicted", "True", "Preempted", ""))
        (back,) = plan(job, seen(of), NOW).actions
        assert isinstance(back, SetQueueConditions)
        required = {"type", "status", "reason", "message", "lastTransitionTime"}
        assert [set(each) for each in msgspec.to_builtins(back.conditions)] == [required] * 4


class TestWithoutKueue:
    def test_the_job_runs_and_says_that_its_queue_is_ignored(self) -> None:
        job = queued()
        answer = plan(job, seen(kinds=KindsState("Absent")), NOW)
        assert [type(each) for each in answer.actions] == [CreatePod] * 3
        status, reason, message = admitted_words(after(job, answer))
        assert (status, reason) == ("False", "KueueNotInstalled")
        assert "The queue a is ignored and the job runs outside of any quota" in message
        assert [(each.type, each.reason) for each in answer.events] == [("Warning", "KueueNotInstalled")]

    def test_nothing_is_decided_before_the_server_has_said_whether_it_has_queues(self) -> None:
        assert plan(queued(), seen(kinds=KindsState("Unknown")), NOW) == Effects(requeue_after=SECOND)

    def test_a_new_job_waits_where_workloads_may_not_be_read_and_says_so(self) -> None:
        job = queued()
        answer = plan(job, seen(kinds=KindsState("Unknown", "forbidden")), NOW)
        assert answer.actions == ()
        status, reason, message = admitted_words(after(job, answer))
        assert (status, reason) == ("False", "KueueUnreadable")
        assert message == "The queue a can't be asked, and the job gets no pods before it can: forbidden"

    def test_a_job_that_could_not_be_reconciled_before_waits_and_says_so(self) -> None:
        job = queued()
        told = reconcile_failed(job.metadata.name, (), "Forbidden", "The API server answers 403", NOW)
        job = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, conditions=told, state="Created"))
        answer = plan(job, seen(kinds=KindsState("Unknown", "forbidden")), NOW)
        assert after(job, answer).status.state == "Suspended"

    def test_a_job_that_runs_goes_on_where_workloads_may_no_longer_be_read(self) -> None:
        job, pods = running(waiting(queued()))
        answer = plan(job, seen(None, *pods, kinds=KindsState("Unknown", "forbidden")), NOW)
        assert (answer.actions, after(job, answer).status.state) == ((), "Running")

    def test_a_job_that_has_begun_gets_no_further_pods_where_workloads_may_no_longer_be_read(self) -> None:
        job = waiting(queued())
        job = after(job, plan(job, seen(workload(job, QUOTA, ADMITTED)), NOW))
        worker = make_pod(job, "Worker", 0).running().obj()
        answer = plan(job, seen(None, worker, kinds=KindsState("Unknown", "forbidden")), NOW)
        assert answer.actions == ()
        assert after(job, answer).status.state == "Created"
        readable = plan(job, seen(workload(job, QUOTA, ADMITTED), worker), NOW)
        assert sum(isinstance(each, CreatePod) for each in readable.actions) == 2


def test_a_template_with_kueues_labels_is_warned_of() -> None:
    for label, warned in (("kueue.x-k8s.io/pod-group-name", True), (QUEUE_LABEL, True), ("team", False)):
        job = make_mxjob().worker(1).template_metadata("Worker", labels={label: "a"}).obj()
        told = [each.reason for each in plan(job, Observed(), NOW).events]
        assert ("KueuePodGroup" in told) == warned
