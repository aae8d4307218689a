"""Jobs on an API server, for programs that make, follow and end them; the controller shares where they live."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mxnet_operator.client.async_client import AsyncMXJobClient
    from mxnet_operator.client.errors import (
        InvalidJobError,
        JobExistsError,
        JobFailedError,
        JobNotFoundError,
        LogIncompleteError,
        MXJobError,
        ResultLostError,
    )
    from mxnet_operator.client.job_status import JobStatus
    from mxnet_operator.client.sync_client import MXJobClient

_PLACES = {
    "AsyncMXJobClient": "async_client",
    "MXJobClient": "sync_client",
    "JobStatus": "job_status",
    **dict.fromkeys(
        (
            *("InvalidJobError", "JobExistsError", "JobFailedError", "JobNotFoundError", "MXJobError"),
            *("LogIncompleteError", "ResultLostError"),
        ),
        "errors",
    ),
}


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is used: the controller needs a part of this package only."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


__all__ = [
    "AsyncMXJobClient",
    "InvalidJobError",
    "JobExistsError",
    "JobFailedError",
    "JobNotFoundError",
    "JobStatus",
    "LogIncompleteError",
    "MXJobClient",
    "MXJobError",
    "ResultLostError",
]
