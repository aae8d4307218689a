"""Meaning of an API server's rejection: whether to ask again, and whom it concerns. The same for both hooks.

The Kubernetes client is imported only when there is an error to look at: its import takes a second, and who parses
a DAG imports this.
"""

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubernetes.client.exceptions import ApiException

_FOR_GOOD: Final = frozenset({400, 404, 405, 415, 422})


def refusal(e: BaseException) -> "ApiException | None":
    """Return the error, if it is an answer of an API server."""
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

    return e if isinstance(e, ApiException) else None


def is_transient(e: BaseException) -> bool:
    """Whether asking again might help: no connection, overload, or an error of the server's own.

    409 is none, unlike in Airflow's own list: "already exists" and "another uid" stay so. Only a quota that was just
    being counted answers `Conflict` to a creation, which is up to the caller.
    """
    from aiohttp import ClientError  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    if (answer := refusal(e)) is not None:
        status = answer.status or 0
        is_outage = status in (0, 429) or status >= 500 or 300 <= status < 400  # a proxy's login page
        return is_outage and not _sets_version(answer)
    if isinstance(e, UnicodeDecodeError | RecursionError):
        return True  # what the Kubernetes client makes of bytes that are no text, and of brackets without end
    return isinstance(e, HTTPError | ClientError | TimeoutError | ConnectionError)


def is_permanent(e: "ApiException") -> bool:
    """Whether the request will be rejected in that way for ever. A namespace may still be created."""
    return (e.status in _FOR_GOOD and reason(e) != "NotFound") or _sets_version(e)


def is_quota(e: "ApiException") -> bool:
    """Whether a quota is used up, which differs from a missing right only by its words."""
    return e.status == 403 and "exceeded quota" in message(e)


def reason(e: "ApiException") -> str:
    """Return the `reason` of the server's Status, such as `AlreadyExists`."""
    return str(_status(e).get("reason") or "")


def message(e: BaseException) -> str:
    """Return what the server said, or else the error's own words."""
    if (answer := refusal(e)) is not None:
        return str(_status(answer).get("message") or answer.reason or answer)
    return f"{type(e).__name__}: {e}"


def _sets_version(e: "ApiException") -> bool:
    """Whether this is kube-apiserver's one 500 that rejects the object itself, here what a callback made of it."""
    return "resourceVersion should not be set on objects to be created" in message(e)


def _status(e: "ApiException") -> dict[str, Any]:
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        body = json.loads(e.body)
        if isinstance(body, dict):
            return body
    return {}
