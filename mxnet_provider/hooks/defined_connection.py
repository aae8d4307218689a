"""Whether a connection that Airflow calls undefined really is, or Airflow only could not be asked.

Airflow says "isn't defined" as well where its own API server, database or secrets backend did not answer. For
`kubernetes_default` its hook goes on with the pod's service account or kubectl's configuration then, which may lead to
another cluster, where no job of ours is found. So Airflow is asked once more, in a way in which it tells the two apart.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException

from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import AirflowUnreachableError

_NOT_FOUND: Final = "CONNECTION_NOT_FOUND"
"""Of `airflow.sdk.exceptions.ErrorType`."""


class DefinedConnectionHook(KubernetesHook):
    """Airflow's hook, which leaves open what a connection is that Airflow could not be asked for."""

    @classmethod
    def get_connection(cls, conn_id: str) -> Any:
        """Return the connection as Airflow's hook does.

        Raises:
            AirflowUnreachableError: Airflow could not be asked for it.
        """
        try:
            found = super().get_connection(conn_id)
        except AirflowNotFoundException:
            require_undefined(conn_id)
            raise
        if not found.extra:
            require_undefined(conn_id)
        return found


def require_undefined(conn_id: str) -> None:
    """Raise AirflowUnreachableError unless Airflow stores no such connection, or an empty one."""
    if airflow_versions.IS_AIRFLOW_2:
        _require_undefined_in_backends(conn_id)
        return
    from airflow.sdk.execution_time import comms, task_runner  # noqa: PLC0415 - only where something is amiss

    # The process that asks Airflow for this one; a command's has none.
    if (supervisor := getattr(task_runner, "SUPERVISOR_COMMS", None)) is not None:
        with _errors_as_outage(conn_id):
            answer = supervisor.send(comms.GetConnection(conn_id=conn_id))
        _judge(conn_id, answer)


def _require_undefined_in_backends(conn_id: str) -> None:
    """Airflow 2 asks its secrets backends, the database among them, in its own processes, and hides their errors."""
    from airflow.configuration import ensure_secrets_loaded  # noqa: PLC0415

    for backend in ensure_secrets_loaded():
        with _errors_as_outage(conn_id):
            found = backend.get_connection(conn_id=conn_id)
        if found is not None:
            _judge(conn_id, found)


@contextlib.contextmanager
def _errors_as_outage(conn_id: str) -> Iterator[None]:
    """Raise the supervisor's errors, all but CONNECTION_NOT_FOUND, which is an answer."""
    try:
        yield
    except Exception as e:
        raise AirflowUnreachableError(f"Airflow does not say what its connection {conn_id!r} is: {e}") from e


def _judge(conn_id: str, answer: Any) -> None:
    error = getattr(answer, "error", None)
    if getattr(error, "value", None) == _NOT_FOUND or (error is None and not getattr(answer, "extra", None)):
        return  # there is none, or one with nothing in it, which comes to the same
    said = "it is there now" if error is None else f"it answers {error.value}"
    raise AirflowUnreachableError(f"Airflow does not say what its connection {conn_id!r} is: {said}")
