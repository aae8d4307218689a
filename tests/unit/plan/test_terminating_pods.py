"""A pod that won't go: what its job says, when it is deleted by force, and what ends the wait."""

from datetime import timedelta
from typing import Any

import pytest
from builders import NOW, PodBuilder, after, condition, make_mxjob, make_pod, make_services, plan, reads, with_policy

from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan import Effects, NodeView, Observed, PodView, Policy
from mxnet_operator.plan.actions import CreatePod, DeletePod

SECOND = timedelta(seconds=1)
POLICY = Policy()
LATE = NOW + POLICY.termination_slack


def restarting(**run_policy: Any) -> MXJob:
    """A gang that was torn down at NOW."""
    builder = make_mxjob().scheduler().worker(1).restart("ExitCode").run_policy(**run_policy)
    job = builder.condition("Created").condition("Running").obj()
    failed = Observed((make_pod(job, "Worker").failed(137).obj(),), make_services(job))
    return after(job, plan(job, failed, NOW))


def going(job: MXJob, kind: str = "Worker", **fields: Any) -> PodView:
    return make_pod(job, kind).running().set(deleting=True, delete_by=NOW, **fields).obj()


def look(job: MXJob, *pods: PodView, node: str = "Present", seconds: float = 30) -> Effects:
    view = NodeView(name="node", state=node)  # type: ignore[arg-type]
    return plan(job, Observed(pods, make_services(job), (view,)), NOW + seconds * SECOND)


def terminating(answer: Effects) -> Condition | None:
    return condition(answer, "PodsTerminating")


class TestWhatIsSaid:
    def test_a_pod_within_its_grace_period_and_the_slack_is_waited_for_without_a_word(self) -> None:
        job = restarting()
        answer = look(job, going(job), seconds=29)
        assert (answer.status, answer.events, answer.actions) == (None, (), ())
        assert answer.requeue_after == SECOND
        assert reads(job, Observed((going(job),), pods_listed="owned"), NOW + 29 * SECOND).nodes == ()

    def test_a_pod_past_it_is_named_with_its_node_in_a_condition_and_an_event(self) -> None:
        job = restarting()
        assert reads(job, Observed((going(job),), pods_listed="owned"), LATE).nodes == ("node",)
        answer = look(job, going(job))
        condition = terminating(answer)
        assert (condition.status, condition.reason) == ("True", "GracePeriodExceeded")
        assert condition.message.startswith(
            "pod digits-worker-0 on node node did not terminate within the grace period"
        )
        assert "node.kubernetes.io/out-of-service" in condition.message
        (event,) = answer.events
        assert (event.type, event.reason, event.message) == ("Warning", "PodsTerminating", condition.message)
        assert after(job, answer).status.state == "Restarting"

    def test_no_pod_of_the_next_attempt_comes_meanwhile_and_its_node_is_asked_after_again(self) -> None:
        job = restarting()
        answer = look(job, going(job), seconds=3600)
        assert [action for action in answer.actions if isinstance(action, CreatePod | DeletePod)] == []
        assert answer.requeue_after == POLICY.ask_for_nodes

    def test_the_same_is_said_once(self) -> None:
        job = restarting()
        told = after(job, look(job, going(job)))
        again = look(told, going(job), seconds=3600)
        assert (again.status, again.events, again.actions) == (None, (), ())

    def test_many_pods_are_counted(self) -> None:
        builder = make_mxjob().worker(8).restart("ExitCode").condition("Created").condition("Running")
        job = builder.obj()
        job = after(job, plan(job, Observed((make_pod(job, "Worker", 3).failed(137).obj(),)), NOW))
        pods = [make_pod(job, "Worker", index).set(deleting=True, delete_by=NOW).obj() for index in range(8)]
        assert "digits-worker-4 on node node and 3 more did not" in terminating(look(job, *pods)).message

    def test_it_is_over_when_the_pod_is_gone_and_the_next_attempt_begins(self) -> None:
        job = restarting()
        told = after(job, look(job, going(job)))
        answer = look(told, seconds=60)
        assert (terminating(answer).status, terminating(answer).reason) == ("False", "PodsTerminated")
        assert [action.attempt for action in answer.actions if isinstance(action, CreatePod)] == [1, 1]

    def test_a_pod_that_a_finalizer_holds_is_said_to_be_held_by_it(self) -> None:
        job = restarting()
        held = going(job, finalizers=("a/b",), node_name="")
        message = "pod digits-worker-0 did not terminate within the grace period: held by the finalizer a/b."
        assert terminating(look(job, held)).message == message


