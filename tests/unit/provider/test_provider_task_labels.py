"""A job's name and labels: another for each try of a task, and always what Kubernetes takes."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnet_operator.api import names
from mxnet_provider.job import task_labels


@dataclass
class Try:
    """What Airflow tells a task about itself, as far as task_labels reads it."""

    dag_id: str = "train_digits"
    task_id: str = "train"
    run_id: str = "manual__2026-11-21T12:00:00+00:00"
    map_index: int | None = -1
    try_number: int = 1
    max_tries: int = 0


GANG = {"Scheduler": 1, "Server": 2, "Worker": 2}


TOKEN = "0123456789abcdef0123456789abcdef"


def test_two_jobs_of_a_task_have_two_names():
    first, second = task_labels.new_token(), task_labels.new_token()
    assert task_labels.job_name("digits", GANG, first) != task_labels.job_name("digits", GANG, second)


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
    name = task_labels.job_name("x" * 80, replicas, TOKEN)
    assert len(f"{name}-{longest}") == names.MAX_NAME


def test_a_short_name_is_kept_before_the_suffix():
    assert task_labels.job_name("digits", GANG, TOKEN).startswith("digits-")


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
    assert task_labels.base_name(task_id) == base


def test_labels_are_safe_whatever_airflow_s_ids_are():
    ti = Try(dag_id="d" * 200, run_id="scheduled__2026-11-21T12:00:00+00:00", task_id="a.b", map_index=None)
    labels = task_labels.labels(ti, TOKEN, retries=2)
    assert all(len(value) <= 63 and ":" not in value and "+" not in value for value in labels.values())
    assert labels["map_index"] not in ("", "None")


@given(st.text(max_size=80) | st.text(alphabet="._- aZ9é学", max_size=80))
def test_a_label_of_any_text_is_one_that_kubernetes_takes(text):
    """Airflow allows ids of letters and digits of any script."""
    value = task_labels.safe_label(text)
    assert value == "" or re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)
