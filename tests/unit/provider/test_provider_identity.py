"""A job's name and labels: another for each try of a task, and always what Kubernetes takes."""

import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from mxnet_operator.api import names
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import identity
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import SUSPENDED_BY_AIRFLOW


@dataclass
class Try:
    """What Airflow tells a task about itself, as far as identity reads it."""

    dag_id: str = "train_digits"
    task_id: str = "train"
    run_id: str = "manual__2026-11-21T12:00:00+00:00"
    map_index: int | None = -1
    try_number: int = 1
    max_tries: int = 0


GANG = {"Scheduler": 1, "Server": 2, "Worker": 2}


TOKEN = "0123456789abcdef0123456789abcdef"


def test_two_jobs_of_a_task_have_two_names():
    first, second = identity.new_token(), identity.new_token()
    assert identity.job_name("digits", GANG, first) != identity.job_name("digits", GANG, second)


@pytest.mark.parametrize(
    ("replicas", "longest"),
    [
        (GANG, "scheduler-0"),
        ({"Worker": 1}, "worker-0"),
        ({"Worker": 12}, "worker-11"),
        ({"TunerTracker": 1, "TunerServer": 2, "Tuner": 1}, "tunertracker-0"),
    ],
)
def test_a_long_name_leaves_exactly_the_room_that_the_longest_pod_name_needs(replicas, longest):
    name = identity.job_name("x" * 80, replicas, TOKEN)
    assert len(f"{name}-{longest}") == names.MAX_NAME


def test_a_short_name_is_kept_before_the_suffix():
    assert identity.job_name("digits", GANG, TOKEN).startswith("digits-")


@pytest.mark.parametrize(
    ("task_id", "base"),
    [
        ("train", "train"),
        ("group.Train_It", "group-train-it"),
        ("1st", "mxjob-1st"),
        ("École", "cole"),
        ("漢字", "mxjob"),
    ],
)
def test_a_task_id_becomes_the_beginning_of_a_dns_name(task_id, base):
    assert identity.base_name(task_id) == base


def test_labels_are_safe_whatever_airflow_s_ids_are():
    ti = Try(dag_id="d" * 200, run_id="scheduled__2026-11-21T12:00:00+00:00", task_id="a.b", map_index=None)
    labels = identity.labels(ti, TOKEN)
    assert all(len(value) <= 63 and ":" not in value and "+" not in value for value in labels.values())
    assert labels["map_index"] not in ("", "None")


@given(st.text(max_size=80) | st.text(alphabet="._- aZ9é学", max_size=80))
def test_a_label_of_any_text_is_one_that_kubernetes_takes(text):
    """Airflow allows ids of letters and digits of any script."""
    value = identity.safe_label(text)
    assert value == "" or re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)


REF = JobRef(name="digits-01234567", namespace="default", uid="u1")
RECORD = identity.Record(ref=REF, token=TOKEN, generation=1, phase="submitted")
OURS = {
    "metadata": {
        "name": REF.name,
        "uid": "u1",
        "labels": {identity.TOKEN_LABEL: TOKEN},
        "creationTimestamp": "2026-11-21T12:00:00Z",
    }
}


def job(state="Running", **metadata):
    return {"metadata": {**OURS["metadata"], **metadata}, "status": {"state": state}}


SUSPENDED = {
    **job("Suspended", annotations={SUSPENDED_BY_AIRFLOW: "true"}),
    "spec": {"runPolicy": {"suspend": True}},
}
BY_A_QUEUE = {**job("Suspended"), "spec": {"runPolicy": {"suspend": True}}}
INTENT = replace(RECORD, ref=replace(REF, uid=""), phase="submitting")


def finished(status):
    return replace(RECORD, phase="finished", outcome={"status": status})


@pytest.mark.parametrize(
    ("record", "generation", "found", "decision"),
    [
        (None, 1, None, "create"),
        (INTENT, 1, None, "create_same"),
        (INTENT, 1, OURS, "reattach"),
        (INTENT, 1, job(labels={}), "create"),
        (INTENT, 1, job(labels={identity.TOKEN_LABEL: "another"}), "create"),
        (INTENT, 2, OURS, "replace"),
        (INTENT, 2, None, "create"),
        (RECORD, 1, OURS, "reattach"),
        (RECORD, 1, job("Succeeded"), "reattach"),
        (RECORD, 1, job("Failed"), "create"),
        (RECORD, 1, None, "create"),
        (RECORD, 1, job(uid="another"), "create"),
        (RECORD, 1, job(labels={}), "create"),
        (RECORD, 1, job(deletionTimestamp="2026-11-21T12:00:00Z"), "create"),
        (RECORD, 1, SUSPENDED, "resume"),
        (RECORD, 1, BY_A_QUEUE, "reattach"),
        (RECORD, 2, OURS, "replace"),
        (RECORD, 2, job("Succeeded"), "replace"),
        (RECORD, 2, job(uid="another"), "create"),
        (finished("succeeded"), 1, None, "reuse"),
        (finished("succeeded"), 1, job("Succeeded"), "reuse"),
        (finished("succeeded"), 2, job("Succeeded"), "replace"),
        (finished("failed"), 1, job("Failed"), "create"),
        (finished("timeout"), 1, None, "create"),
    ],
)
def test_what_a_try_begins_with(record, generation, found, decision):
    assert identity.decide(record, generation, found, reuse_succeeded=True) == decision


def test_a_job_that_succeeded_is_run_again_where_its_result_is_not_to_be_reused():
    assert identity.decide(finished("succeeded"), 1, None, reuse_succeeded=False) == "create"
    assert identity.decide(RECORD, 1, job("Succeeded"), reuse_succeeded=False) == "create"


def test_of_several_jobs_the_youngest_that_can_still_succeed_is_the_one():
    old, young = job(name="old"), job(name="young", creationTimestamp="2026-11-21T13:00:00Z")
    failed = job("Failed", name="failed", creationTimestamp="2026-11-21T14:00:00Z")
    going = job(name="going", creationTimestamp="2026-11-21T15:00:00Z", deletionTimestamp="2026-11-21T15:00:00Z")
    assert identity.newest([old, young, failed, going], reuse_succeeded=True) is young
    assert identity.newest([failed, going], reuse_succeeded=True) is None
    assert identity.newest([old, job("Succeeded")], reuse_succeeded=False) is old


def test_a_record_is_read_back_as_it_was_written():
    assert identity.load(json.loads(json.dumps(to_builtins(RECORD)))) == RECORD
    assert identity.load(None) is None


def test_something_else_in_the_store_is_an_error_that_says_what_to_do():
    with pytest.raises(MXNetJobError, match="delete that key"):
        identity.load({"ref": "?"})
