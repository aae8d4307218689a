"""Which pods of a job start together or not at all."""

from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, observe, plan

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.local import gang_member
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects
from mxnet_operator.plan.actions import AnnotatePod

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
        (told,) = (each for each in answer.status.conditions if each.type == "PodsScheduled")
        assert (told.status, told.reason) == ("False", "MinAvailableTooLarge")
        assert "minAvailable is 10, and the job has 9 pods: set it to 9 or less" in told.message

    def test_its_user_hears_of_fields_that_nothing_acts_on_and_of_no_other(self) -> None:
        every = {"minAvailable": 3, "priorityClass": "high", "queue": "a", "minResources": {"cpu": "1"}}
        (event,) = (each for each in self.look(job("Job", every)).events if each.reason == "UnsupportedField")
        assert event.message == (
            "Without effect in spec.runPolicy.schedulingPolicy: minResources, priorityClass, queue, since the local"
            " cluster has one queue, by age, and goes by what the pods themselves request"
        )
        acted_on = {"minAvailable": 3, "scheduleTimeoutSeconds": 9}
        assert not [each for each in self.look(job("Job", acted_on)).events if each.reason == "UnsupportedField"]
