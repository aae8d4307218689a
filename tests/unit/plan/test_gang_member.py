"""Which pods of a job start together or not at all."""

from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, observe, plan

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.pod_additions import PodAdditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders import build_pod
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.integrations.gangs.local import gang_member
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects
from mxnet_operator.plan.actions import AnnotatePod, CreatePod, DeletePod

LOCAL, OTHER = GangPolicy(is_local=True), GangPolicy()
ATTEMPT_0 = "attempt-0/9/2026-11-21T12:00:00Z"


def job(scope: str, policy: dict[str, Any] | None = None, **status: Any) -> MXJob:
    more = {} if policy is None else {"schedulingPolicy": policy}
    made = with_defaults(make_mxjob().gang(servers=2, workers=6).run_policy(restartScope=scope, **more).obj())
    metadata = msgspec.structs.replace(made.metadata, creation_timestamp=NOW)
    return msgspec.structs.replace(made, metadata=metadata, status=msgspec.structs.replace(made.status, **status))


@pytest.mark.parametrize("attempt", [0, 3])
def test_an_attempt_of_a_job_that_restarts_whole_is_a_gang(attempt: int) -> None:
    assert (
        gang_member(job("Job", completed_indexes={"Worker": "0-1"}), attempt)
        == f"attempt-{attempt}/9/2026-11-21T12:00:00Z"
    )


def test_where_replicas_restart_alone_it_is_all_that_is_not_done() -> None:
    assert gang_member(job("Replica", completed_indexes={"Worker": "0-3"}), 2) == "job/5/2026-11-21T12:00:00Z"


def test_the_last_replica_is_a_gang_of_its_own() -> None:
    assert gang_member(
        job("Replica", completed_indexes={"Worker": "0-5", "Server": "0,1", "Scheduler": "0"}), 2
    ).startswith("job/1/")


def test_a_job_of_which_the_age_is_unknown_has_none() -> None:
    assert gang_member(with_defaults(make_mxjob().worker(1).obj()), 0) == "job/1/"


@pytest.mark.parametrize(
    ("scope", "minimum", "expected"),
    [
        ("Job", 4, f"{ATTEMPT_0}/4"),
        ("Job", 99, f"{ATTEMPT_0}/99"),  # more than the job has: never placed, and said
        ("Job", 0, ATTEMPT_0),
        ("Replica", 7, "job/5/2026-11-21T12:00:00Z/5"),
        ("Replica", 2, "job/5/2026-11-21T12:00:00Z/2"),
    ],
)
def test_as_many_pods_as_the_policy_says_are_placed_at_once(scope: str, minimum: int, expected: str) -> None:
    done = {"Worker": "0-3"} if scope == "Replica" else {}
    assert gang_member(job(scope, {"minAvailable": minimum}, completed_indexes=done), 0) == expected


