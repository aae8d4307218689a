"""Which jobs the clean-up deletes: only what an Airflow task held, has a lease, and no longer waits for."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mxnet_operator.api import names
from mxnet_provider.cli.definition import get_mxnet_cli_commands
from mxnet_provider.job.abandoned import fate, is_unfinished, try_id_of
from mxnet_provider.job.task_state import ABSENT, UNANSWERED

NOW = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)
MIN_AGE = timedelta(minutes=10)
HELD = {names.HOLDER_ANNOTATION: "1:0192:a", names.LEASE_DURATION_ANNOTATION: "3600"}


def job(annotations: dict[str, str] = HELD, *, state: str = "Running", age: int = 60, **more: Any) -> dict[str, Any]:
    created = (NOW - timedelta(minutes=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"state": state, "conditions": [{"type": state, "status": "True"}]}
    return {"metadata": {"annotations": annotations, "creationTimestamp": created, **more}, "status": status}


OVER = ["success", "failed", "skipped", "upstream_failed", "removed"]
WAITS = [None, "scheduled", "queued", "running", "deferred", "up_for_retry", "restarting", "a later one's", UNANSWERED]


@pytest.mark.parametrize(
    ("state", "include", "what"),
    [
        *((state, False, "delete") for state in OVER),
        *((state, True, "leave") for state in WAITS),
        (ABSENT, False, "leave"),
        (ABSENT, True, "delete"),
    ],
)
def test_the_job_of_a_task_that_is_over_is_deleted_and_on_request_one_that_may_be_another_airflow_s(
    state, include, what
):
    assert fate(job(), state, NOW, min_age=MIN_AGE, include_unknown=include).what == what


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (job({}), "no task holds it"),
        (job({**HELD, names.HOLDER_ANNOTATION: "by hand"}), "no task holds it"),
        (job({names.HOLDER_ANNOTATION: "1:0192"}), "it has no lease"),
        (job(age=9), "too young"),
    ],
)
def test_what_may_outlive_its_task_is_left_whatever_becomes_of_that(found, why):
    for state in ("failed", ABSENT):
        left = fate(found, state, NOW, min_age=MIN_AGE, include_unknown=True)
        assert left.what == "leave"
        assert why in left.why


def test_a_job_that_the_end_of_its_task_suspended_waits_for_a_retry():
    it = job({**HELD, names.SUSPENDED_BY_AIRFLOW_ANNOTATION: "true"})
    it["spec"] = {"runPolicy": {"suspend": True}}
    assert fate(it, "failed", NOW, min_age=MIN_AGE).what == "leave"


@pytest.mark.parametrize(
    ("found", "unfinished"),
    [
        (job(), True),
        (job(state="Created"), True),
        (job(state="Succeeded"), False),
        (job(state="Failed"), False),
        (job(deletionTimestamp="2026-11-22T06:00:00Z"), False),
    ],
)
def test_only_unfinished_jobs_are_looked_at(found, unfinished):
    assert is_unfinished(found) is unfinished


def test_the_try_that_holds_a_job_is_read_from_its_token():
    assert [try_id_of(job({names.HOLDER_ANNOTATION: t})) for t in ("1:0192", "2:0192:a")] == ["0192", "0192"]


def test_the_command_keeps_jobs_younger_than_ten_minutes_unless_it_is_told_otherwise() -> None:
    (group,) = get_mxnet_cli_commands()
    (command,) = group.subcommands
    parser = argparse.ArgumentParser()
    for argument in command.args:
        argument.add_to_parser(parser)
    asked = [parser.parse_args(words).min_age_minutes for words in ([], ["--min-age-minutes", "0"])]
    assert asked == [MIN_AGE / timedelta(minutes=1), 0]
