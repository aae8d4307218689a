"""Differences between the supported Airflow versions (2.11 to 3.3) that apache-airflow-providers-common-compat lacks.

What only moved is imported from `airflow.providers.common.compat.sdk`, here and everywhere else in the provider.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

import airflow
from packaging.version import Version

from mxnet_provider.job.task_state import ABSENT

if TYPE_CHECKING:
    from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout
else:
    try:
        from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout
    except ImportError:
        from airflow.exceptions import TaskDeferralError

        try:
            from airflow.exceptions import TaskDeferralTimeout
        except ImportError:  # Airflow 2

            class TaskDeferralTimeout(TaskDeferralError):  # noqa: N818 - Airflow 3's name
                """Never raised: Airflow 2 has a text for it."""


try:
    from airflow.sdk.exceptions import AirflowRuntimeError
except ImportError:  # Airflow 2, whose tasks ask its database
    REFUSALS: tuple[type[Exception], ...] = ()
else:
    REFUSALS = (AirflowRuntimeError,)
"""What a request of a task to Airflow's API server raises that this one rejects, as it does when a user cleared the
task: it is another try's then, and the heartbeat whose answer ends this one may be seconds off."""

IS_AIRFLOW_2: Final = Version(airflow.__version__).major == 2

TIMEOUT_SPANS_DEFERRALS: Final = IS_AIRFLOW_2
"""Whether Airflow ends a resumed task whose `execution_timeout` is over before any code of its operator runs."""

DEFERRAL_ERRORS: Final = (TaskDeferralError, TaskDeferralTimeout)
"""With what Airflow resumes a task whose trigger sent no event; neither class is the other's parent."""

_TIMEOUT_OF_AIRFLOW_2: Final = "Trigger/execution timeout"


def is_deferral_timeout(error: Exception) -> bool:
    """Whether Airflow resumed a task because its trigger took too long."""
    return isinstance(error, TaskDeferralTimeout) or (IS_AIRFLOW_2 and str(error) == _TIMEOUT_OF_AIRFLOW_2)


def delays_by_policy(task: Any) -> list[timedelta]:
    """Return the delays before a retry that a task's `retry_policy` may choose, as far as rules say them.

    What a policy of an author's own makes of a failure can't be known before.
    """
    if (policy := getattr(task, "retry_policy", None)) is None:
        return []
    from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction  # noqa: PLC0415 - not before 3.3

    if not isinstance(policy, ExceptionRetryPolicy):
        return []
    return [each.retry_delay for each in policy.rules if each.action is RetryAction.RETRY and each.retry_delay]


def id_of_try(ti: Any) -> UUID | str:
    """Return the id of a try of a task, which a deferral keeps and the next try does not.

    Airflow 3 makes one. Airflow 2 has none: there it follows from the try number, which no two tries share.
    """
    own: UUID | str | None = getattr(ti, "id", None)
    if own is not None:
        return own
    return uuid5(NAMESPACE_URL, f"{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}/{ti.try_number}")


def show_rendered_fields(ti: Any, log: Any) -> None:
    """Store templated fields anew for Airflow's page; Airflow 3 does it for `overwrite_rtif_after_execution`."""
    if not IS_AIRFLOW_2:
        return
    from airflow.models.renderedtifields import RenderedTaskInstanceFields  # noqa: PLC0415

    try:
        RenderedTaskInstanceFields(ti, render_templates=False).write()
    except Exception as e:
        log.warning("Airflow's page does not show the job as it was created: %s: %s", type(e).__name__, e)


def state_of_task(ti: Any) -> str | None:
    """Ask Airflow for the state of a task instance; ABSENT where it has none, or did not start this process."""
    index = -1 if ti.map_index is None else ti.map_index
    if not IS_AIRFLOW_2:
        states = _run_states(ti, ti.task_id, index)
        return _text(states.get(ti.task_id if index < 0 else f"{ti.task_id}_{index}", ABSENT))
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    key = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id, "map_index": index}
    with create_session() as session:
        found: Any = session.query(TaskInstance.state).filter_by(**key).one_or_none()
    return ABSENT if found is None else _text(found.state)


def states_in_run(ti: Any, task_id: str) -> list[str | None]:
    """Read the states of a task of the same run, of each of its map indexes; for a worker."""
    if not IS_AIRFLOW_2:
        return list(_run_states(ti, task_id, None).values())
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        of_task = session.query(TaskInstance.state).filter_by(dag_id=ti.dag_id, run_id=ti.run_id, task_id=task_id)
        return [found.state for found in of_task]


def _run_states(ti: Any, task_id: str, index: int | None) -> dict[str, Any]:
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance  # noqa: PLC0415 - it takes long to import

    try:
        found = RuntimeTaskInstance.get_task_states(
            dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id], map_index=index
        )
    except NameError:  # of Airflow's supervisor, which this process does not have
        return {}
    return found.get(ti.run_id) or {}


def _text(state: Any) -> str | None:
    return None if state is None else str(getattr(state, "value", state))
