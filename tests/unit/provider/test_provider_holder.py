"""Who holds a job: whose token may end it, what each process writes into it and when, and how long it may go on."""

from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.definitions.retry_policy import (
    ExceptionRetryPolicy,
    RetryAction,
    RetryDecision,
    RetryPolicy,
    RetryRule,
)
from waiting_jobs import waiting_job

from mxnet_operator.api import names
from mxnet_operator.api.job_lease import JobLease, lease_of
from mxnet_operator.client.job_client import Deletion, Leave
from mxnet_provider.exceptions import MXNetJobUnreachableError
from mxnet_provider.job import holder, kill
from mxnet_provider.job.holder import Lease, LeaseRenewer
from mxnet_provider.job.task_state import ABSENT, UNANSWERED
from mxnet_provider.operators.lease_times import deadline_seconds, delay_before_retry, lease_seconds
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.triggers.ending import who_may_end

NOW = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)
TRY_1, TRY_2 = (holder.token_of_try(n, f"0192-{n}") for n in (1, 2))
RUN_A, RUN_B = (holder.token_of_run(TRY_1, run) for run in "ab")
LEASE = Lease(60, "delete")
TOKENS = ("", TRY_1, RUN_A, RUN_B, TRY_2, holder.token_of_run(TRY_2, "a"), "by hand")


def job(standing: str = TRY_1, state: str = "Running", **metadata: Any) -> dict[str, Any]:
    annotations = {names.HOLDER_ANNOTATION: standing} if standing else {}
    own = {"uid": "u", "resourceVersion": "7", "annotations": annotations, **metadata}
    return {"metadata": own, "spec": {"runPolicy": {}}, "status": {"state": state, "conditions": _conditions(state)}}


def _conditions(state: str) -> list[dict[str, str]]:
    return [{"type": state, "status": "True"}]


@pytest.mark.parametrize(
    ("holds", "may"),
    [
        (holder.held_by_try(TRY_1), {"", TRY_1, RUN_A, RUN_B}),
        (holder.held_by_try(TRY_2), {"", TRY_2, holder.token_of_run(TRY_2, "a")}),
        (holder.held_by_try(None), {""}),
        (holder.held_exactly_by(TRY_1, RUN_A), {"", TRY_1, RUN_A}),
        (holder.held_exactly_by(None, None), {""}),
    ],
    ids=["worker of try 1", "worker of try 2", "trigger of an earlier release", "run a of a trigger", "nobody"],
)
def test_who_may_end_a_job_in_which_a_token_stands(holds, may):
    assert {token for token in TOKENS if holds(token)} == may


def test_a_try_s_token_is_no_part_of_another_s():
    assert not holder.held_by_try("1:01")("1:012")
    assert not holder.held_by_try("1:01")("11:01")


@pytest.mark.parametrize(
    ("token", "than", "newer"),
    [
        (TRY_2, TRY_1, True),
        (TRY_1, TRY_2, False),
        (TRY_1, TRY_1, False),
        (RUN_A, TRY_1, False),
        ("10:a", "9:b", True),
        ("1:0193", "1:0192", True),
        ("by hand", TRY_1, False),
        ("", TRY_1, False),
        ("x:0193", TRY_1, False),
    ],
)
def test_of_two_tokens_it_is_known_which_is_the_later_try_s(token, than, newer):
    """By the number of the try, and by Airflow's id, which sorts by time, where a scheduler gave a try a new one."""
    assert holder.is_newer(token, than) is newer


@pytest.mark.parametrize("action", ["delete", "suspend"])
@pytest.mark.parametrize("standing", TOKENS)
def test_only_the_holder_ends_an_unfinished_job_and_names_the_version_that_it_read(action, standing):
    asked = kill.request(job(standing), "u", action, holder.held_by_try(TRY_1))
    if standing not in ("", TRY_1, RUN_A, RUN_B):
        assert isinstance(asked, Leave)
        assert "waits for it now" in asked.why
    elif action == "delete":
        assert asked == Deletion("7")
    else:
        assert isinstance(asked, dict)
        assert asked["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize(
    "found",
    [
        None,
        job(uid="another"),
        job(deletionTimestamp="2026-11-22T06:00:00Z"),
        job(state="Succeeded"),
        job(state="Failed"),
    ],
    ids=["gone", "another", "going", "succeeded", "failed"],
)
def test_what_is_over_or_another_s_is_left_without_a_word(found):
    assert kill.request(found, "u", "delete", holder.held_by_try(TRY_1)) == Leave()


