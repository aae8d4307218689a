"""A gang that waits on a scheduler that forgets it: its pod group is changed, has a name of its own, and goes last."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, make_services, plan

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.gang import (
    PODGROUPS,
    READY_PODGROUPS,
    UNIQUE_PODGROUPS,
    CreatePodGroup,
    DeletePodGroup,
    DeletePodGroupInForeground,
    PodGroupView,
    TouchPodGroup,
    fingerprint,
    gang_of,
    unique_group_name,
)
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import TouchChild
from mxnet_operator.plan.children import SERVICES, ChildRule

GANGS = (GangPolicy(),)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
REJECTED = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
LACKS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def created(**policy: Any) -> MXJob:
    """A job of four pods whose first status is written."""
    builder = make_mxjob().scheduler().server(1).worker(2).condition("Created")
    return builder.run_policy(**policy).obj() if policy else builder.obj()


def group(job: MXJob, **fields: Any) -> PodGroupView:
    """The job's pod group as it should be."""
    gang = gang_of(with_defaults(job))
    assert gang is not None
    name = unique_group_name(job)
    view = PodGroupView(name=name, uid="g", owner_uid=job.metadata.uid, fingerprint=fingerprint(gang))
    return msgspec.structs.replace(view, **fields)


def rejected(job: MXJob) -> list[PodBuilder]:
    """Every pod of the job, created now, and rejected by the scheduler."""
    specs = with_defaults(job).spec.mx_replica_specs
    pods = [make_pod(job, kind, index) for kind, spec in specs.items() for index in range(spec.replicas or 0)]
    return [pod.unscheduled().set(created_at=NOW, unschedulable=REJECTED) for pod in pods]


def look(
    job: MXJob, pods: list[PodBuilder], after: timedelta, *groups: PodGroupView, rule: ChildRule = UNIQUE_PODGROUPS
) -> Effects:
    views = tuple(pod.obj() for pod in pods)
    observed = Observed(views, (*make_services(job), *(groups or (group(job),))))
    return plan(job, observed, NOW + after, rules=(SERVICES, rule), integrations=GANGS)


def touches(answer: Effects) -> list[TouchChild]:
    return [action for action in answer.actions if isinstance(action, TouchChild)]


class TestTouch:
    def test_the_group_of_a_gang_that_waits_is_changed_after_half_a_minute(self) -> None:
        job = created()
        early = look(job, rejected(job), 29 * SECOND)
        assert touches(early) == []
        assert early.requeue_after == SECOND
        due = look(job, rejected(job), 30 * SECOND)
        assert touches(due) == [TouchPodGroup(unique_group_name(job), "g", NOW + 30 * SECOND)]
        assert due.requeue_after is not None
        assert due.requeue_after <= 30 * SECOND

    @pytest.mark.parametrize(
        ("waited", "interval"),
        [
            (30 * SECOND, 30 * SECOND),
            (4 * MINUTE, 30 * SECOND),
            (8 * MINUTE, MINUTE),
            (16 * MINUTE, 2 * MINUTE),
            (600 * MINUTE, 2 * MINUTE),
        ],
    )
    def test_and_again_after_an_eighth_of_its_wait_between_half_a_minute_and_two(
        self, waited: timedelta, interval: timedelta
    ) -> None:
        job = created()
        touched = group(job, touched_at=NOW + waited)
        assert touches(look(job, rejected(job), waited + interval - SECOND, touched)) == []
        assert len(touches(look(job, rejected(job), waited + interval, touched))) == 1

    def test_pods_that_come_later_begin_the_wait_anew(self) -> None:
        job = created()
        pods = rejected(job)
        pods[1].set(created_at=NOW + 20 * SECOND)
        touched = group(job, touched_at=NOW - MINUTE)
        assert touches(look(job, pods, 49 * SECOND, touched)) == []
        assert len(touches(look(job, pods, 50 * SECOND, touched))) == 1

    def test_a_time_that_is_far_ahead_keeps_nothing_waiting(self) -> None:
        job = created()
        assert len(touches(look(job, rejected(job), MINUTE, group(job, touched_at=NOW + 600 * MINUTE)))) == 1

    def test_what_the_scheduler_has_written_last_does_not_matter(self) -> None:
        job = created()
        pods = rejected(job)
        pods[0].set(unschedulable=LACKS)
        assert len(touches(look(job, pods, MINUTE))) == 1

    @pytest.mark.parametrize(
        "fields",
        [{"node_name": "node", "unschedulable": ""}, {"unschedulable": ""}, {"deleting": True}],
        ids=["one has a node", "one was not tried yet", "one terminates"],
    )
    def test_it_is_left_alone_while_the_gang_is_not_rejected_as_a_whole(self, fields: dict[str, Any]) -> None:
        job = created()
        pods = rejected(job)
        pods[2].set(**fields)
        assert touches(look(job, pods, MINUTE)) == []

    def test_the_group_is_left_alone_while_it_terminates_or_has_fewer_pods_than_its_minimum(self) -> None:
        job = created()
        assert touches(look(job, rejected(job), MINUTE, group(job, deleting=True))) == []
        too_many = created(schedulingPolicy={"minAvailable": 5})
        assert touches(look(too_many, rejected(too_many), MINUTE)) == []

    @pytest.mark.parametrize("rule", [PODGROUPS, READY_PODGROUPS])
    def test_other_schedulers_need_no_such_thing(self, rule: ChildRule) -> None:
        job = created()
        assert touches(look(job, rejected(job), MINUTE, rule=rule)) == []


