"""What becomes of a job whose task a user ends or clears: on a whole Airflow, with real jobs."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest
from airflow_runs import Task
from airflow_world import MODES, crosswise
from waiting import eventually

pytestmark = pytest.mark.whole_airflow

VANISHING = """
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

for mode in ("deferred", "waiting"):
    with DAG(f"{mode}_vanishing", schedule=None):
        EmptyOperator(task_id="stays")
        if TRAINS:
            MXNetJobOperator(
                task_id="train",
                image="mxjob/mxnet:1.9.1",
                command=["sh", "-c", 'until [ -s "$GATE" ]; do sleep 0.2; done'],
                env={"GATE": "{{ dag_run.conf['gate'] }}"},
                kubernetes_conn_id="{{ dag_run.conf['connection'] }}",
                poll_interval=2,
                retries=2,
                deferrable=mode == "deferred",
            )
"""
"""A file with two DAGs, whose task `train` is there as long as TRAINS is true."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mode", "state", "cluster"),
    [("deferred", "failed", "local"), pytest.param("waiting", "success", "real", marks=pytest.mark.kubernetes)],
    indirect=["cluster"],
)
def test_a_task_that_a_user_ends_ends_its_job(world, mode, state):
    run, uid = world.interrupt(mode, lambda task: task.set_state(state))
    run.has_no_job()
    assert uid in run.deletions()
    assert run.creations() == 1


@pytest.mark.sampled
@crosswise
def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(world, mode):
    run, old = world.interrupt(mode, Task.clear)
    new = run.replaced(old)
    run.succeed()
    assert run.train.xcom()["uid"] == new
    assert new not in run.deletions()
    assert run.creations() == 2


@pytest.mark.exhaustive
def test_a_task_that_is_taken_out_of_its_dag_leaves_no_job(world):
    """Airflow marks it removed, which ends its trigger or its worker, so that no clearing finds a job to go on with.

    What becomes of the run depends on whether the scheduler has compared it with its DAG by then.
    """
    file = Path(world.airflow.environment["AIRFLOW__CORE__DAGS_FOLDER"]) / "vanishing.py"
    file.write_text(f"TRAINS = True\n{VANISHING}")
    world.airflow.know_dags()
    runs = [world.begin(f"{mode}_vanishing") for mode in MODES]
    uids = [run.in_progress() for run in runs]
    file.write_text(f"TRAINS = False\n{VANISHING}")
    world.airflow.know_dags()
    for run, uid in zip(runs, uids, strict=True):
        run.has_no_job()
        assert run.deletions()[-1] == uid
        eventually(lambda: run.train.look().state == "removed")  # noqa: B023
        assert run.creations() == 1


@pytest.mark.exhaustive
def test_a_task_that_is_cleared_while_it_creates_its_job_leaves_one_job(world):
    """The request has arrived, and its reply is held back until Airflow ends the task."""
    held = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not held:
            await asyncio.to_thread(world.cluster.create, asked.body)
            held.append(asked.body)
            await asyncio.Event().wait()

    run = world.begin("deferred", handler)
    eventually(lambda: held)
    run.train.wait("running")
    run.train.clear()
    run.train.wait("deferred", try_number=2)
    uid = run.in_progress()
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert run.uids() == {uid}


@pytest.mark.exhaustive
def test_a_task_that_is_cleared_before_it_writes_down_its_job_gets_a_new_one(world):
    """Airflow refuses what the task asks it next, which comes before the heartbeat that would end the task."""
    made, cleared = [], threading.Event()

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not made:
            await asyncio.to_thread(world.cluster.create, asked.body)
            made.append(asked.body)
            await asyncio.to_thread(cleared.wait)  # then the task hears that the job is there, and is its own

    run = world.begin("deferred", handler)
    eventually(lambda: made)
    (old,) = run.uids()
    run.train.clear()
    cleared.set()
    new = run.replaced(old)
    run.succeed()
    assert run.train.xcom()["uid"] == new
    assert old in run.deletions()


@pytest.mark.exhaustive
def test_a_task_that_is_cleared_while_it_returns_has_the_result_of_the_job_that_is_over(world):
    """Airflow doesn't tell that from a retry. The reply to the job's deletion is held back until it ends the task."""
    held = []

    async def handler(asked, forward):
        if asked.method == "DELETE" and not held:
            held.append(asked)
            await asyncio.Event().wait()

    run = world.begin("deferred_removed", handler)
    uid = run.in_progress()
    run.end()
    eventually(lambda: held)
    run.train.clear()
    assert run.train.wait("success").try_number == 2
    assert run.train.xcom()["uid"] == uid
    assert run.creations() == 1


@pytest.mark.exhaustive
def test_a_worker_that_is_asked_to_end_by_no_user_leaves_its_job_to_the_retry(world):
    run = world.begin("waiting")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGTERM)
    run.train.wait("running", try_number=2)
    assert run.succeed().try_number == 2
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])
    assert "goes on, for the next try or until its lease runs out" in run.train.log(1)
