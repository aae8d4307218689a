"""Defers every task of the DAG `deferred` in Airflow's database, as if a worker had created its job and ended.

Its input is JSON: a list of `{name, uid}`, and the poll_interval. A program of its own, because Airflow reads its
configuration when it is imported.
"""

import json
import sys
import time

from airflow.models.dagbag import DBDagBag
from airflow.models.trigger import Trigger
from airflow.utils import timezone
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger


def main() -> None:
    """Read the jobs, and defer a task for each."""
    given = json.load(sys.stdin)
    with create_session() as session:
        dag = DBDagBag().get_latest_version_of_dag("deferred", session=session)
        run = dag.create_dagrun(
            run_id="bench",
            run_after=timezone.utcnow(),
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.RUNNING,
            session=session,
        )
        tasks = sorted(run.get_task_instances(session=session), key=lambda ti: ti.task_id)
        for ti, job in zip(tasks, given["jobs"], strict=True):
            trigger = Trigger.from_object(
                MXNetJobTrigger(
                    name=job["name"],
                    namespace="default",
                    uid=job["uid"],
                    poll_interval=given["poll_interval"],
                    startup_timeout=None,
                    stats_tags={"dag_id": "deferred", "task_id": ti.task_id},
                    deferred_at=time.time(),
                )
            )
            session.add(trigger)
            session.flush()
            ti.state, ti.trigger_id, ti.try_number = TaskInstanceState.DEFERRED, trigger.id, 1


if __name__ == "__main__":
    main()
