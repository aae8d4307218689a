"""What a retry finds of an earlier try, by what was stored (Airflow 3.3) or by the labels of jobs (before it)."""

import json
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import task_labels, task_memory
from mxnet_provider.job.reattach import Try, decide, decide_by_labels

TOKEN = "0123456789abcdef0123456789abcdef"
REF = JobRef(name="digits-01234567", namespace="default", uid="u1")
RECORD = task_memory.Record(ref=REF, token=TOKEN, generation=1, retries=1, last_try=1, phase="submitted")
LABELS = {
    task_labels.TOKEN_LABEL: TOKEN,
    task_labels.GENERATION_LABEL: "1",
    task_labels.RETRIES_LABEL: "1",
    "try_number": "1",
}
OURS = {"metadata": {"name": REF.name, "uid": "u1", "labels": LABELS, "creationTimestamp": "2026-11-21T12:00:00Z"}}
RETRY = Try(number=2, generation=1, retries=1)
CLEARED = Try(number=2, generation=2, retries=1)
FIRST = Try(number=1, generation=1, retries=1)
LOWERED = Try(number=2, generation=1, retries=0)
"""Cleared after one try, when `retries` had been lowered by one: `max_tries` is what it was."""


def job(state: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {**OURS["metadata"], **metadata}, "status": {"state": state}}


def held(token: str) -> dict[str, Any]:
    return job(annotations={names.HOLDER_ANNOTATION: token})


def labelled(state: str = "Running", **labels: str) -> dict[str, Any]:
    return job(state, labels={**LABELS, **labels})


GOING = job(deletionTimestamp="2026-11-21T12:00:00Z")
SUSPENDED = {
    **job("Suspended", annotations={names.SUSPENDED_BY_AIRFLOW_ANNOTATION: "true"}),
    "spec": {"runPolicy": {"suspend": True}},
}
BY_A_QUEUE = {**job("Suspended"), "spec": {"runPolicy": {"suspend": True}}}
INTENT = replace(RECORD, ref=replace(REF, uid=""), phase="submitting")


LEFT = replace(RECORD, waits_in="worker")
"""Of a try whose worker died, or gave up."""
DEFERRED = replace(RECORD, waits_in="trigger")
OF_0_1 = replace(RECORD, retries=None, last_try=0)
"""As a release stored it that knew neither."""


def finished(status: str) -> task_memory.Record:
    return replace(RECORD, phase="finished", outcome={"status": status})


@pytest.mark.parametrize(
    ("record", "begins", "found", "decision"),
    [
        (None, FIRST, None, "create"),
        (INTENT, RETRY, None, "create_same"),
        (INTENT, RETRY, OURS, "reattach"),
        (INTENT, RETRY, job(labels={}), "create"),
        (INTENT, RETRY, job(labels={task_labels.TOKEN_LABEL: "another"}), "create"),
        (INTENT, CLEARED, OURS, "replace"),
        (INTENT, CLEARED, None, "create"),
        (RECORD, RETRY, OURS, "reattach"),
        (RECORD, RETRY, job("Succeeded"), "reattach"),
        (RECORD, RETRY, job("Failed"), "create"),
        (RECORD, RETRY, None, "create"),
        (RECORD, RETRY, job(uid="another"), "create"),
        (RECORD, RETRY, job(labels={}), "create"),
        (RECORD, RETRY, GOING, "create"),
        (RECORD, RETRY, SUSPENDED, "resume"),
        (RECORD, RETRY, BY_A_QUEUE, "reattach"),
        (RECORD, CLEARED, OURS, "replace"),
        (LEFT, CLEARED, OURS, "reattach"),
        (replace(INTENT, waits_in="worker"), CLEARED, OURS, "reattach"),
        (LEFT, CLEARED, BY_A_QUEUE, "reattach"),
        (LEFT, CLEARED, SUSPENDED, "replace"),
        (LEFT, CLEARED, GOING, "replace"),
        (LEFT, CLEARED, job("Failed"), "replace"),
        (LEFT, CLEARED, job("Succeeded"), "replace"),
        (LEFT, CLEARED, job(uid="another"), "create"),
        (LEFT, CLEARED, None, "create"),
        (replace(LEFT, phase="finished"), CLEARED, OURS, "replace"),
        (DEFERRED, CLEARED, OURS, "replace"),
        (DEFERRED, RETRY, OURS, "reattach"),
        (RECORD, CLEARED, job("Succeeded"), "replace"),
        (RECORD, CLEARED, job(uid="another"), "create"),
        (finished("succeeded"), RETRY, None, "reuse"),
        (finished("succeeded"), RETRY, job("Succeeded"), "reuse"),
        (finished("succeeded"), CLEARED, job("Succeeded"), "replace"),
        (finished("failed"), RETRY, job("Failed"), "create"),
        (finished("timeout"), RETRY, None, "create"),
        (finished("succeeded"), LOWERED, None, "create"),
        (finished("succeeded"), LOWERED, job("Succeeded"), "create"),
        (RECORD, LOWERED, job("Succeeded"), "create"),
        (RECORD, LOWERED, OURS, "reattach"),
        (RECORD, LOWERED, SUSPENDED, "resume"),
        (INTENT, LOWERED, None, "create_same"),
        (finished("succeeded"), FIRST, job("Succeeded"), "create"),
        (OF_0_1, RETRY, job("Succeeded"), "reattach"),
        (replace(OF_0_1, phase="finished", outcome={"status": "succeeded"}), RETRY, None, "reuse"),
    ],
)
def test_what_a_try_begins_with(record, begins, found, decision):
    assert decide(record, begins, found, reuse_succeeded=True) == decision


