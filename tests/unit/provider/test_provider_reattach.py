"""What a retry finds of an earlier try, by what was stored (Airflow 3.3) or by the labels of jobs (before it)."""

import json
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import identity, reattach
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import SUSPENDED_BY_AIRFLOW
from mxnet_provider.job.reattach import Try, decide, decide_by_labels

TOKEN = "0123456789abcdef0123456789abcdef"
REF = JobRef(name="digits-01234567", namespace="default", uid="u1")
RECORD = reattach.Record(ref=REF, token=TOKEN, generation=1, phase="submitted")
LABELS = {identity.TOKEN_LABEL: TOKEN, identity.GENERATION_LABEL: "1", "try_number": "1"}
OURS = {"metadata": {"name": REF.name, "uid": "u1", "labels": LABELS, "creationTimestamp": "2026-11-21T12:00:00Z"}}
RETRY = Try(number=2, generation=1)
CLEARED = Try(number=2, generation=2)
FIRST = Try(number=1, generation=1)


def job(state: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {**OURS["metadata"], **metadata}, "status": {"state": state}}


def labelled(state: str = "Running", **labels: str) -> dict[str, Any]:
    return job(state, labels={**LABELS, **labels})


GOING = job(deletionTimestamp="2026-11-21T12:00:00Z")
SUSPENDED = {
    **job("Suspended", annotations={SUSPENDED_BY_AIRFLOW: "true"}),
    "spec": {"runPolicy": {"suspend": True}},
}
BY_A_QUEUE = {**job("Suspended"), "spec": {"runPolicy": {"suspend": True}}}
INTENT = replace(RECORD, ref=replace(REF, uid=""), phase="submitting")


def finished(status: str) -> reattach.Record:
    return replace(RECORD, phase="finished", outcome={"status": status})


@pytest.mark.parametrize(
    ("record", "begins", "found", "decision"),
    [
        (None, FIRST, None, "create"),
        (INTENT, RETRY, None, "create_same"),
        (INTENT, RETRY, OURS, "reattach"),
        (INTENT, RETRY, job(labels={}), "create"),
        (INTENT, RETRY, job(labels={identity.TOKEN_LABEL: "another"}), "create"),
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
        (RECORD, CLEARED, job("Succeeded"), "replace"),
        (RECORD, CLEARED, job(uid="another"), "create"),
        (finished("succeeded"), RETRY, None, "reuse"),
        (finished("succeeded"), RETRY, job("Succeeded"), "reuse"),
        (finished("succeeded"), CLEARED, job("Succeeded"), "replace"),
        (finished("failed"), RETRY, job("Failed"), "create"),
        (finished("timeout"), RETRY, None, "create"),
    ],
)
def test_what_a_try_begins_with(record, begins, found, decision):
    assert decide(record, begins, found, reuse_succeeded=True) == decision


def test_a_job_that_succeeded_is_run_again_where_its_result_is_not_to_be_reused():
    assert decide(finished("succeeded"), RETRY, None, reuse_succeeded=False) == "create"
    assert decide(RECORD, RETRY, job("Succeeded"), reuse_succeeded=False) == "create"


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
        ([OURS], FIRST, "reattach", OURS, []),
        ([OURS], CLEARED, "create", None, [OURS]),
        ([OLD, SUCCEEDED, FAILED], CLEARED, "create", None, [OLD, SUCCEEDED, FAILED]),
        ([OLD, labelled(**{identity.GENERATION_LABEL: "2"})], CLEARED, "reattach", 1, [OLD]),
        ([job(labels={})], RETRY, "create", None, []),
    ],
)
def test_what_a_try_begins_with_by_labels(jobs, begins, decision, found, replaced):
    decided = decide_by_labels(jobs, begins, reuse_succeeded=True)
    assert (decided.decision, decided.job, [*decided.replaced]) == (
        decision,
        jobs[found] if isinstance(found, int) else found,
        replaced,
    )


def test_by_labels_a_job_that_succeeded_is_run_again_where_its_result_is_not_to_be_reused():
    assert decide_by_labels([OLD, SUCCEEDED], RETRY, reuse_succeeded=False).job is OLD
    assert decide_by_labels([SUCCEEDED], RETRY, reuse_succeeded=False).decision == "create"


def test_a_record_is_read_back_as_it_was_written():
    assert reattach.load(json.loads(json.dumps(to_builtins(RECORD)))) == RECORD
    assert reattach.load(None) is None


def test_something_else_in_the_store_is_an_error_that_says_what_to_do():
    with pytest.raises(MXNetJobError, match="delete that key"):
        reattach.load({"ref": "?"})
