"""Conclusion from each way in which the wait for a job ends: the task's error, and what is shown and ended before."""

import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException, AirflowTaskTimeout

from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobStartupTimeoutError,
)
from mxnet_provider.job.event import Event
from mxnet_provider.operators.conclusion import Conclusion, conclude

TITLE = "MXJob default/digits"


def ended(status, message="", **fields):
    return Event(status=status, name="digits", namespace="default", uid="u", message=message, **fields)


def test_a_job_that_has_succeeded_leaves_no_error_and_nothing_to_show():
    assert conclude(ended("succeeded"), TITLE, skip_on_exit_code=()) == Conclusion()


@pytest.mark.parametrize(
    ("event", "error", "words", "done"),
    [
        (ended("failed", "it broke"), MXNetJobFailedError, f"{TITLE} failed: it broke", "logs, events"),
        (ended("deleted", "is gone"), MXNetJobDeletedError, f"{TITLE} is gone.", ""),
        (ended("timeout", "took too long"), AirflowTaskTimeout, f"{TITLE} took too long.", "logs, ends"),
        (
            ended("startup_timeout", "had not started"),
            MXNetJobStartupTimeoutError,
            f"{TITLE} had not started.",
            "logs, events, ends",
        ),
        (ended("error", "nobody answers"), MXNetJobError, f"{TITLE}: nobody answers", ""),
    ],
    ids=lambda each: each.status if isinstance(each, Event) else "",
)
def test_any_other_end_has_its_own_error_and_ends_only_a_job_that_ran_out_of_time(event, error, words, done):
    concluded = conclude(event, TITLE, skip_on_exit_code=())
    assert (type(concluded.error), str(concluded.error)) == (error, words)
    does = {"logs": concluded.shows_logs, "events": concluded.shows_events, "ends": concluded.ends_job}
    assert ", ".join(name for name, holds in does.items() if holds) == done


@pytest.mark.parametrize(("codes", "skips"), [({3}, True), ({1, 3}, True), ({4}, False), ((), False)])
def test_a_job_that_failed_with_a_chosen_exit_code_skips_the_task(codes, skips):
    failed = [{"pod": "digits-worker-0", "exit_code": 3}]
    concluded = conclude(ended("failed", "it broke", failed_replicas=failed), TITLE, skip_on_exit_code=codes)
    assert isinstance(concluded.error, AirflowSkipException if skips else MXNetJobFailedError)
    assert ("digits-worker-0 ended with 3" in str(concluded.error)) is skips
    assert concluded.shows_logs
