"""The gang of a job: which jobs have one, what it asks for, and what a change of it leads to."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, condition, make_mxjob, make_pod, make_services
from builders import plan as decided

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.integrations.gangs.gang import (
    PODGROUPS,
    READY_PODGROUPS,
    CreatePodGroup,
    DeletePodGroup,
    Gang,
    PodGroupView,
    ReleasePodGroup,
    fingerprint,
    gang_of,
)
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects, Observed, Reads
from mxnet_operator.plan import plan as decide
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.children import SERVICES, ChildRule

GANGS = (GangPolicy(),)
GPU = "nvidia.com/gpu"
ONE_GPU = {"limits": {GPU: "1"}}
WAITS = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
LACKS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: not eligible"
MINUTE = timedelta(minutes=1)


def gang(builder: JobBuilder) -> Gang | None:
    return gang_of(with_defaults(builder.obj()))


def created(workers: int = 3, **policy: Any) -> MXJob:
    """A job of a scheduler, a server and workers of a GPU each, whose first status is written."""
    builder = make_mxjob().scheduler().server(1).worker(workers, resources=ONE_GPU).condition("Created")
    return builder.run_policy(schedulingPolicy=policy).obj() if policy else builder.obj()


def group(job: MXJob, **fields: Any) -> PodGroupView:
    """The job's pod group as it should be."""
    of_job = gang_of(with_defaults(job))
    assert of_job is not None
    view = PodGroupView(name="digits", uid="g", owner_uid=job.metadata.uid, fingerprint=fingerprint(of_job))
    return msgspec.structs.replace(view, **fields)


def observed(job: MXJob, *pods: PodBuilder, groups: tuple[PodGroupView, ...] = ()) -> Observed:
    return Observed(tuple(pod.obj() for pod in pods), (*make_services(job), *groups))


def plan(job: MXJob, seen: Observed, now: datetime, rule: ChildRule = PODGROUPS) -> Effects:
    return decided(job, seen, now, rules=(SERVICES, rule), integrations=GANGS)


def all_pods(job: MXJob) -> list[PodBuilder]:
    """Every pod of the job, created a moment ago and without a node."""
    numbers = with_defaults(job).spec.mx_replica_specs
    pods = [make_pod(job, kind, i) for kind, spec in numbers.items() for i in range(spec.replicas or 0)]
    return [pod.unscheduled().set(created_at=NOW) for pod in pods]


def said(answer: Effects, condition_type: str = "PodsScheduled") -> Condition | None:
    return condition(answer, condition_type)


class TestWhichJobs:
    def test_a_job_of_several_pods_has_a_gang_of_all_without_asking(self) -> None:
        found = gang(make_mxjob().gang(servers=2, workers=2))
        assert (found.members, found.minimum) == (5, 5)

    @pytest.mark.parametrize(
        "builder",
        [
            make_mxjob().worker(1),
            make_mxjob().worker(3).run_policy(restartScope="Replica"),
            make_mxjob().worker(2).template("Worker", schedulingGroup={"podGroupName": "mine"}),
            make_mxjob().worker(2).template_metadata("Worker", labels={"scheduling.x-k8s.io/pod-group": "mine"}),
            make_mxjob().worker(2).template_metadata("Worker", annotations={"scheduling.k8s.io/group-name": "mine"}),
        ],
        ids=["one pod", "pods restart one by one", "native group", "coscheduling group", "volcano group"],
    )
    def test_others_have_none(self, builder: JobBuilder) -> None:
        assert gang(builder) is None

    def test_a_lone_worker_has_one_if_it_asks(self) -> None:
        found = gang(make_mxjob().worker(1).run_policy(schedulingPolicy={"queue": "fast"}))
        assert (found.minimum, found.queue) == (1, "fast")


class TestWhatItAsksFor:
    def test_the_sum_of_what_its_pods_ask_for_however_they_write_it(self) -> None:
        resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"alpha.kubernetes.io/nvidia-gpu": 2}}
        found = gang(make_mxjob().worker(3, resources=resources))
        assert found.resources == {"cpu": "1.5", "memory": "3221225472", GPU: "6"}

    def test_of_the_first_pods_only_where_fewer_will_do(self) -> None:
        found = gang_of(with_defaults(created(workers=4, minAvailable=3)))
        assert (found.minimum, found.resources) == (3, {GPU: "1"})

    def test_what_its_user_says_instead(self) -> None:
        policy = {"minResources": {GPU: 2, "cpu": "1"}, "priorityClass": "high", "scheduleTimeoutSeconds": 60}
        found = gang_of(with_defaults(created(**policy)))
        assert (found.resources, found.priority_class, found.schedule_timeout) == ({GPU: "2", "cpu": "1"}, "high", 60)

    def test_the_priority_class_of_its_templates_where_all_have_it(self) -> None:
        both = make_mxjob().scheduler().worker(2).template("Scheduler", priorityClassName="high")
        mixed = gang(both)
        alike = gang(both.template("Worker", priorityClassName="high"))
        assert (mixed.priority_class, alike.priority_class) == ("", "high")