@pytest.mark.parametrize("action", ["delete", "suspend"])
def test_a_job_whose_success_is_known_is_ended_for_a_cleared_task_alone(action):
    job = waiting_job("SchedulerStillRunning")
    left = kill.request(job, "u", action, lambda _: True)
    assert left == Leave("all its Workers have succeeded, and it succeeds within a minute")
    assert not isinstance(kill.request(job, "u", action, lambda _: True, is_cleared=True), Leave)


def test_nothing_is_done_where_the_job_is_to_be_kept():
    assert kill.request(job(), "u", "keep", holder.held_by_try(TRY_1)) == Leave()


@pytest.mark.parametrize("standing", TOKENS)
def test_a_finished_job_is_removed_by_its_holder_alone(standing):
    """Another try may be about to read how it ended."""
    asked = kill.removal(job(standing, "Succeeded"), "u", holder.held_by_try(TRY_1))
    assert isinstance(asked, Deletion) is (standing in ("", TRY_1, RUN_A, RUN_B))


@pytest.mark.parametrize(
    ("state", "who"),
    [
        ("deferred", "nobody"),
        (UNANSWERED, "nobody"),
        (ABSENT, "try"),
        ("failed", "try"),
        ("success", "try"),
        ("skipped", "try"),
        ("removed", "try"),
        ("upstream_failed", "try"),
        (None, "run"),
        ("scheduled", "run"),
        ("queued", "run"),
        ("running", "run"),
        ("restarting", "run"),
        ("up_for_retry", "run"),
        ("a state of a later Airflow", "run"),
    ],
)
def test_how_the_task_stands_says_who_may_end_its_job(state, who):
    assert who_may_end(state) == who


class Process:
    """A process that waits for a job, on a clock that the test moves."""

    def __init__(self, token: str, of_try: str = TRY_1, lease: Lease | None = LEASE, *, is_written: bool = False):
        self.seconds = 0.0
        self.renewer = LeaseRenewer(
            token, of_try, lease, is_written=is_written, clock=lambda: self.seconds, now=lambda: NOW
        )

    def looks(self, found, *, stored=True):
        """The annotations that it writes at a look; None for nothing."""
        patch = self.renewer.due(found)
        if patch is None:
            return None
        assert patch["metadata"]["resourceVersion"] == "7"
        if stored:
            self.renewer.written()
        return patch["metadata"]["annotations"]


def test_a_worker_renews_a_third_of_the_lease_after_it_wrote_its_token():
    worker = Process(TRY_1, is_written=True)
    assert worker.looks(job()) is None
    worker.seconds = 19.9
    assert worker.looks(job()) is None
    worker.seconds = 20
    assert lease_of(worker.looks(job())) == JobLease(60, "delete", TRY_1, "2026-11-22T06:00:00.000+00:00")
    assert worker.looks(job()) is None


def test_a_renewal_that_was_not_stored_is_due_at_the_next_look():
    worker = Process(TRY_1, is_written=True)
    worker.seconds = 20
    assert worker.looks(job(), stored=False)
    assert worker.looks(job())


@pytest.mark.parametrize("standing", [TRY_1, RUN_B])
def test_a_trigger_takes_the_job_at_its_first_look_from_the_worker_or_another_run(standing):
    trigger = Process(RUN_A)
    assert trigger.looks(job(standing))[names.HOLDER_ANNOTATION] == RUN_A
    assert trigger.looks(job(RUN_A)) is None


@pytest.mark.parametrize("standing", [TRY_2, "by hand"])
def test_a_trigger_never_takes_it_from_another_try(standing):
    trigger = Process(RUN_A)
    assert trigger.looks(job(standing)) is None
    assert trigger.renewer.lost_to == standing


@pytest.mark.parametrize("standing", [RUN_B, TRY_2, TRY_1])
def test_who_has_lost_the_job_writes_nothing_ever_again(standing):
    trigger = Process(RUN_A)
    trigger.looks(job())
    trigger.seconds = 3600
    assert trigger.looks(job(standing)) is None
    assert trigger.looks(job(RUN_A)) is None
    assert trigger.renewer.lost_to == standing


@pytest.mark.parametrize(
    "found",
    [job(""), job(state="Succeeded"), job(state="Failed"), job(deletionTimestamp="2026-11-22T06:00:00Z")],
    ids=["nobody's", "succeeded", "failed", "going"],
)
def test_nothing_is_written_into_a_job_that_is_over_or_that_nobody_holds(found):
    assert Process(RUN_A).looks(found) is None


def test_a_job_without_a_lease_is_held_all_the_same_and_one_that_had_one_loses_it():
    trigger = Process(RUN_A, lease=None)
    written = trigger.looks(job())
    assert written[names.HOLDER_ANNOTATION] == RUN_A
    assert {key for key, value in written.items() if value is None} == {
        names.LEASE_DURATION_ANNOTATION,
        names.LEASE_ACTION_ANNOTATION,
        names.LEASE_RENEW_TIME_ANNOTATION,
    }
    trigger.seconds = 10**6
    assert trigger.looks(job(RUN_A)) is None


