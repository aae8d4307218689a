"""Jobs on an API server, for programs that make, follow and end them; the controller shares where they live."""

from importlib import import_module
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

_MODULES = ("errors", "job_status", "async_client", "sync_client")
"""Modules of this package's names, those that import little first."""


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is used: the controller needs a part of this package only."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


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