class TestObjects:
    def test_the_group_is_created_in_the_plan_of_the_pods_and_before_them(self) -> None:
        job = created()
        actions = plan(job, observed(job), NOW).actions
        kinds = [type(action) for action in actions]
        assert kinds == [CreatePodGroup, *[CreatePod] * 5]

    def test_where_no_gang_scheduler_is_served_there_is_none_and_the_user_hears_of_it(self) -> None:
        job = make_mxjob().worker(2).run_policy(schedulingPolicy={"minAvailable": 2, "queue": "a"}).obj()
        answer = decided(job, Observed(), NOW, integrations=GANGS)
        assert not [action for action in answer.actions if isinstance(action, CreatePodGroup)]
        (event,) = (event for event in answer.events if event.reason == "UnsupportedField")
        assert "minAvailable, queue" in event.message

    def test_a_group_of_other_numbers_is_replaced_while_the_gang_waits(self) -> None:
        job = created(minAvailable=5)
        outdated = group(created(minAvailable=4))
        pods = all_pods(job)
        assert plan(job, observed(job, *pods, groups=(outdated,)), NOW).actions == (DeletePodGroup("digits", "g"),)
        held = msgspec.structs.replace(outdated, deleting=True, finalizers=("podgroup-protection",))
        assert plan(job, observed(job, *pods, groups=(held,)), NOW).actions == (ReleasePodGroup("digits", "g"),)
        (again,) = plan(job, observed(job, *pods), NOW).actions
        assert isinstance(again, CreatePodGroup)
        assert again.fingerprint == group(job).fingerprint

    def test_nothing_is_taken_from_under_a_gang_that_has_nodes(self) -> None:
        job, outdated = created(minAvailable=5), group(created(minAvailable=4))
        pods = [pod.set(node_name="node") for pod in all_pods(job)]
        assert plan(job, observed(job, *pods, groups=(outdated,)), NOW).actions == ()

    def test_no_pod_is_created_while_a_group_is_replaced_or_on_its_way_out(self) -> None:
        job = created(minAvailable=5)
        for found in (group(created(minAvailable=4)), group(job, deleting=True)):
            actions = plan(job, observed(job, groups=(found,)), NOW).actions
            assert not [action for action in actions if isinstance(action, CreatePod)]

    def test_a_back_end_that_lets_no_pods_in_yet_is_waited_for_and_quoted(self) -> None:
        job = created()
        waiting = group(job, ready=False, says="0/5 tasks in gang unschedulable")
        answer = plan(job, observed(job, groups=(waiting,)), NOW, READY_PODGROUPS)
        assert answer.actions == ()
        assert said(answer).reason == "PodGroupPending"
        assert said(answer).message.endswith("waits for its queue: 0/5 tasks in gang unschedulable")
        ready = plan(job, observed(job, groups=(group(job),)), NOW, READY_PODGROUPS)
        assert len([action for action in ready.actions if isinstance(action, CreatePod)]) == 5

    def test_a_back_end_that_says_later_why_it_lets_no_pods_in_is_quoted_then(self) -> None:
        job = created()
        first = plan(job, observed(job, groups=(group(job, ready=False),)), NOW, READY_PODGROUPS)
        assert said(first).message.endswith("waits for its queue")
        job = msgspec.structs.replace(job, status=first.status)
        lacks = group(job, ready=False, says="queue resource quota insufficient")
        at_once = plan(job, observed(job, groups=(lacks,)), NOW + timedelta(seconds=1), READY_PODGROUPS)
        assert (at_once.status, at_once.requeue_after) == (None, timedelta(seconds=3))
        later = plan(job, observed(job, groups=(lacks,)), NOW + timedelta(seconds=4), READY_PODGROUPS)
        assert said(later).message.endswith("waits for its queue: queue resource quota insufficient")

    @pytest.mark.parametrize("policy", ["None", "Running", "All"])
    def test_a_job_that_is_over_gives_it_up_under_every_clean_pod_policy(self, policy: str) -> None:
        builder = make_mxjob().worker(2).condition("Created").condition("Succeeded")
        job = builder.run_policy(cleanPodPolicy=policy).obj()
        assert DeletePodGroup("digits", "g") in plan(job, observed(job, groups=(group(job),)), NOW).actions