def test_who_has_no_right_to_write_stops_trying():
    trigger = Process(RUN_A)
    trigger.renewer.give_up()
    assert trigger.looks(job()) is None


def test_every_order_in_which_two_triggerers_and_a_retry_take_the_job_leaves_one_who_may_end_it():
    """Of the processes that wrote or lost, only the one whose token stands, and workers of its try, may end it."""
    processes = {"a": RUN_A, "b": RUN_B}
    for order in ("ab", "ba", "aab", "abab", "baba"):
        it, running = job(), {name: Process(token) for name, token in processes.items()}
        for name in order:
            written = running[name].looks(it)
            if written is not None:
                it = job(written[names.HOLDER_ANNOTATION])
        may = [name for name, token in processes.items() if holder.held_exactly_by(TRY_1, token)(holder.holder_of(it))]
        assert len(may) == 1, order
        it = job(TRY_2)
        assert all(isinstance(_asked(it, token), Leave) for token in (TRY_1, RUN_A, RUN_B))


def _asked(it, token):
    return partial(kill.request, uid="u", action="delete", holds=holder.held_by_try(holder.try_of(token)))(it)


@pytest.mark.parametrize(
    ("number", "retries", "options", "seconds"),
    [
        (1, 0, {}, 0),
        (1, 2, {}, 300),
        (2, 2, {}, 300),
        (3, 2, {}, 0),
        (1, 5, {"factor": 2}, 600),
        (3, 5, {"factor": 2}, 2400),
        (3, 5, {"factor": True}, 2400),
        (3, 5, {"factor": 3, "longest": timedelta(minutes=10)}, 600),
        (500, 900, {"factor": 5}, 24 * 3600),
        (1, 2, {"instead": [timedelta(hours=6), timedelta(seconds=1)]}, 6 * 3600),
        (1, 2, {"instead": [timedelta(seconds=1)]}, 300),
        (1, 2, {"instead": [timedelta(hours=6)], "longest": timedelta(minutes=1)}, 6 * 3600),
        (3, 2, {"instead": [timedelta(hours=6)]}, 0),
    ],
)
def test_a_lease_lasts_until_the_next_try_begins(number, retries, options, seconds):
    delay = delay_before_retry(number, retries, timedelta(minutes=5), **options)
    assert delay == seconds
    assert lease_seconds(3600, 10, delay) == 3600 + seconds
    assert lease_seconds(30, 60, delay) == 240 + seconds


class OwnPolicy(RetryPolicy):
    """A policy whose delays can't be known before a failure."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        return RetryDecision.retry(timedelta(hours=9))


def waiting_for(**delay: float) -> ExceptionRetryPolicy:
    """A policy of Airflow 3.3 with such a delay among others, and a longer one that no retry takes."""
    return ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=ValueError),
            RetryRule(exception=MXNetJobUnreachableError, retry_delay=timedelta(**delay)),
            RetryRule(exception=OSError, retry_delay=timedelta(seconds=1)),
            RetryRule(exception=KeyError, action=RetryAction.FAIL, retry_delay=timedelta(days=2)),
        ]
    )


def test_a_job_s_lease_and_deadline_outlast_the_task_s_retry_policy():
    at = {"task_id": "t", "image": "a", "namespace": "default", "retries": 1, "retry_delay": timedelta(minutes=5)}
    ti = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, max_tries=1, id="i")
    plain, patient = (
        MXNetJobOperator(**at, execution_timeout=timedelta(hours=1), retry_policy=policy)
        for policy in (None, waiting_for(hours=6))
    )
    assert MXNetJobOperator(**at, retry_policy=OwnPolicy())._lease({"ti": ti}) == plain._lease({"ti": ti})
    seconds = [each._lease({"ti": ti}).seconds for each in (plain, patient)]
    assert seconds == [3600 + 300, 3600 + 6 * 3600]
    deadlines = [
        each.manifest_to_create({"ti": ti}, "0" * 32)["spec"]["runPolicy"]["activeDeadlineSeconds"]
        for each in (plain, patient)
    ]
    assert deadlines[1] - deadlines[0] == 6 * 3600 - 300


def test_the_deadline_lets_each_try_that_goes_on_with_the_job_have_its_time():
    hour = timedelta(hours=1)
    assert deadline_seconds(hour, 1, 3900) == 2 * 3600
    assert deadline_seconds(hour, 3, 3900) == 3 * 3600 + 2 * 3900 + 3600
