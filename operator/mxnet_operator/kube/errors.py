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
    def from_status(cls, status: Mapping[str, Any], code: int = 0) -> "ApiError":
        """The error that a Status object tells of, be it a reply's body or the object of a watch's ERROR."""
        details = status.get("details") or {}
        seconds = details.get("retryAfterSeconds")
        return cls(
            code=int(status.get("code") or code),
            reason=str(status.get("reason") or ""),
            message=str(status.get("message") or f"the server answered {code} without a message"),
            details=details,
            retry_after=float(seconds) if seconds else None,
        )

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later without anybody changing anything."""
        return self.code in {408, 429} or self.code >= 500