class TestName:
    def test_it_is_another_for_a_job_that_has_the_name_of_an_earlier_one_and_after_a_suspension(self) -> None:
        job = created()
        metadata = msgspec.structs.replace(job.metadata, uid="another")
        status = msgspec.structs.replace(job.status, restarts=1, first_attempt=1)
        others = (msgspec.structs.replace(job, metadata=metadata), msgspec.structs.replace(job, status=status))
        assert len({unique_group_name(each) for each in (job, *others)}) == 3

    def test_it_stays_when_the_gang_restarts_after_a_failure(self) -> None:
        job = created()
        status = msgspec.structs.replace(job.status, restarts=1)
        assert unique_group_name(msgspec.structs.replace(job, status=status)) == unique_group_name(job)

    def test_it_is_a_value_of_a_label_for_the_longest_names(self) -> None:
        job = created()
        longest = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, name="a" * 63))
        assert len(unique_group_name(longest)) == 63

    def test_the_group_is_created_by_it(self) -> None:
        job = created()
        actions = plan(
            job, Observed((), make_services(job)), NOW, rules=(SERVICES, UNIQUE_PODGROUPS), integrations=GANGS
        ).actions
        assert [a.name for a in actions if isinstance(a, CreatePodGroup)] == [unique_group_name(job)]


class TestEnd:
    """The scheduler gives up what it reserved for a pod only while it knows the pod's group."""

    def test_the_group_of_a_suspended_job_goes_after_its_pods(self) -> None:
        job = created(suspend=True)
        pods = rejected(job)
        raised = look(job, pods, SECOND).status
        assert raised is not None
        named_before = group(job)
        job = msgspec.structs.replace(job, status=raised)
        assert not any(isinstance(a, DeletePodGroup) for a in look(job, pods, SECOND, named_before).actions)
        gone = look(job, [], SECOND, named_before)
        assert DeletePodGroupInForeground(named_before.name, "g") in gone.actions

    @pytest.mark.parametrize("policy", ["None", "Running", "All"])
    def test_that_of_a_finished_one_goes_once_no_pod_runs(self, policy: str) -> None:
        builder = make_mxjob().worker(2).condition("Created").condition("Succeeded")
        job = builder.run_policy(cleanPodPolicy=policy).obj()
        runs = [make_pod(job, "Worker", 0).succeeded(), make_pod(job, "Worker", 1).running()]
        assert not any(isinstance(a, DeletePodGroup) for a in look(job, runs, SECOND).actions)
        ended = [make_pod(job, "Worker", index).succeeded() for index in (0, 1)]
        assert DeletePodGroupInForeground(unique_group_name(job), "g") in look(job, ended, SECOND).actions
