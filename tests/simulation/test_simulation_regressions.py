"""What the simulation has found, each cut down to the schedule that shows it."""

import msgspec
import pytest
from simulator.run import run
from simulator.schedule import Schedule, Setup, Step

GANG = Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 1}, restart="ExitCode")
LOOK = (("hear", "a"), ("look", "a"))
B_LOOKS = (("hear", "b"), ("look", "b"))


def _started(*labels: str) -> tuple[Step, ...]:
    """The pods of these replicas are prepared, and run."""
    return tuple(("kubelet", label) for _ in range(2) for label in labels)


def _running(*labels: str) -> tuple[Step, ...]:
    """The pods are made, these run, and the controller has seen it."""
    return (("look", "a"), *_started(*labels), *LOOK)


def _check(setup: Setup, *steps: Step, state: str = "") -> None:
    """No invariant breaks, and the job ends in the state, if one is given."""
    result = run(Schedule(setup=setup, steps=steps))
    assert (result.wrong, result.state) == ("", state or result.state)


ALL_START = (("look", "a"), *_started("scheduler-0", "server-0", "worker-0"))


def test_a_pod_that_vanishes_before_its_end_was_seen_gets_no_successor_in_its_gang() -> None:
    _check(
        GANG,
        *ALL_START,
        ("exit", "scheduler-0", 0),
        ("exit", "server-0", 0),
        ("exit", "worker-0", 0),
        ("delete pod", "worker-0"),
        *LOOK,
    )


def test_a_vanished_pod_gets_no_successor_when_only_the_record_of_the_others_is_left() -> None:
    _check(
        GANG,
        *ALL_START,
        ("exit", "server-0", 0),
        ("exit", "worker-0", 0),
        ("wait", 20),
        *LOOK,
        ("delete pod", "scheduler-0", 0),
        ("delete pod", "server-0"),
        ("delete pod", "worker-0"),
        *LOOK,
    )


def test_nobody_joins_a_gang_that_began_to_run_while_nobody_led() -> None:
    """The first pod that was found missing was made anew: Running, restarts 0, and it hung for ever."""
    for taken in ("scheduler-0", "server-0", "worker-0"):
        _check(GANG, *ALL_START, ("disrupt", taken, "drain"), ("kubelet", taken), ("die", "a"), state="Succeeded")


def test_a_member_that_joined_before_all_creations_were_recorded_is_not_made_again() -> None:
    _check(
        GANG,
        ("look", "a", "dies after", 5),
        *ALL_START[1:],
        ("disrupt", "worker-0", "preempt"),
        ("kubelet", "worker-0"),
        *B_LOOKS,
    )


def test_a_leader_that_has_the_pods_and_not_the_record_makes_no_member_again() -> None:
    """Seeds 252951834333 and 252951834369: a watch of jobs that is behind that of pods."""
    _check(
        GANG,
        ("look", "a"),
        *_started("worker-0"),
        ("relist", "b", "pods"),
        ("suspend",),
        *LOOK * 2,
        ("hear", "b", "pods", 2),
        ("look", "b"),
    )


def test_a_job_that_is_suspended_when_its_pods_are_gone_starts_anew_when_resumed() -> None:
    """It said Running and Suspended, and when resumed it was restarted for the pods that it missed."""
    _check(
        Setup(replicas={"Worker": 1}, restart="ExitCode"),
        *_running("worker-0"),
        ("suspend",),
        ("delete pod", "worker-0", 0),
        *LOOK,
        state="Succeeded",
    )


def test_a_leader_whose_pods_lag_behind_its_jobs_does_not_take_a_sound_job_for_lost() -> None:
    _check(
        Setup(replicas={"Worker": 1}),
        *_running("worker-0"),
        ("hear", "b", "jobs", 3),
        ("look", "b"),
        state="Succeeded",
    )


def test_a_leader_whose_pods_lag_behind_begins_no_attempt_beside_the_one_before() -> None:
    _check(
        Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 2}, restart="OnFailure"),
        ("look", "a"),
        *_started("scheduler-0"),
        ("exit", "scheduler-0", 130, "", True),
        *LOOK,
        ("kubelet", "worker-1"),
        ("wait", 60),
        *LOOK,
        ("kubelet", "scheduler-0"),
        ("hear", "b", "jobs", 2),
        ("look", "b"),
    )


def test_a_job_that_is_resumed_and_restarts_in_one_look_is_not_suspended() -> None:
    """Seed 3005519: the write of the resumed status missed, and the next one said Suspended and Restarting."""
    _check(
        Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 2}, restart="Always", policy={"suspend": True}),
        ("look", "a"),
        ("resume",),
        ("hear", "a"),
        ("look", "a", "held", 4),
        ("backoffLimit", 4),
        *_started("worker-1"),
        ("exit", "worker-1", 139),
    )