def test_a_job_that_succeeded_is_run_again_where_its_result_is_not_to_be_reused():
    assert decide(finished("succeeded"), RETRY, None, reuse_succeeded=False) == "create"
    assert decide(RECORD, RETRY, job("Succeeded"), reuse_succeeded=False) == "create"


LABELS_OF_0_1 = {key: value for key, value in LABELS.items() if key != task_labels.RETRIES_LABEL}
OLD = job(name="old")
YOUNG = job(name="young", creationTimestamp="2026-11-21T13:00:00Z")
FAILED = job("Failed", name="failed", creationTimestamp="2026-11-21T14:00:00Z")
SUCCEEDED = job("Succeeded")


@pytest.mark.parametrize(
    ("jobs", "begins", "decision", "found", "replaced"),
    [
        ([], FIRST, "create", None, []),
        ([OURS], RETRY, "reattach", OURS, []),
        ([SUSPENDED], RETRY, "resume", SUSPENDED, []),
        ([BY_A_QUEUE], RETRY, "reattach", BY_A_QUEUE, []),
        ([OLD, YOUNG, FAILED, GOING], RETRY, "reattach", YOUNG, []),
        ([FAILED, GOING], RETRY, "create", None, []),
        ([SUCCEEDED], RETRY, "reattach", SUCCEEDED, []),
        ([SUCCEEDED], FIRST, "create", None, []),
        ([SUCCEEDED], LOWERED, "create", None, []),
        ([OURS], LOWERED, "reattach", OURS, []),
        ([SUCCEEDED, YOUNG], LOWERED, "reattach", YOUNG, []),
        ([job("Succeeded", labels=LABELS_OF_0_1)], RETRY, "reattach", 0, []),
        ([labelled("Succeeded", try_number="2")], RETRY, "create", None, []),
        ([OURS], FIRST, "reattach", OURS, []),
        ([OURS], CLEARED, "create", None, [OURS]),
        ([held("1:id")], CLEARED, "reattach", 0, []),
        ([held("1:id:run")], CLEARED, "create", None, [0]),
        ([held("1:id"), OLD], CLEARED, "reattach", 0, [OLD]),
        ([held("1:id") | {"status": {"state": "Failed"}}], CLEARED, "create", None, [0]),
        ([OLD, SUCCEEDED, FAILED], CLEARED, "create", None, [OLD, SUCCEEDED, FAILED]),
        ([OLD, labelled(**{task_labels.GENERATION_LABEL: "2"})], CLEARED, "reattach", 1, [OLD]),
        ([job(labels={})], RETRY, "create", None, []),
        ([labelled(**{task_labels.GENERATION_LABEL: "3"})], CLEARED, "create", None, [0]),
        ([labelled(**{task_labels.GENERATION_LABEL: "3"}, try_number="3")], CLEARED, "create", None, []),
    ],
)
def test_what_a_try_begins_with_by_labels(jobs, begins, decision, found, replaced):
    def there(it: Any) -> Any:
        return jobs[it] if isinstance(it, int) else it

    decided = decide_by_labels(jobs, begins, reuse_succeeded=True)
    assert decided.decision == decision
    assert decided.job == there(found)
    assert [*decided.replaced] == [there(each) for each in replaced]


def test_by_labels_a_job_that_succeeded_is_run_again_where_its_result_is_not_to_be_reused():
    assert decide_by_labels([OLD, SUCCEEDED], RETRY, reuse_succeeded=False).job is OLD
    assert decide_by_labels([SUCCEEDED], RETRY, reuse_succeeded=False).decision == "create"


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_no_clear_after_any_edit_of_retries_returns_what_there_was(before, after):
    """Airflow sets `max_tries` to the tries that there were and the task's `retries` when it clears a task."""
    for tries in range(1, before + 2):
        begins = Try(number=tries + 1, generation=tries + after, retries=after)
        record = replace(finished("succeeded"), generation=before, retries=before, last_try=tries)
        assert decide(record, begins, None, reuse_succeeded=True) == "create"
        labels = {task_labels.GENERATION_LABEL: str(before), task_labels.RETRIES_LABEL: str(before)}
        there = labelled("Succeeded", **labels, try_number=str(tries))
        assert decide_by_labels([there], begins, reuse_succeeded=True).job is None


def test_a_record_is_read_back_as_it_was_written():
    assert task_memory.load(json.loads(json.dumps(to_builtins(RECORD)))) == RECORD
    assert task_memory.load(None) is None


def test_something_else_in_the_store_is_an_error_that_says_what_to_do():
    with pytest.raises(MXNetJobError, match="delete that key"):
        task_memory.load({"ref": "?"})
