"""What an API server's refusal means: whether to ask again, and whom it concerns. The same for both hooks."""

import contextlib
import json
from typing import Any, Final

from aiohttp import ClientError
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

_FOR_GOOD: Final = frozenset({400, 404, 405, 415, 422})


def is_transient(e: BaseException) -> bool:
    """Whether asking again might help: no connection, overload, or an error of the server's own.

    409 is none, unlike in Airflow's own list: "already exists" and "another uid" stay so. Only a quota that was just
    being counted answers `Conflict` to a creation, which is up to the caller.
    """
    if isinstance(e, ApiException):
        return e.status in (None, 0, 429) or (e.status or 0) >= 500
    return isinstance(e, HTTPError | ClientError | TimeoutError | ConnectionError)


def is_permanent(e: ApiException) -> bool:
    """Whether the same request will be refused in the same way for ever. A namespace may yet come to be."""
    return e.status in _FOR_GOOD and reason(e) != "NotFound"


def is_quota(e: ApiException) -> bool:
    """Whether a quota is used up, which is told apart from a missing right only by its words."""
    return e.status == 403 and "exceeded quota" in message(e)


def reason(e: ApiException) -> str:
    """The `reason` of the server's Status, such as `AlreadyExists`."""
    return str(_status(e).get("reason") or "")


def message(e: BaseException) -> str:
    """What the server said, or else the error's own words."""
    if isinstance(e, ApiException):
        return str(_status(e).get("message") or e.reason or e)
    return f"{type(e).__name__}: {e}"


def _status(e: ApiException) -> dict[str, Any]:
    with contextlib.suppress(TypeError, ValueError):
        body = json.loads(e.body)
        if isinstance(body, dict):
            return body
    return {}