def test_a_job_that_starts_and_fails_in_one_look_has_not_flipped_what_is_as_it_was() -> None:
    """Fresh seed 3000001870: Running, false since a suspension, was true and false again within one write."""
    _check(
        Setup(replicas={"Worker": 1}, restart="ExitCode"),
        *_running("worker-0"),
        ("suspend",),
        ("delete pod", "worker-0", 0),
        *LOOK,
        ("resume",),
        *LOOK,
        ("wait", 1),
        *_started("worker-0"),
        ("exit", "worker-0", 3),
    )


def test_a_pod_of_an_old_attempt_that_a_second_leader_makes_in_between_is_removed_again() -> None:
    """The new attempt's creation is under way when it is made: neither leader can know (seed 5200014478)."""
    _check(
        msgspec.structs.replace(GANG, restart="OnFailure"),
        ("look", "a"),
        *_started("server-0"),
        ("exit", "server-0", 1),
        *LOOK * 2,
        ("wait", 20),
        ("hear", "a"),
        ("look", "a", "held", 4),
        ("hear", "b", "pods", 2),
        ("look", "b"),
    )


def test_a_name_that_was_taken_is_no_error_any_more_once_the_job_has_failed() -> None:
    """`ReconcileError` was true at the end of the job, and turned false behind it (seed 349084826)."""
    _check(
        Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 2}, restart="ExitCode", policy={"backoffLimit": 0}),
        ("look", "a"),
        ("delete job",),
        ("create job",),
        ("kubelet", "worker-1"),
        ("collect garbage",),
        *LOOK * 2,
        ("look", "a"),
        ("kubelet", "worker-0"),
        *(("look", "a"),) * 2,
        ("kubelet", "worker-0"),
        ("exit", "worker-0", 138),
    )


def test_a_job_that_is_edited_before_its_first_look_starts_as_edited() -> None:
    """Its pods were made as the cache had it: alone, where its gang has a group (seed 4568174709)."""
    _check(
        Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 1}, policy={"restartScope": "Replica"}),
        ("edit", "restartScope", None),
        ("look", "a"),
    )


ADMITTED = (*LOOK, ("kueue",), *LOOK)
"""The job enters its queue and is admitted, and its pods are made."""


def _running_in_queue(*labels: str) -> tuple[Step, ...]:
    return (*ADMITTED, *_running(*labels)[1:])


@pytest.mark.parametrize("queue", [{"check": 1}, {"timeout": 60, "limit": 0}], ids=["a check", "not ready in time"])
def test_a_job_that_kueue_gave_up_queues_again_once_its_workload_is_active(queue: dict[str, int]) -> None:
    """Seeds 525 and 816: Kueue kept it out for a reason that a reactivation does not end, and it waited for ever."""
    _check(
        Setup(replicas={"Worker": 2}, restart="ExitCode", queue={"quota": 2, **queue}),
        *ADMITTED,
        ("check", "Rejected"),
        ("wait", 60),
        *(("kueue",),) * 4,
        state="Succeeded",
    )


@pytest.mark.parametrize("last", [3, 5], ids=["it waits", "it has pods"])
def test_a_leader_that_has_not_heard_of_the_resumption_does_not_take_a_job_from_its_queue(last: int) -> None:
    """Seed 115415: it deleted the Workload of a job that ran, and with that the quota, for a suspension of the past."""
    _check(
        Setup(
            replicas={"Scheduler": 1, "Server": 1, "Worker": 1},
            restart="ExitCode",
            policy={"suspend": True},
            queue={"quota": 3},
        ),
        ("look", "a"),
        *LOOK,
        ("hear", "b"),
        ("resume",),
        *ADMITTED[:last],
        ("relist", "b", "workloads"),
        ("look", "b"),
        state="Succeeded",
    )


def test_quota_is_not_given_back_by_a_leader_that_has_not_heard_of_a_pod() -> None:
    """Another one made it that had not heard of the eviction, while giving the quota back had failed once."""
    _check(
        Setup(replicas={"Worker": 1}, restart="ExitCode", queue={"quota": 1}),
        *ADMITTED[:3],
        ("hear", "b"),
        ("rival", 0, 1, 10),
        ("kueue",),
        ("hear", "a"),
        ("look", "a", "unavailable", 2),
        ("hear", "a"),
        ("look", "b"),
        ("look", "a"),
    )


def test_a_job_that_was_not_ready_again_in_time_has_the_whole_time_when_it_is_admitted_again() -> None:
    """It was evicted as soon as it was admitted: its Workload went on to wait for a recovery."""
    _check(
        Setup(
            replicas={"Scheduler": 1, "Server": 1, "Worker": 1},
            restart="ExitCode",
            queue={"quota": 3, "timeout": 600, "recovery": 60},
        ),
        *_running_in_queue("scheduler-0", "server-0", "worker-0"),
        ("exit", "worker-0", 137),
        *LOOK * 2,
        *((("kubelet", "scheduler-0"), ("kubelet", "server-0"), *LOOK) * 2),
        ("wait", 20),
        *LOOK * 2,
        ("wait", 60),
        ("kueue",),
        state="Succeeded",
    )