class TestWhatItSays:
    def test_kube_schedulers_words_for_each_pod_are_added_up(self) -> None:
        job = created(workers=3)
        pods = [pod.set(unschedulable=WAITS) for pod in all_pods(job)]
        pods[3:] = [pod.set(unschedulable=LACKS) for pod in pods[3:]]
        told = said(plan(job, observed(job, *pods, groups=(group(job),)), NOW))
        assert told.message == f"3 of 5 can be placed, missing 2 {GPU}: worker-1, worker-2 can't be placed: {LACKS}"

    def test_scheduler_plugins_says_the_gap_itself(self) -> None:
        words = "resource gap: map[nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}]"
        job = created(workers=3)
        pods = [pod.set(unschedulable=words) for pod in all_pods(job)]
        told = said(plan(job, observed(job, *pods, groups=(group(job),)), NOW))
        assert told.message.startswith(f"0 of 5 placed, missing 2 {GPU}: ")

    def test_other_numbers_are_said_after_four_seconds_and_not_before(self) -> None:
        job = created(workers=3)
        pods = [pod.set(unschedulable=LACKS) for pod in all_pods(job)]
        for _ in range(2):  # the second look records that all pods have existed
            status = plan(job, observed(job, *pods, groups=(group(job),)), NOW).status
            assert status is not None
            job = msgspec.structs.replace(job, status=status)
        changed = observed(job, *(pod.set(unschedulable=WAITS) for pod in pods[:4]), pods[4], groups=(group(job),))
        soon = plan(job, changed, NOW + timedelta(seconds=2))
        assert soon.status is None
        assert soon.requeue_after == timedelta(seconds=2)
        later = plan(job, changed, NOW + timedelta(seconds=4))
        assert said(later).message.startswith("4 of 5 can be placed, missing 1 ")

    def test_more_than_there_are_is_said_at_once(self) -> None:
        job = created(workers=1, minAvailable=10)
        told = said(plan(job, observed(job), NOW))
        assert told.reason == "MinAvailableTooLarge"
        assert "minAvailable is 10, and the job has 3 pods: set it to 3 or less" in told.message


class TestWaitingTooLong:
    def test_the_schedule_timeout_ends_a_job_that_is_not_placed(self) -> None:
        job = created(workers=3, scheduleTimeoutSeconds=60)
        pods = [pod.set(unschedulable=LACKS) for pod in all_pods(job)]
        found = observed(job, *pods, groups=(group(job),))
        before = plan(job, found, NOW + MINUTE - timedelta(seconds=1))
        assert before.status is None or before.status.state == "Created"
        answer = plan(job, found, NOW + MINUTE)
        assert answer.status.state == "Failed"
        assert "could not be scheduled within 60 s (scheduleTimeoutSeconds): 0 of 5" in said(answer, "Failed").message

    def test_the_back_off_before_a_restart_is_no_wait_for_a_place(self) -> None:
        builder = make_mxjob().worker(2).restart("OnFailure").condition("Created").condition("Restarting")
        job = builder.run_policy(schedulingPolicy={"scheduleTimeoutSeconds": 60}).obj()
        answer = plan(job, observed(job), NOW + 10 * MINUTE)
        assert answer.status is None or answer.status.state == "Restarting"

    def test_one_of_which_enough_is_placed_goes_on(self) -> None:
        job = created(workers=3, scheduleTimeoutSeconds=60, minAvailable=4)
        pods = [pod.set(node_name="node", scheduled_at=NOW) for pod in all_pods(job)[:4]]
        found = observed(job, *pods, all_pods(job)[4], groups=(group(job),))
        answer = plan(job, found, NOW + 10 * MINUTE)
        assert answer.status is None or answer.status.state == "Created"

    def test_a_gang_that_holds_a_part_for_a_minute_gives_it_back_and_no_failure_is_counted(self) -> None:
        job = created(workers=3)
        pods = [pod.set(node_name="node", scheduled_at=NOW, phase="Running") for pod in all_pods(job)[:4]]
        pods.append(all_pods(job)[4].set(unschedulable=LACKS))
        found = observed(job, *pods, groups=(group(job),))
        soon = plan(job, found, NOW + timedelta(seconds=59))
        assert soon.requeue_after == timedelta(seconds=1)
        answer = plan(job, found, NOW + MINUTE)
        assert (answer.status.state, answer.status.restarts, answer.status.restarts_count_towards_max) == (
            "Restarting",
            1,
            0,
        )
        seen = msgspec.structs.replace(job.status, started_replicas={"Scheduler": 1, "Server": 1, "Worker": 3})
        known = msgspec.structs.replace(job, status=seen)
        assert decide(known, found, NOW + MINUTE, rules=(SERVICES, PODGROUPS), integrations=GANGS) == Reads(
            pods="labelled"
        )
        assert "gives back the room that it holds" in said(answer, "Restarting").message
        without = decided(job, observed(job, *pods), NOW + MINUTE, integrations=GANGS).status
        assert without is None or without.restarts == 0, "no scheduler was asked to place all at once"

    def test_pods_that_their_templates_place_are_held_from_their_creation_on(self) -> None:
        job = created(workers=3)
        pods = [pod.set(node_name="node", created_at=NOW, phase="Running") for pod in all_pods(job)[:4]]
        pods.append(all_pods(job)[4].set(unschedulable=LACKS, created_at=NOW - MINUTE))
        seen = observed(job, *pods, groups=(group(job),))
        early, late = plan(job, seen, NOW).status, plan(job, seen, NOW + MINUTE).status
        assert (early is None or early.restarts == 0) and late is not None and late.restarts == 1
