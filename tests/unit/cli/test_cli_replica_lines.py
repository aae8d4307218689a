"""The replicas of a running job on a terminal."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from mxnet_operator.cli.output.progress import LiveProgress, replica_lines
from mxnet_operator.cli.output.replica_state import first_failed, replica_state
from mxnet_operator.cli.output.times import job_duration, short
from mxnet_operator.client.job_events import event_time
from mxnet_operator.readers.pods import in_order

NOW = datetime(2026, 1, 1, 12, 1, 30, tzinfo=UTC)
NOON = "2026-01-01T12:00:00Z"


def job(**replicas):
    specs = {kind: {"replicas": count} for kind, count in replicas.items()}
    return {"metadata": {"name": "j", "uid": "u"}, "spec": {"mxReplicaSpecs": specs}, "status": {"state": "Running"}}


def pod(replica, state=None, owner="u", **metadata):
    kind, index = replica.split("-")
    labels = {"training.kubeflow.org/replica-type": kind, "training.kubeflow.org/replica-index": index}
    about = {"name": f"j-{replica}", "labels": labels, "ownerReferences": [{"uid": owner}], "creationTimestamp": NOON}
    containers = [{"name": "sidecar", "state": {"running": {}}}, {"name": "mxnet", "state": state or {}}]
    return {"metadata": {**about, **metadata}, "status": {"phase": "Pending", "containerStatuses": containers}}


RUNNING = {"running": {"startedAt": NOON}}
FAILED = {
    "terminated": {"reason": "Error", "exitCode": 7, "finishedAt": NOON, "message": "Traceback:\nKeyError: 'x'\n"}
}


def text(lines):
    return [str(line).rstrip() for line in lines]


def test_few_replicas_have_a_line_each_in_the_order_in_which_they_start():
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    pods = [pod("worker-1", waiting), pod("worker-0", FAILED), pod("server-0", RUNNING)]

    assert text(replica_lines(job(worker=3, Server=1), pods, most=4, now=NOW)) == [
        "  server-0  Running       1m30s",
        "  worker-0  Error         1m30s  exit code 7  KeyError: 'x'",
        "  worker-1  ErrImagePull  1m30s  ErrImagePull: no such image",
        "  worker-2  no pod",
    ]


def test_many_replicas_are_counted_by_type():
    pods = [pod("worker-0", RUNNING), pod("worker-2", FAILED), pod("worker-1", RUNNING), pod("scheduler-0", RUNNING)]

    assert text(replica_lines(job(Worker=4, Scheduler=1), pods, most=4, now=NOW)) == [
        "  scheduler  1 Running  1m30s",
        "  worker     2 Running, 1 Error, 1 no pod  1m30s  worker-2 exit code 7",
    ]


def test_the_pods_of_an_earlier_job_of_the_name_are_not_its_replicas():
    assert text(replica_lines(job(Worker=1), [pod("worker-0", RUNNING, owner="old")], most=4)) == ["  worker-0  no pod"]


def test_a_pod_that_goes_away_says_so_and_one_without_containers_gives_its_own_reason():
    going = replica_state(pod("worker-0", RUNNING, deletionTimestamp=NOON))
    evicted = replica_state({**pod("worker-0"), "status": {"phase": "Failed", "reason": "Evicted", "message": "disk"}})

    assert (going.state, going.exit_code) == ("Terminating", None)
    assert (evicted.state, evicted.phase, evicted.exit_code) == ("Evicted", "Failed", None)


def test_replicas_are_sorted_by_number_not_by_letter():
    found = in_order(pod(f"worker-{index}") for index in (10, 9, 1))

    assert [replica_state(each).replica for each in found] == ["worker-1", "worker-9", "worker-10"]


def test_the_first_failure_is_not_one_that_was_stopped_for_it_in_the_same_second():
    stopped = {"terminated": {**FAILED["terminated"], "exitCode": 143}}
    later = {"terminated": {**FAILED["terminated"], "finishedAt": "2026-01-01T12:00:01Z"}}
    states = [replica_state(p) for p in (pod("server-0", stopped), pod("worker-0", later), pod("worker-1", FAILED))]

    assert first_failed(states).replica == "worker-1"
    assert first_failed(states[:1]).replica == "server-0"
    assert first_failed([]) is None


def test_a_replica_that_the_controller_stopped_is_stopped_without_a_reason():
    stopped = pod("server-0", {"terminated": {**FAILED["terminated"], "exitCode": 143}})
    stopped["spec"] = {"activeDeadlineSeconds": 1}
    stopped["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": "longer than the deadline"}
    state = replica_state(stopped)
    assert (state.state, state.why, state.exit_code) == ("Stopped", "", 143)


def test_a_terminal_shows_them_under_the_progress_line_and_the_log_above():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30, color_system=None, legacy_windows=False)
    with LiveProgress(console, show_log=False) as shown:
        shown.job(job(Worker=1))
        shown.pods([pod("worker-0", FAILED)])
        shown.note("something to say")

    noted, drawn = out.getvalue().split("something to say")[-1].split("\n")[0:2]
    assert noted.strip("\x1b[2K ") == ""
    assert "j  Running" in drawn
    assert "worker-0  Error" in out.getvalue().split("something to say")[1].split("\n")[2]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "0s"), (59.9, "59s"), (60, "1m"), (187, "3m7s"), (7387, "2h3m"), (3600, "1h"), (90061, "1d1h")],
)
def test_ages_have_two_parts_at_most(seconds, said):
    assert short(seconds) == said


def test_a_duration_ends_with_the_job():
    status = {"startTime": NOON, "completionTime": "2026-01-01T12:00:05Z"}

    assert job_duration({"status": status}, NOW) == "5s"
    assert job_duration({"status": {"startTime": NOON}}, NOW) == "1m30s"
    assert job_duration({}, NOW) == ""


def test_events_are_ordered_by_time_whichever_component_wrote_them():
    made = {"creationTimestamp": NOON}
    by_kubelet = {"metadata": made, "lastTimestamp": NOON}
    by_scheduler = {"metadata": made, "lastTimestamp": None, "eventTime": "2026-01-01T12:00:00.250000Z"}
    repeated = {**by_scheduler, "series": {"count": 3, "lastObservedTime": "2026-01-01T12:00:01.000000Z"}}

    assert event_time(by_kubelet) < event_time(by_scheduler) < event_time(repeated)
