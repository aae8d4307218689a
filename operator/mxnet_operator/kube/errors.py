"""Errors of requests to a Kubernetes API server."""

from collections.abc import Mapping
from typing import Any, Final

_FINAL: Final = (
    "resourceVersion should not be set on objects to be created",  # rejects the object itself (storage/etcd3)
    "no preferred addresses found",  # a pod's node has no address, as on Fargate (nodeutil.GetPreferredNodeAddress)
)
"""What the messages of kube-apiserver's 500s contain that the same request would get again."""


class KubeError(Exception):
    """Base class of every error that `kube` raises."""


class CredentialsError(KubeError):
    """The credentials can't be loaded; the message says why, and what to do about it."""


class NoKubeconfigError(CredentialsError):
    """Error: there is no kubeconfig, and this process runs in no cluster."""


class ApiUnavailable(KubeError):  # noqa: N818 - the name says a state of the server, not a mistake of the caller
    """The server can't be reached, or the connection broke: whether a write was carried out is unknown."""


class SilentConnectionError(ApiUnavailable):
    """A stream sent no byte for its idle timeout: its connection may be dead, and the server isn't known to be away."""


class InvalidAnswerError(ApiUnavailable):
    """The response is not that of a Kubernetes API server to the request: a proxy's page, say, or half a body.

    Whether a write was carried out is unknown, as with a connection that broke.
    """


class CommandFailedError(KubeError):
    """A command in a container could not be started, or failed; the message is the end of its stderr."""


class EmptyNameError(KubeError, ValueError):
    """An object was asked for by an empty name: the request, a deletion included, would have been about all objects."""


class WriteFencedError(KubeError):
    """A write was not sent, because this process no longer holds the Lease that allows it to write."""


class ApiError(KubeError):
    """The server responded with an error; has the fields of its Status, `code` being the HTTP status.

    `retry_after` is the wait in seconds that the server asks for, or None.
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
        """Build the error from a Status: a response's body, with its HTTP status as `code`, or an ERROR event's object.

        Fields of a wrong type are left out, since a proxy may answer in place of the server.
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
    def is_quota(self) -> bool:
        """Whether a quota is used up, which differs from a missing right only by the message."""
        return self.code == 403 and "exceeded quota" in self.message

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed when retried."""
        is_outage = self.code in {408, 429} or self.code >= 500
        return is_outage and not any(each in self.message for each in _FINAL)


def _seconds(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value < float("inf") else None
