"""What `kubectl get` shows of a job besides its state: how many replicas are ready, and how long it took."""

from datetime import timedelta

from builders import NOW, make_mxjob, make_pod, make_services, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects, Observed


def planned(job: MXJob, *pods: object, later: timedelta = timedelta(0)) -> Effects:
    return plan(job, Observed(tuple(pods), make_services(job)), NOW + later)


def test_of_a_running_job_all_are_and_those_that_are_done_count() -> None:
    job = make_mxjob().gang(1, 2).obj()
    running = [make_pod(job, *each).running().obj() for each in (("Scheduler", 0), ("Server", 0), ("Worker", 0))]
    last = make_pod(job, "Worker", 1)
    assert planned(job, *running, last.running().obj()).status.ready == "4/4"
    assert planned(job, *running, last.succeeded().obj()).status.ready == "4/4"


def test_of_a_gang_that_starts_again_none_is_and_of_a_tuning_what_stays() -> None:
    gang = make_mxjob().gang(1, 2).restart("OnFailure").obj()
    pods = [make_pod(gang, "Scheduler").running().obj(), make_pod(gang, "Worker", 0).failed(1).obj()]
    restarting = planned(gang, *pods).status
    assert (restarting.state, restarting.ready) == ("Restarting", "0/4")
    tuning = make_mxjob().replicas("TunerTracker", 1).replicas("Tuner", 1).restart("OnFailure").obj()
    pods = [make_pod(tuning, "TunerTracker").running().obj(), make_pod(tuning, "Tuner").failed(1).obj()]
    assert planned(tuning, *pods).status.ready == "1/2"


def test_the_duration_is_from_start_to_end_and_told_when_it_is_over() -> None:
    job = make_mxjob().worker(1).status(startTime="2026-11-21T10:54:30Z").obj()
    running = make_pod(job, "Worker").running().obj()
    assert planned(job, running).status.duration == ""
    done = make_pod(job, "Worker").succeeded().obj()
    over = planned(job, done).status
    assert (over.ready, over.duration) == ("1/1", "1h5m")
    failed = planned(job, make_pod(job, "Worker").failed(1).obj()).status
    assert (failed.ready, failed.duration) == ("0/1", "1h5m")
