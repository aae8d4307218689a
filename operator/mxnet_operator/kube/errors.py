"""What can go wrong between this process and a Kubernetes API server."""

from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """Base of every error that `kube` raises."""


class CredentialsError(KubeError):
    """The credentials can't be loaded; the message says why, and what to do about it."""


class NoKubeconfigError(CredentialsError):
    """There is no kubeconfig where one was looked for, and this process runs in no cluster."""


class ApiUnavailable(KubeError):  # noqa: N818 - the name says a state of the server, not a mistake of the caller
    """The server can't be reached, or the connection broke: whether a write was carried out is unknown."""


class InvalidAnswerError(ApiUnavailable):
    """The answer isn't one of a Kubernetes API server to what was asked: a proxy's page, say, or half a body.

    Whether a write was carried out is unknown, as with a connection that broke.
    """


class WriteFencedError(KubeError):
    """This process may not write now, so nothing was sent: it has lost the lease that allows it to."""


class ApiError(KubeError):
    """The server answered with an error: the fields of its Status, `code` being the HTTP status.

    `retry_after` is what the server asks to wait for, in seconds, or None.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Keep the Status's fields."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    @classmethod
    def from_status(cls, status: object, code: int = 0) -> "ApiError":
        """The error that a Status tells of: a reply's body, `code` being the HTTP status, or the object of an ERROR.

        Whatever isn't as a Status has it is left out: a proxy that answers for the server sends what it likes.
        """
        found: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
        details = found.get("details")
        details = dict(details) if isinstance(details, Mapping) else {}
        causes = details.get("causes")
        details["causes"] = [each for each in causes if isinstance(each, Mapping)] if isinstance(causes, list) else []
        if not details["causes"]:
            del details["causes"]
        own_code, message = found.get("code"), found.get("message")
        if not code and isinstance(own_code, int):
            code = own_code
        reason = found.get("reason")
        return cls(
            code=code,
            reason=reason if isinstance(reason, str) else "",
            message=message
            if message and isinstance(message, str)
            else f"the server answered {code} without a message",
            details=details,
            retry_after=_seconds(details.get("retryAfterSeconds")),
        )

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later without anybody changing anything."""
        return self.code in {408, 429} or self.code >= 500


def _seconds(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value < float("inf") else None
