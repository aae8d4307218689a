"""Delegated authentication and authorization of bearer tokens by the API server."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from mxnet_operator.kube import answers
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

ALLOWED_SECONDS: Final = 60.0
"""Seconds for which an allowed token is cached; for as long a revoked permission still holds."""
DENIED_SECONDS: Final = 10.0
"""Seconds for which a denied token is cached."""
KEPT: Final = 256
"""Size of the cache of decisions; the oldest one is evicted first."""
AT_ONCE: Final = 4
"""Concurrent reviews, at most, to protect the API server from a flood of tokens."""
_TIMEOUT: Final = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Decision on a request: the HTTP status (200 allows it), and the text of a denial."""

    status: HTTPStatus
    message: str = ""


_ALLOWED: Final = AccessDecision(HTTPStatus.OK)
_NO_TOKEN: Final = AccessDecision(HTTPStatus.UNAUTHORIZED, "send a bearer token of the cluster")
_BAD_TOKEN: Final = AccessDecision(HTTPStatus.UNAUTHORIZED, "the cluster does not know this token")
_UNKNOWN: Final = AccessDecision(HTTPStatus.SERVICE_UNAVAILABLE, "the API server can't be asked about this token now")


class _User(msgspec.Struct):
    username: str = ""  # a server that does not know the token answers with an empty user
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _AccessStatus(msgspec.Struct):
    allowed: bool
    denied: bool = False


class AccessReviewer:
    """Reviewer of bearer tokens by the API server: a TokenReview, then a SubjectAccessReview of a URL's path.

    Decisions are cached for a while, by the token's hash. A request that can't be reviewed is denied and not cached.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        """Create a reviewer; the client's user needs `create` on tokenreviews and subjectaccessreviews."""
        self._client = client
        self._clock = clock
        self._kept: dict[tuple[bytes, str, str], tuple[AccessDecision, float]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def __len__(self) -> int:
        """Return the number of cached decisions."""
        return len(self._kept)

    async def review(self, authorization: str, method: str, path: str) -> AccessDecision:
        """Review a request with this Authorization header, empty where it has none."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return _NO_TOKEN
        key = (hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest(), method, path)
        if (known := self._known(key)) is not None:
            return known
        async with self._slots:
            if (known := self._known(key)) is not None:  # another request of the same has waited before this one
                return known
            try:
                async with asyncio.timeout(_TIMEOUT):
                    decision = await self._ask(token, method, path)
            except (KubeError, TimeoutError, msgspec.ValidationError, UnicodeError) as error:
                log.warning("%s was not served: its token can't be reviewed: %s", path, error or type(error).__name__)
                return _UNKNOWN
        self._keep(key, decision)
        return decision

    async def _ask(self, token: str, method: str, path: str) -> AccessDecision:
        answer = await self._review(TOKEN_REVIEWS.path(), "authentication.k8s.io/v1", "TokenReview", {"token": token})
        who = msgspec.convert(answer, _TokenStatus)
        if not who.authenticated or not who.user.username:
            return _BAD_TOKEN
        asked = {
            "user": who.user.username,
            "uid": who.user.uid,
            "groups": who.user.groups,
            "extra": who.user.extra,
            "nonResourceAttributes": {"verb": method.lower(), "path": path},
        }
        kind = "SubjectAccessReview"
        answer = await self._review(SUBJECT_ACCESS_REVIEWS.path(), "authorization.k8s.io/v1", kind, asked)
        access = msgspec.convert(answer, _AccessStatus)
        if access.allowed and not access.denied:
            return _ALLOWED
        return AccessDecision(HTTPStatus.FORBIDDEN, f"{who.user.username} may not {method.lower()} {path}")

    async def _review(self, path: str, api_version: str, kind: str, spec: dict[str, Any]) -> Any:
        review = {"apiVersion": api_version, "kind": kind, "spec": spec}
        answer = await self._client.create(path, review, shape=answers.AnyObject)
        return answer.get("status")

    def _known(self, key: tuple[bytes, str, str]) -> AccessDecision | None:
        decision, until = self._kept.get(key, (None, 0.0))
        return decision if self._clock() < until else None

    def _keep(self, key: tuple[bytes, str, str], decision: AccessDecision) -> None:
        seconds = ALLOWED_SECONDS if decision.status is HTTPStatus.OK else DENIED_SECONDS
        self._kept.pop(key, None)  # a dict keeps the place of a key that it has: the newest decision goes last
        self._kept[key] = (decision, self._clock() + seconds)
        if len(self._kept) > KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