ONE_BY_ONE = Setup(
    replicas={"Scheduler": 1, "Server": 1, "Worker": 1}, restart="Always", policy={"restartScope": "Replica"}
)


def test_an_attempt_that_never_began_is_not_given_up_for_a_restart_scope_that_was_changed() -> None:
    """Seed 2245000094595: what was done of a job whose replicas restart one by one passed for a gang that had ended."""
    _check(
        msgspec.structs.replace(ONE_BY_ONE, queue={"quota": 3}),
        *ADMITTED,
        *_started("scheduler-0"),
        ("edit", "restartScope", "Job"),
        ("finish",),
        ("activate", False),
    )


@pytest.mark.parametrize("done", ["scheduler-0", "server-0", "worker-0"])
def test_a_gang_that_replicas_restarting_one_by_one_become_begins_with_all(done: str) -> None:
    """It began without those that were done before its suspension, and waited for them for ever."""
    _check(
        ONE_BY_ONE,
        *(("look", "a"), *_started(done), ("exit", done, 0), *LOOK, ("wait", 6), *LOOK),
        *(("suspend",), *LOOK, *LOOK, *(("kubelet", label) for label in GANG.labels), *LOOK, *LOOK),
        *(("edit", "restartScope", "Job"), ("resume",), *LOOK),
    )


def test_a_gang_that_fails_before_its_first_status_does_not_join_one_member_alone_later() -> None:
    """Seed 414089080439: its first status was Restarting, and the next attempt seemed to be another operator's."""
    _check(
        Setup(
            replicas={"TunerTracker": 1, "TunerServer": 1, "Tuner": 1},
            restart="ExitCode",
            policy={"restartScope": "Job"},
        ),
        *(("look", "a", "held", 4), *_started("tuner-0"), ("evict", "tuner-0")),
        *(*B_LOOKS, ("wait", 700), *B_LOOKS, *B_LOOKS),
        *(("delete pod", "tunerserver-0"), *_started("tunertracker-0")),
    )


def test_quota_is_not_given_back_by_a_leader_that_has_heard_of_the_eviction_before_the_pods() -> None:
    _check(
        Setup(
            replicas={"TunerTracker": 1, "TunerServer": 1, "Tuner": 1},
            restart="ExitCode",
            queue={"quota": 4, "timeout": 300},
        ),
        *B_LOOKS,
        ("kueue",),
        *LOOK,
        ("wait", 700),
        ("relist", "b", "workloads"),
        ("kueue",),
        ("hear", "b", "workloads", 3),
        ("look", "b"),
    )


def test_a_leader_of_yesterday_does_not_take_the_place_that_its_successor_asked_for() -> None:
    _check(
        Setup(replicas={"Scheduler": 1, "Server": 1, "Worker": 1}, restart="ExitCode", queue={"quota": 5, "check": 1}),
        *LOOK,
        ("kueue",),
        ("kueue",),
        ("hear", "a"),
        ("check", "Retry"),
        ("queue", "nope"),
        ("kueue",),
        *B_LOOKS * 2,
        ("hear", "a", "jobs", 3),
        ("look", "a"),
    )


_RUN = tuple(("kubelet", label) for label in ("scheduler-0", "server-0", "worker-0"))
_ONE_LEFT_OUT = (
    *LOOK,
    ("kueue",),
    *LOOK,
    *(("kubelet", "worker-1"), ("kubelet", "worker-1"), ("disrupt", "worker-1", "drain")),
    *LOOK,
    ("kubelet", "worker-1"),
    *LOOK * 3,
    *_RUN,
    *(("unschedulable", "worker-1"), ("wait", 60)),
    *LOOK,
)


def test_a_job_that_is_suspended_before_it_begins_with_fewer_workers_comes_again_with_all() -> None:
    replicas = {"Scheduler": 1, "Server": 1, "Worker": 2}
    setup = Setup(replicas=replicas, restart="ExitCode", policy={"minWorkers": 1})
    _check(setup, *_ONE_LEFT_OUT, *LOOK, ("suspend",), *_RUN, *LOOK)


def test_a_job_that_is_queued_again_before_it_begins_with_fewer_workers_asks_for_all() -> None:
    queue = {"quota": 3, "timeout": 60}
    setup = Setup(replicas={"Worker": 2}, restart="ExitCode", policy={"minWorkers": 1}, queue=queue)
    _check(setup, *_ONE_LEFT_OUT)
