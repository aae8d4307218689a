"""`airflow mxnet cleanup-jobs`: the cluster's jobs, their tasks by Airflow's database, and the end of what is left."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mxnet_operator.api.conditions import job_state
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_provider.hooks import api_errors
from mxnet_provider.job import abandoned, holder, kill, task_labels
from mxnet_provider.job.abandoned import Fate
from mxnet_provider.job.task_state import ABSENT

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

SOME_FAILED: Final = 1
SOME_LEFT: Final = 3
_COLUMNS: Final = ("namespace", "job", "state", "task", "action", "why")


def cleanup_jobs(args: Namespace) -> None:
    from airflow.cli.simple_table import AirflowConsole  # noqa: PLC0415 - the command line's own, not the provider's
    from airflow.utils.session import create_session  # noqa: PLC0415

    hook = _hook(args)
    now, min_age = datetime.now(UTC), timedelta(minutes=args.min_age_minutes)
    rows: list[dict[str, str]] = []
    failed = left = 0
    try:
        with create_session() as session:
            for job in filter(abandoned.is_unfinished, hook.list_jobs(args.namespace, task_labels.TOKEN_LABEL)):
                task, state = _task_of(session, abandoned.try_id_of(job))
                fate = abandoned.fate(job, state, now, min_age=min_age, include_unknown=args.include_unknown)
                done = _carry_out(hook, job, fate) if args.delete else fate.what
                failed += done == "failed"
                left += done == "delete"
                if fate.what == "delete" or args.verbose:
                    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
                    cells = (namespace, name, job_state(job), task, done, fate.why)
                    rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    except OF_THE_SERVER as e:
        raise SystemExit(f"The API server could not be asked: {api_errors.message(e)}") from e
    AirflowConsole().print_as(data=rows, output=args.output)
    if failed:
        raise SystemExit(SOME_FAILED)
    if left:
        raise SystemExit(SOME_LEFT)


def _hook(args: Namespace) -> "MXNetJobHook":
    """Make a hook that looks its connection up as Airflow's own commands do: outside a task the SDK has no database."""
    from airflow.models.connection import Connection  # noqa: PLC0415

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook  # noqa: PLC0415

    class CommandLineHook(MXNetJobHook):
        @classmethod
        def get_connection(cls, conn_id: str) -> Any:
            return Connection.get_connection_from_secrets(conn_id)

    return CommandLineHook(
        kubernetes_conn_id=args.conn_id, config_file=args.config_file, cluster_context=args.cluster_context
    )


def _task_of(session: "Session", try_id: str | None) -> tuple[str, str | None]:
    """Return the task of a try, and its state now; ABSENT where this Airflow has no such try."""
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.models.taskinstancehistory import TaskInstanceHistory  # noqa: PLC0415

    try:
        key = UUID(try_id or "")
    except ValueError:
        return "", ABSENT
    found: Any = session.get(TaskInstance, key)
    if found is None and (past := session.get(TaskInstanceHistory, key)) is not None:
        same = {field: getattr(past, field) for field in ("dag_id", "run_id", "task_id", "map_index")}
        found = session.query(TaskInstance).filter_by(**same).one_or_none()
    if found is None:
        return "", ABSENT
    index = f"[{found.map_index}]" if found.map_index >= 0 else ""
    state = None if found.state is None else str(getattr(found.state, "value", found.state))
    return f"{found.dag_id} {found.run_id} {found.task_id}{index}", state


def _carry_out(hook: "MXNetJobHook", job: Mapping[str, Any], fate: Fate) -> str:
    """Return what was done: `deleted`, `leave`, or `failed`; a job that anybody takes over meanwhile is left."""
    if fate.what == "leave":
        return fate.what
    ref = JobRef.of(job)
    holds = holder.held_exactly_by(holder.holder_of(job))
    try:
        ended = hook.end_job(ref, partial(kill.request, uid=ref.uid, action="delete", holds=holds))
    except OF_THE_SERVER as e:
        hook.log.error("%s could not be deleted: %s", ref.title, api_errors.message(e))  # noqa: TRY400
        return "failed"
    return "deleted" if ended.done else "leave"
