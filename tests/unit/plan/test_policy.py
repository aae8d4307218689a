"""The controller's own times are one argument, and a plan names the job that it was made of."""

from datetime import timedelta

from builders import NOW, make_mxjob, make_pod, observe, plan, reads

from mxnet_operator.plan import Observed, Policy

SECOND = timedelta(seconds=1)


def restarting():  # type: ignore[no-untyped-def]
    job = make_mxjob().gang().restart("OnFailure").condition("Running")
    return job.condition("Restarting").obj()


def test_the_first_backoff_is_the_policys() -> None:
    job = restarting()
    since = job.status.conditions[-1].last_update_time
    assert since is not None
    status = {"restarts": 1, "restartsCountTowardsMax": 1}
    builder = make_mxjob().gang().restart("OnFailure").status(**status).condition("Restarting").obj()
    waits = [
        plan(builder, Observed(), since, Policy(first_backoff=first)).requeue_after for first in (SECOND, 20 * SECOND)
    ]
    assert all(wait is not None for wait in waits)
    assert [SECOND <= waits[0] <= 1.1 * SECOND, 20 * SECOND <= waits[1] <= 22 * SECOND] == [True, True]  # type: ignore[operator]


def test_a_terminating_pod_is_given_the_policys_time() -> None:
    job = make_mxjob().gang().status(restarts=1).condition("Restarting").restart("OnFailure").obj()
    pod = make_pod(job, "Worker").running().deleting().set(delete_by=NOW).obj()
    at_once, patient = Policy(termination_slack=timedelta(0)), Policy(termination_slack=timedelta(hours=1))
    assert reads(job, Observed((pod,), pods_listed="owned"), NOW, at_once).nodes == ("node",)
    assert reads(job, Observed((pod,), pods_listed="owned"), NOW, patient).nodes == ()


def test_a_plan_names_the_job_with_its_defaults_as_it_was_started() -> None:
    status = {"startedReplicas": {"Worker": 3}, "startedScope": "Job"}
    job = make_mxjob().replicas("worker", 5).status(**status).condition("Running").obj()
    decided = plan(job, observe(job), NOW).job
    assert decided.spec.mx_replica_specs["Worker"].replicas == 3
    assert decided.spec.run_policy.restart_scope == "Job"