class TestOnTheLocalCluster:
    """Its scheduler has no pod groups: what it is to know of a gang is on the pods."""

    def look(self, asked: MXJob, *pods: PodBuilder, policy: GangPolicy = LOCAL) -> Effects:
        return plan(asked, observe(asked, *pods), NOW, integrations=(policy,))

    def test_pods_get_the_priority_class_of_their_gang(self) -> None:
        asked = job("Job", {"priorityClass": "high"})
        created = [each for each in self.look(asked).actions if isinstance(each, CreatePod)]
        assert {added.priority_class for each in created for added in each.additions} == {"high"}
        elsewhere = [each for each in self.look(asked, policy=OTHER).actions if isinstance(each, CreatePod)]
        assert {added.priority_class for each in elsewhere for added in each.additions} == {""}

    def test_a_template_that_names_one_keeps_its_own(self) -> None:
        spec = make_mxjob().worker(1).template("Worker", priorityClassName="mine")
        built = build_pod(with_defaults(spec.obj()), "Worker", 0, 0, additions=(PodAdditions(priority_class="high"),))
        assert built["spec"]["priorityClassName"] == "mine"

    def test_pods_that_wait_are_given_other_numbers_and_placed_ones_are_left_alone(self) -> None:
        asked = job("Job", {"minAvailable": 3})
        waiting = make_pod(asked, "Worker", 0).unscheduled().set(gang_member=f"{ATTEMPT_0}/10")
        right = make_pod(asked, "Worker", 1).unscheduled().set(gang_member=f"{ATTEMPT_0}/3")
        placed = make_pod(asked, "Worker", 2).running()
        found = [each for each in self.look(asked, waiting, right, placed).actions if isinstance(each, AnnotatePod)]
        assert found == [
            AnnotatePod("digits-worker-0", waiting.obj().uid, names.GANG_MEMBER_ANNOTATION, f"{ATTEMPT_0}/3")
        ]
        assert not any(isinstance(each, AnnotatePod) for each in self.look(asked, waiting, policy=OTHER).actions)

    def test_more_than_the_job_has_is_said_at_once(self) -> None:
        answer = self.look(job("Job", {"minAvailable": 10}))
        assert answer.status is not None
        (told,) = (each for each in answer.status.conditions if each.type == "PodsScheduled")
        assert (told.status, told.reason) == ("False", "MinAvailableTooLarge")
        assert "minAvailable is 10, and the job has 9 pods: set it to 9 or less" in told.message

    def test_its_user_hears_of_fields_that_nothing_acts_on_and_of_no_other(self) -> None:
        every = {"minAvailable": 3, "priorityClass": "high", "queue": "a", "minResources": {"cpu": "1"}}
        (event,) = (each for each in self.look(job("Job", every)).events if each.reason == "UnsupportedField")
        assert event.message == (
            "Without effect in spec.runPolicy.schedulingPolicy: minResources, queue, since the local cluster has one"
            " queue, and goes by what the pods themselves request"
        )
        acted_on = {"minAvailable": 3, "priorityClass": "high", "scheduleTimeoutSeconds": 9}
        assert not [each for each in self.look(job("Job", acted_on)).events if each.reason == "UnsupportedField"]

    def waits(self, asked: MXJob, index: int, priority: str) -> PodBuilder:
        said = gang_member(asked, 0)
        return make_pod(asked, "Worker", index).unscheduled().set(gang_member=said, gang_priority=priority)

    @pytest.mark.parametrize(("before", "after"), [("low", "high"), ("", "high"), ("low", "")])
    @pytest.mark.parametrize("scope", ["Job", "Replica"])
    def test_pods_that_wait_by_another_priority_class_are_replaced(self, scope: str, before: str, after: str) -> None:
        asked = job(scope, {"priorityClass": after})
        pods = [self.waits(asked, index, before) for index in range(6)]
        answer = self.look(asked, *pods)
        assert answer.status is not None
        assert (answer.status.state, answer.status.restarts, answer.status.restarts_count_towards_max) == (
            "Restarting",
            1,
            0,
        )
        words = f"schedulingPolicy.priorityClass, from {before or 'none'} to {after or 'none'}"
        assert words in answer.status.conditions[-1].message
        restarted = msgspec.structs.replace(asked, status=answer.status)
        again = self.look(restarted, *pods)
        assert {each.name for each in again.actions if isinstance(each, DeletePod)} == {pod.obj().name for pod in pods}

    def test_however_many_wait_the_status_names_none_of_them(self) -> None:
        asked = make_mxjob().worker(1000).run_policy(restartScope="Replica", schedulingPolicy={"priorityClass": "high"})
        pods = [self.waits(asked.obj(), index, "low") for index in range(1000)]
        answer = self.look(asked.obj(), *pods)
        assert answer.status is not None
        assert (answer.status.restarts, answer.status.first_attempt, answer.status.restarting_pods) == (1, 1, ())
        again = self.look(msgspec.structs.replace(asked.obj(), status=answer.status), *pods)
        assert len([each for each in again.actions if isinstance(each, DeletePod)]) == 1000

    def test_once_a_pod_has_a_node_it_is_said_when_the_change_takes_effect(self) -> None:
        asked = job("Job", {"priorityClass": "high"})
        placed = make_pod(asked, "Worker", 0).running().set(gang_priority="low")
        answer = self.look(asked, placed, self.waits(asked, 1, "low"))
        assert answer.status is not None
        assert answer.status.restarts == 0
        assert ("Warning", "PriorityClassIgnored") in [(event.type, event.reason) for event in answer.events]
        (told,) = (each for each in answer.status.conditions if each.type == "PriorityClassIgnored")
        assert (told.status, told.reason) == ("True", "NotSuspended")
        assert "(from low to high): it takes effect after suspend and resume" in told.message
        said = msgspec.structs.replace(asked, status=answer.status)
        back = msgspec.structs.replace(said, spec=job("Job", {"priorityClass": "low"}).spec)
        taken_back = self.look(back, placed, self.waits(asked, 1, "low")).status
        assert taken_back is not None
        (told,) = (each for each in taken_back.conditions if each.type == "PriorityClassIgnored")
        assert told.status == "False"
        off = job("Job", {"priorityClass": "high"}).spec
        off = msgspec.structs.replace(off, run_policy=msgspec.structs.replace(off.run_policy, suspend=True))
        suspended = self.look(msgspec.structs.replace(said, spec=off)).status
        assert suspended is not None
        (told,) = (each for each in suspended.conditions if each.type == "PriorityClassIgnored")
        assert told.status == "False"

    @pytest.mark.parametrize("policy", [LOCAL, OTHER])
    def test_a_class_of_the_template_or_of_a_pod_group_replaces_no_pod(self, policy: GangPolicy) -> None:
        asked = job("Job", {"priorityClass": "high"})
        if policy is LOCAL:
            for spec in asked.spec.mx_replica_specs.values():
                spec.template["spec"]["priorityClassName"] = "mine"
        answer = self.look(asked, self.waits(asked, 0, ""), policy=policy)
        assert answer.status is None or answer.status.restarts == 0

    def test_a_pod_says_which_class_it_has_from_its_gang(self) -> None:
        asked = job("Job", {"priorityClass": "high"})
        created = next(each for each in self.look(asked).actions if isinstance(each, CreatePod))
        built = build_pod(asked, created.type, created.index, 0, additions=created.additions)
        assert built["metadata"]["annotations"]["mxjob.kubeflow.org/gang-priority-class"] == "high"
        assert built["spec"]["priorityClassName"] == "high"
        assert project_pod(msgspec.Raw(msgspec.json.encode(built))).view.gang_priority == "high"  # type: ignore[union-attr]
