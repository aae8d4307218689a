"""Conditions, the state that sums them up, and defaults."""

from datetime import timedelta

import pytest
from builders import NOW, make_mxjob

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import Condition

LATER = NOW + timedelta(seconds=7)


def after(*types: str) -> tuple[Condition, ...]:
    current: tuple[Condition, ...] = ()
    for condition_type in types:
        current = conditions.set_condition(current, condition_type, "reason", "message", NOW)
    return current


@pytest.mark.parametrize(
    ("types", "state"),
    [
        ((), ""),
        (("Created",), "Created"),
        (("Created", "Running"), "Running"),
        (("Created", "Running", "Restarting"), "Restarting"),
        (("Created", "Restarting", "Running"), "Running"),
        (("Created", "Running", "Succeeded"), "Succeeded"),
        (("Created", "Running", "Failed"), "Failed"),
        (("Created", "Suspended"), "Suspended"),
    ],
)
def test_the_state_sums_up_the_conditions(types: tuple[str, ...], state: str) -> None:
    assert conditions.state_of(after(*types)) == state


def test_the_same_condition_again_changes_nothing() -> None:
    current = after("Created", "Running")
    assert conditions.set_condition(current, "Running", "reason", "message", LATER) == current


def test_a_new_message_keeps_the_time_of_the_transition() -> None:
    (new,) = conditions.set_condition(after("Running"), "Running", "reason", "other", LATER)
    assert (new.last_transition_time, new.last_update_time) == (NOW, LATER)


def test_running_and_restarting_displace_each_other() -> None:
    assert [c.type for c in after("Running", "Restarting")] == ["Restarting"]


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_the_end_of_a_job_makes_running_false(end: str) -> None:
    assert [(c.type, c.status) for c in after("Running", end)] == [("Running", "False"), (end, "True")]


def test_the_state_of_a_job_that_another_controller_wrote_is_read_from_its_conditions() -> None:
    job = {
        "status": {
            "conditions": [
                {"type": "Running", "status": "False"},
                {"type": "Failed", "status": "True", "message": "why"},
            ]
        }
    }
    assert conditions.job_state(job) == "Failed"
    assert conditions.terminal_message(job) == "why"
    assert conditions.job_state({}) == ""
    assert conditions.terminal_message({"status": {"conditions": None}}) == ""


def test_defaults_are_those_of_the_last_official_operator() -> None:
    job = with_defaults(make_mxjob().replicas("worker", None).obj())
    worker = job.spec.mx_replica_specs["Worker"]
    assert (worker.replicas, worker.restart_policy) == (1, "Never")
    assert worker.template["spec"]["containers"][0]["ports"] == [
        {"name": "mxjob-port", "containerPort": 9091, "protocol": "TCP"}
    ]
    assert job.spec.run_policy.clean_pod_policy == "None"
    assert job.spec.run_policy.suspend is False


def test_a_port_of_that_name_is_kept() -> None:
    ports = [{"name": "mxjob-port", "containerPort": 9999}]
    job = with_defaults(make_mxjob().worker(1, ports=ports).obj())
    assert job.spec.mx_replica_specs["Worker"].template["spec"]["containers"][0]["ports"] == ports


def test_defaults_of_defaults_change_nothing() -> None:
    job = with_defaults(make_mxjob().gang().obj())
    assert with_defaults(job) == job


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            "worker-0 exited with code 1:\nTraceback:\n  x\nKeyError: 'w'\n",
            "worker-0 exited with code 1: KeyError: 'w'",
        ),
        ("worker-0 exited with code 1; it wrote nothing.", "worker-0 exited with code 1; it wrote nothing."),
        ("first\nsecond", "first"),
        ("alone:", "alone:"),
        ("", ""),
    ],
)
def test_a_message_in_a_line_ends_with_the_error_that_a_traceback_ends_with(message: str, line: str) -> None:
    assert conditions.in_a_line(message) == line
