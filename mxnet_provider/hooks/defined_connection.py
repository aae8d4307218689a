"""Whether a connection that Airflow calls undefined really is, or Airflow only could not be asked.

Airflow says "isn't defined" as well where its own API server, database or secrets backend did not answer. For
`kubernetes_default` its hook goes on with the pod's service account or kubectl's configuration then, which may lead to
another cluster, where no job of ours is found. So Airflow is asked once more, in a way in which it tells the two apart.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from mxnet_provider import airflow_versions

_NOT_FOUND: Final = "CONNECTION_NOT_FOUND"
"""Of `airflow.sdk.exceptions.ErrorType`."""


class AirflowUnreachableError(ConnectionError):
    """Airflow did not say whether there is such a connection: as transient as an outage of the API server."""


def require_undefined(conn_id: str) -> None:
    """Return if Airflow stores no such connection, or an empty one.

    Raises:
        AirflowUnreachableError: there is one, or may be.
    """
    if airflow_versions.IS_AIRFLOW_2:
        _require_undefined_in_backends(conn_id)
    elif (supervisor := _supervisor()) is not None:
        with _errors_as_outage(conn_id):
            answer = supervisor.send(_question(conn_id))
        _judge(conn_id, answer)


async def require_undefined_async(conn_id: str) -> None:
    """Do what `require_undefined` does, on a triggerer's event loop."""
    from asgiref.sync import sync_to_async  # noqa: PLC0415 - Airflow's own way off the loop: its answers come over it

    await sync_to_async(require_undefined)(conn_id)


def _require_undefined_in_backends(conn_id: str) -> None:
    """Airflow 2 asks its secrets backends, the database among them, in its own processes, and hides their errors."""
    from airflow.configuration import ensure_secrets_loaded  # noqa: PLC0415

    for backend in ensure_secrets_loaded():
        with _errors_as_outage(conn_id):
            found = backend.get_connection(conn_id=conn_id)
        if found is not None:
            _judge(conn_id, found)


def _supervisor() -> Any:
    """Return the process that asks Airflow for this one; None in one that has none, such as a command's."""
    from airflow.sdk.execution_time import task_runner  # noqa: PLC0415 - only where something is amiss

    return getattr(task_runner, "SUPERVISOR_COMMS", None)


def _question(conn_id: str) -> Any:
    from airflow.sdk.execution_time.comms import GetConnection  # noqa: PLC0415

    return GetConnection(conn_id=conn_id)


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
