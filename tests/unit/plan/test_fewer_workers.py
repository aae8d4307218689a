"""A restarted gang of which some Workers get no node goes on with the others, if `minWorkers` allows it."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, after, condition, make_mxjob, make_pod, plan, reads

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.environment import environment
from mxnet_operator.integrations.gangs.gang import PODGROUPS, gang_of
from mxnet_operator.integrations.gangs.local import gang_member
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.integrations.kueue.policy import asks_for
from mxnet_operator.plan import Observed
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.children import SERVICES
from mxnet_operator.plan.started import as_started

MINUTE = timedelta(minutes=1)
NO_NODE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
PODS = [("Scheduler", 0), ("Server", 0), *(("Worker", index) for index in range(4))]


def asked(**policy: Any) -> JobBuilder:
    """A job of four Workers that may run with two."""
    return make_mxjob().gang(servers=1, workers=4).restart("ExitCode").run_policy(**{"minWorkers": 2, **policy})


def restarted(builder: JobBuilder | None = None, **status: Any) -> MXJob:
    """The job in its second attempt, started with all of its replicas."""
    job = (builder or asked()).condition("Restarting").obj()
    counts = {name: spec.replicas or 0 for name, spec in job.spec.mx_replica_specs.items()}
    known = {"restarts": 1, "started_replicas": counts, "started_scope": "Job", "created_attempts": 2, **status}
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, **known))


def pods(job: MXJob, *unplaced: str, words: str = NO_NODE, placed: datetime = NOW) -> Observed:
    """The attempt's pods: all run but these."""
    made = []
    for kind, index in PODS:
        if index < (as_started(with_defaults(job)).spec.mx_replica_specs[kind].replicas or 0):
            pod = make_pod(job, kind, index).set(attempt=job.status.restarts, created_at=NOW)
            if f"{kind.lower()}-{index}" in unplaced:
                made.append(pod.unscheduled().set(unschedulable=words).obj())
            else:
                made.append(pod.running().set(scheduled_at=placed).obj())
    return Observed(tuple(made))


def shrunk() -> MXJob:
    """The job, torn down to three Workers."""
    job = restarted()
    return after(job, plan(job, pods(job, "worker-3"), NOW + MINUTE))


def test_a_worker_that_gets_no_node_for_a_minute_is_left_out_of_the_next_attempt() -> None:
    job = restarted()
    answer = plan(job, pods(job, "worker-3"), NOW + MINUTE)
    next_job = after(job, answer)
    status = next_job.status
    assert (status.state, status.restarts, status.restarts_count_towards_max) == ("Restarting", 2, 0)
    assert (status.fewer_replicas, status.ready, status.started_replicas["Worker"]) == ({"Worker": 3}, "0/5", 4)
    message = (
        "mxjob digits is restarting with 3 of 4 Workers, since worker-3 had no node for 60 s (restart 2; 0 of 6 count)."
    )
    (event,) = answer.events
    assert (event.type, event.reason, event.message) == ("Warning", "MXJobRestarting", message)
    assert answer.actions == ()


def test_before_that_it_waits_and_looks_again_in_time() -> None:
    job = restarted()
    answer = plan(job, pods(job, "worker-3", placed=NOW + timedelta(seconds=20)), NOW + MINUTE)
    assert answer.status is None or answer.status.restarts == 1
    assert answer.requeue_after is not None
    assert answer.requeue_after <= timedelta(seconds=20)  # since the last of the others got its node


def test_the_pods_are_listed_before_an_attempt_is_given_up() -> None:
    job = restarted()
    assert reads(job, pods(job, "worker-3"), NOW + MINUTE).pods == "labelled"


@pytest.mark.parametrize(
    ("builder", "unplaced", "status"),
    [
        (asked(minWorkers=None), ["worker-3"], {}),
        (asked(), ["worker-1", "worker-2", "worker-3"], {}),  # fewer than minWorkers
        (asked(), ["server-0", "worker-3"], {}),
        (asked(), ["worker-3"], {"restarts": 0, "created_attempts": 1}),
        (asked(), ["worker-3"], {"first_attempt": 1}),  # just resumed
    ],
)
def test_it_waits_for_all(builder: JobBuilder, unplaced: list[str], status: dict[str, Any]) -> None:
    job = restarted(builder, **status)
    answer = plan(job, pods(job, *unplaced), NOW + 10 * MINUTE)
    assert answer.status is None or answer.status.restarts == job.status.restarts


def test_a_worker_of_which_no_scheduler_reports_is_waited_for() -> None:
    job = restarted()
    answer = plan(job, pods(job, "worker-3", words=""), NOW + 10 * MINUTE)
    assert answer.status is None or answer.status.restarts == 1