class TestForce:
    @pytest.mark.parametrize("state", ["Gone", "OutOfService"])
    def test_a_pod_whose_node_can_not_run_it_any_more_is_deleted_by_force(self, state: str) -> None:
        job = restarting()
        answer = look(job, going(job), node=state)
        assert answer.actions == (DeletePod("digits-worker-0", "uid-of-digits-worker-0", grace=0),)
        (event,) = answer.events
        assert event.reason == "ForceDeletedPod"
        assert "pod digits-worker-0 on node node" in event.message

    @pytest.mark.parametrize("state", ["Present", "Forbidden"])
    def test_a_pod_whose_node_is_there_or_may_not_be_read_is_not_deleted_by_force(self, state: str) -> None:
        job = restarting()
        assert look(job, going(job), node=state, seconds=10**6).actions == ()

    def test_a_pod_on_a_dead_node_is_not_deleted_by_force_within_its_grace_period(self) -> None:
        job = restarting()
        assert look(job, going(job), node="Gone", seconds=1).actions == ()

    def test_only_those_on_the_lost_node_are(self) -> None:
        job = restarting()
        other = going(job, "Scheduler", node_name="other")
        views = (NodeView(name="node", state="Gone"), NodeView(name="other", state="Present"))
        answer = plan(job, Observed((going(job), other), make_services(job), views), LATE)
        assert [action.name for action in answer.actions if isinstance(action, DeletePod)] == ["digits-worker-0"]
        assert "digits-scheduler-0 on node other" in terminating(answer).message
        assert "worker" not in terminating(answer).message

    def test_what_was_deleted_by_force_and_is_held_is_not_deleted_again(self) -> None:
        job = restarting()
        held = going(job, forced=True, finalizers=("a/b",))
        answer = look(job, held, node="Gone")
        assert answer.actions == ()
        assert answer.requeue_after is None
        assert reads(job, Observed((held,), pods_listed="owned"), LATE).nodes == ()

    def test_a_controller_that_may_not_read_nodes_says_so_and_asks_rarely(self) -> None:
        job = restarting()
        answer = look(job, going(job), node="Forbidden")
        assert "has no right to read nodes" in terminating(answer).message
        assert "kubectl delete pod --grace-period=0 --force" in terminating(answer).message
        assert answer.requeue_after == POLICY.ask_for_nodes_where_forbidden


class TestWhatEndsTheWait:
    def test_the_progress_deadline_names_the_pods_that_are_still_there(self) -> None:
        job = restarting(progressDeadlineSeconds=100)
        assert look(job, going(job), seconds=100).requeue_after == SECOND
        status = after(job, look(job, going(job), seconds=101)).status
        assert status.state == "Failed"
        assert "digits-worker-0 on node node" in status.conditions[-1].message

    def test_the_time_of_an_older_restart_does_not_count_for_a_suspension_that_was_taken_back(self) -> None:
        job = restarting(progressDeadlineSeconds=100)
        suspended = with_policy(after(job, plan(with_policy(job, suspend=True), Observed(), NOW)), suspend=True)
        resumed = after(suspended, plan(with_policy(suspended, suspend=False), Observed(), NOW))
        raised = after(resumed, plan(with_policy(resumed, suspend=True), fresh(resumed), NOW + 1000 * SECOND))
        answer = plan(with_policy(raised, suspend=False), fresh(resumed), NOW + 1001 * SECOND)
        assert answer.status is None or answer.status.state != "Failed"

    def test_a_suspended_job_says_what_it_waits_for(self) -> None:
        job = with_policy(restarting(), suspend=True)
        answer = look(job, going(job))
        assert terminating(answer).status == "True"
        assert answer.requeue_after == POLICY.ask_for_nodes
        job = after(job, answer)
        assert look(job, going(job)).status is None
        assert look(job, going(job), node="Gone").actions == (
            *(action for action in look(job, going(job)).actions),
            DeletePod("digits-worker-0", "uid-of-digits-worker-0", grace=0),
        )
        over = after(job, look(job)).status
        assert over.state == "Suspended"
        assert terminating(look(job)).status == "False"

    @pytest.mark.parametrize("policy", ["None", "Running", "All"])
    def test_a_finished_job_writes_nothing_about_pods_that_do_not_go(self, policy: str) -> None:
        job = make_mxjob().worker(1).run_policy(cleanPodPolicy=policy).condition("Created").condition("Failed").obj()
        pod = going(job)
        assert reads(job, Observed((pod,), pods_listed="owned"), LATE + 3600 * SECOND).nodes == ()
        assert plan(job, Observed((pod,)), LATE + 3600 * SECOND) == Effects()


def test_of_replicas_that_are_replaced_one_by_one_the_others_run_on() -> None:
    builder = make_mxjob().replicas("TunerServer", 1).replicas("Tuner", 1).restart("OnFailure")
    job = builder.condition("Created").condition("Running").obj()
    tuner = make_pod(job, "Tuner").running().obj()
    lost = make_pod(job, "TunerServer").running().set(deleting=True, delete_by=NOW)
    job = after(job, plan(job, Observed((tuner, lost.obj())), NOW))
    answer = look(job, tuner, lost.obj())
    assert "digits-tunerserver-0" in terminating(answer).message
    assert [action for action in answer.actions if isinstance(action, DeletePod)] == []


def fresh(job: MXJob) -> Observed:
    """The gang of the present attempt, placed and not started."""
    pods: tuple[PodBuilder, ...] = (make_pod(job, "Scheduler"), make_pod(job, "Worker"))
    return Observed(tuple(pod.set(attempt=job.status.restarts).obj() for pod in pods), make_services(job))
