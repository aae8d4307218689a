"""Meaning of an API server's rejection: whether to ask again, and whom it concerns. The same for both hooks."""

from typing import Final

from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_operator.kube.errors import ApiError, ApiUnavailable

_FOR_GOOD: Final = frozenset({400, 404, 405, 415, 422})


def is_transient(e: BaseException) -> bool:
    """Whether asking again might help: no connection, overload, or an error of the server's own.

    409 is none, unlike in Airflow's own list: "already exists" and "another uid" stay so. Only a quota that was just
    being counted answers `Conflict` to a creation, which is up to the caller.
    """
    return e.is_transient if isinstance(e, ApiError) else isinstance(e, OF_THE_SERVER)


def is_permanent(e: ApiError) -> bool:
    """Whether the request will be rejected in that way for ever. A namespace may still be created."""
    return (e.code in _FOR_GOOD and e.reason != "NotFound") or (e.code >= 500 and not e.is_transient)


def message(e: BaseException) -> str:
    """Return what the server said, or else the error's own words."""
    return str(e) if isinstance(e, ApiError | ApiUnavailable) else f"{type(e).__name__}: {e}"