class TestWithFewer:
    def test_the_pods_are_those_of_a_smaller_job(self) -> None:
        job = shrunk()
        answer = plan(job, Observed(), NOW + 2 * MINUTE)
        created = [each for each in answer.actions if isinstance(each, CreatePod)]
        assert [(each.type, each.index) for each in created if each.type == "Worker"] == [
            ("Worker", index) for index in range(3)
        ]
        assert {each.attempt for each in created} == {2}
        assert answer.job is not None
        variables = environment(answer.job, "Worker", 0, 2)
        assert variables["DMLC_NUM_WORKER"] == "3"
        assert variables["MX_CONFIG"].count("digits-worker-") == 3

    def test_the_job_says_so_once_and_succeeds_with_them(self) -> None:
        job = shrunk()
        answer = plan(job, pods(job), NOW + 2 * MINUTE)
        (event,) = answer.events
        job = after(job, answer)
        found = condition(job, "FewerWorkers")
        words = "The job runs with 3 of 4 Workers, since the others had no node. A further restart begins with all."
        assert (event.reason, event.message, found.message) == ("FewerWorkers", words, words)
        assert (job.status.state, job.status.ready, job.status.started_replicas["Worker"]) == ("Running", "5/5", 4)
        assert plan(job, pods(job), NOW + 3 * MINUTE).events == ()
        done = [make_pod(job, kind, index).set(attempt=2).succeeded().obj() for kind, index in PODS[:-1]]
        assert after(job, plan(job, Observed(tuple(done)), NOW + 3 * MINUTE)).status.state == "Succeeded"

    def test_the_next_restart_begins_with_all(self) -> None:
        job = shrunk()
        job = after(job, plan(job, pods(job), NOW + 2 * MINUTE))
        lost = tuple(pod for pod in pods(job).pods if pod.name != "digits-worker-0")
        job = after(job, plan(job, Observed(lost), NOW + 3 * MINUTE))
        assert (job.status.restarts, job.status.fewer_replicas, job.status.ready) == (3, {}, "0/6")
        created = plan(job, Observed(), NOW + 10 * MINUTE).actions
        assert ("Worker", 3) in [(each.type, each.index) for each in created if isinstance(each, CreatePod)]
        job = after(job, plan(job, pods(job), NOW + 10 * MINUTE))
        found = condition(job, "FewerWorkers")
        assert found.status == "False"

    def test_it_may_become_fewer_still(self) -> None:
        job = shrunk()
        job = after(job, plan(job, pods(job, "worker-0"), NOW + MINUTE))
        assert (job.status.restarts, job.status.fewer_replicas) == (3, {"Worker": 2})

    def test_a_suspension_ends_it(self) -> None:
        job = shrunk()
        job = after(job, plan(job, pods(job), NOW + 2 * MINUTE))
        policy = msgspec.structs.replace(job.spec.run_policy, suspend=True)
        job = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, run_policy=policy))
        job = after(job, plan(job, pods(job), NOW + 3 * MINUTE))
        job = after(job, plan(job, Observed(), NOW + 3 * MINUTE))
        found = condition(job, "FewerWorkers")
        assert (job.status.state, job.status.fewer_replicas, job.status.ready) == ("Suspended", {}, "0/6")
        assert found.status == "False"

    def test_a_gang_of_workers_stays_a_gang_when_one_is_left(self) -> None:
        builder = make_mxjob().worker(2).restart("ExitCode").run_policy(minWorkers=1)
        job = restarted(builder, fewer_replicas={"Worker": 1}, restarts=2)
        alone = Observed((make_pod(job, "Worker", 0).running().set(attempt=2).obj(),))
        status = after(job, plan(job, alone, NOW)).status
        assert (status.started_scope, status.state) == ("Job", "Running")
        assert not any(each.type == "ReplicasChangeIgnored" for each in status.conditions)


class TestOfGangSchedulers:
    """They place a gang at once or not at all: a restarted one asks for as few as the job may have."""

    @pytest.mark.parametrize(
        ("policy", "status", "minimum"),
        [
            ({}, {"restarts": 0}, 6),
            ({}, {}, 4),
            ({}, {"fewer_replicas": {"Worker": 3}, "restarts": 2}, 4),
            ({"schedulingPolicy": {"minAvailable": 3}}, {}, 3),
            ({"schedulingPolicy": {"minAvailable": 99}}, {}, 99),
            ({"minWorkers": None}, {}, 6),
        ],
    )
    def test_a_restarted_gang_asks_for_fewer(self, policy: Any, status: Any, minimum: int) -> None:
        job = as_started(with_defaults(restarted(asked(**policy), **status)))
        gang = gang_of(job)
        assert (gang.minimum, gang.members) == (minimum, 5 if "fewer_replicas" in status else 6)
        members = gang_member(job, 1)
        assert members == f"attempt-1/{gang.members}/" + (f"/{minimum}" if minimum != gang.members else "")

    def test_the_job_is_not_failed_for_them(self) -> None:
        job = restarted(asked(schedulingPolicy={"scheduleTimeoutSeconds": 30}))
        answer = plan(job, pods(job, "worker-3"), NOW + timedelta(seconds=59))
        assert answer.status is None or answer.status.state != "Failed"

    def test_a_gang_that_lacks_a_server_gives_its_room_back(self) -> None:
        job = restarted()
        rules, integrations = (SERVICES, PODGROUPS), (GangPolicy(),)
        observed = pods(job, "server-0", "worker-3")
        status = after(job, plan(job, observed, NOW + MINUTE, rules=rules, integrations=integrations)).status
        assert (status.restarts, status.fewer_replicas) == (2, {})
        assert "gives back the room" in status.conditions[-1].message


@pytest.mark.parametrize(
    ("builder", "why"),
    [
        (asked(), None),
        (asked(minWorkers=4), None),
        (asked(minWorkers=5), "the job has 4 Workers"),
        (asked(restartScope="Replica"), "its replicas restart one by one (restartScope)"),
    ],
)
def test_a_number_without_effect_is_reported(builder: JobBuilder, why: str | None) -> None:
    least = builder.obj().spec.run_policy.min_workers
    events = [(event.reason, event.message) for event in plan(builder.obj(), Observed(), NOW).events]
    expected = [("UnsupportedField", f"Without effect: spec.runPolicy.minWorkers {least}, since {why}")]
    assert events == (expected if why else [])


def test_its_queue_keeps_the_quota_for_all() -> None:
    whole, fewer = (as_started(with_defaults(restarted(fewer_replicas=fewer))) for fewer in ({}, {"Worker": 3}))
    assert asks_for(whole) == asks_for(fewer)
