"""A job's name and labels: another for each try of a task, and always what Kubernetes takes."""

import uuid
from dataclasses import dataclass, field

import pytest

from mxnet_operator.api import names
from mxnet_provider import identity


@dataclass
class Try:
    """What Airflow tells a task about itself, as far as identity reads it."""

    dag_id: str = "train_digits"
    task_id: str = "train"
    run_id: str = "manual__2026-11-21T12:00:00+00:00"
    map_index: int | None = -1
    try_number: int = 1
    id: uuid.UUID = field(default_factory=uuid.uuid4)


GANG = {"Scheduler": 1, "Server": 2, "Worker": 2}


def test_the_same_try_always_gives_the_same_name():
    ti = Try()
    assert identity.job_name("digits", GANG, ti) == identity.job_name("digits", GANG, ti)


def test_two_tries_of_a_task_give_two_names():
    assert identity.job_name("digits", GANG, Try()) != identity.job_name("digits", GANG, Try())


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
    name = identity.job_name("x" * 80, replicas, Try())
    assert len(f"{name}-{longest}") == names.MAX_NAME


def test_a_short_name_is_kept_before_the_suffix():
    assert identity.job_name("digits", GANG, Try()).startswith("digits-")


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
    labels = identity.labels(ti)
    assert all(len(value) <= 63 and ":" not in value and "+" not in value for value in labels.values())
    assert labels["map_index"] not in ("", "None")


def test_a_job_is_ours_only_if_this_very_try_made_it():
    first, second = Try(), Try()
    job = {"metadata": {"labels": identity.labels(first)}}
    assert identity.is_ours(job, identity.labels(first))
    assert not identity.is_ours(job, identity.labels(second))
    assert not identity.is_ours({"metadata": {}}, identity.labels(first))
