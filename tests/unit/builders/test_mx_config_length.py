"""MX_CONFIG as long as Linux takes it; beyond that a job does without, since nothing could start with it."""

import json
import os
import subprocess
import sys

import pytest
from builders import make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders.environment import LONGEST_MX_CONFIG, environment, has_mx_config
from mxnet_operator.builders.pods import build_pod

NAMES = ("a", "digits", "a-training-run-with-as-long-a-name-as-there-may-be")
TYPES = (("Scheduler", "Server", "Worker"), ("TunerTracker", "TunerServer", "Tuner"), ("Worker",))


def job_of(name, types, many, count):
    builder = make_mxjob(name)
    for replica_type in types:
        builder.replicas(
            replica_type, count if replica_type == many else 1, env=[{"name": "MX_CONFIG", "value": "own"}]
        )
    return with_defaults(builder.obj())


def most_replicas(name, types, many):
    """The largest number with MX_CONFIG: it is there for all below, and for none above."""
    low, high = 1, 10_001
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has_mx_config(job_of(name, types, many, middle)) else (low, middle)
    return low


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "types", "many"),
    [(NAMES[0], TYPES[0], "Worker"), (NAMES[1], TYPES[0], "Server"), (NAMES[2], TYPES[1], "TunerServer")],
)
def test_at_the_boundary_every_replica_can_start_and_one_more_would_not_fit(name, types, many):
    most = most_replicas(name, types, many)
    print(f"{name}: {most} x {many}")
    job, beyond = job_of(name, types, many, most), job_of(name, types, many, most + 1)
    longest = max((environment(job, each, index)["MX_CONFIG"] for each in types for index in (0, most - 1)), key=len)
    assert LONGEST_MX_CONFIG - 200 < len(longest) <= LONGEST_MX_CONFIG
    assert len(json.loads(longest)["cluster"][many.lower()]) == most
    for each in types:
        assert "MX_CONFIG" not in environment(beyond, each, 0)
        assert environment(beyond, each, 0).keys() == environment(job, each, 0).keys() - {"MX_CONFIG"}


def test_a_job_of_1_8_1s_sizes_has_it():
    assert has_mx_config(job_of("digits", TYPES[0], "Worker", 2000))


def test_without_it_a_users_own_is_kept():
    job = job_of("digits", TYPES[2], "Worker", 5000)
    env = build_pod(job, "Worker", 0, 0)["spec"]["containers"][0]["env"]
    assert {"name": "MX_CONFIG", "value": "own"} in env


def test_linux_takes_the_longest_and_refuses_one_byte_beyond_its_own_limit():
    def start(length):
        variables = {"MX_CONFIG": "x" * length, "PATH": os.environ["PATH"]}
        subprocess.run([sys.executable, "-S", "-c", ""], env=variables, check=True)

    start(LONGEST_MX_CONFIG)
    start(LONGEST_MX_CONFIG + 64)
    with pytest.raises(OSError, match="Argument list too long"):
        start(LONGEST_MX_CONFIG + 65)
