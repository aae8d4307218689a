"""Client of the Kubernetes API: decoded JSON in and out, raw bytes for watches and logs."""

import contextlib
import copy
from collections.abc import AsyncGenerator, Callable, MutableSequence, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

import aiohttp
import msgspec

from mxnet_operator.kube import answers
from mxnet_operator.kube.credentials import Credentials
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, CommandFailedError
from mxnet_operator.kube.transport import Options, Params, Request, Transport

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

T = TypeVar("T")

_EXEC_PROTOCOL: Final = "v4.channel.k8s.io"
"""Subprotocol of `exec`: each message begins with its channel, and the last one of `_STATUS` is a Status as JSON."""
_STDOUT, _STDERR, _STATUS = 1, 2, 3
_LONGEST_STDERR: Final = 4096

PAGE: Final = 500
"""Objects per page of a list, as in client-go."""


class Client:
    """Client of the API server that `credentials` name; an async context manager.

    Every request may raise ApiError (the server rejected it) or ApiUnavailable (no server, the connection broke, or the
    answer is none of a Kubernetes API: then whether a write was carried out is unknown). A GET is tried again when the
    server is unavailable, and any request when it says 429, up to `attempts` in all. Pass `warnings` to collect the
    texts of a reply's Warning headers; else they are logged.
    """

    def __init__(self, credentials: Credentials, **options: Unpack[Options]) -> None:
        """Create a client; nothing connects before the first request."""
        self._transport = Transport(credentials, **options)
        self._may_write: Callable[[], bool] | None = None

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._transport.close()

    @property
    def server(self) -> str:
        """URL of the server."""
        return self._transport.credentials.server

    @property
    def namespace(self) -> str:
        """Default namespace of the credentials."""
        return self._transport.credentials.namespace

    def fenced(self, may_write: Callable[[], bool]) -> Self:
        """Return a client on the same connections whose writes raise WriteFencedError while `may_write()` is false.

        `may_write` is called right before each attempt is sent, a retry after 429 included.
        """
        fenced = copy.copy(self)
        fenced._may_write = may_write
        return fenced

    def seconds_of_distrust(self) -> float:
        """Seconds for which every TLS handshake has failed for untrusted certificates, which are reloaded meanwhile."""
        return self._transport.seconds_of_distrust()

    async def get(
        self, path: str, params: Params | None = None, *, shape: type[Any] = answers.AnyObject
    ) -> dict[str, Any]:
        """GET an object, or any other JSON document; `shape` gives the types of its fields."""
        return await self._transport.request(
            Request("GET", path, params or {}), lambda body: answers.document(body, shape)
        )

    async def find(self, path: str, *, shape: type[Any] = answers.AnyObject) -> dict[str, Any] | None:
        """GET an object, as `get`; None where there is none."""
        try:
            return await self.get(path, shape=shape)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def get_as(self, path: str, as_a: type[T], params: Params | None = None) -> T:
        """GET a document decoded straight into a type."""
        return await self._transport.request(
            Request("GET", path, params or {}), lambda body: answers.decoded(body, as_a)
        )

    async def get_bytes(self, path: str, params: Params | None = None) -> bytes:
        """GET a body, not decoded."""
        return await self._transport.request(Request("GET", path, params or {}), bytes)

    async def create(
        self,
        path: str,
        body: Any,
        params: Params | None = None,
        *,
        shape: type[answers.Shape] = answers.Stored,
    ) -> dict[str, Any]:
        """POST an object; returns it as stored, or in another `shape` what is not stored: a review, a binding."""
        return await self._write("POST", path, body, params, lambda answer: answers.document(answer, shape))

    async def create_as(
        self, path: str, body: Any, as_a: type[T], *, warnings: MutableSequence[str] | None = None
    ) -> T:
        """POST an object; returns it as stored, decoded straight into a type."""
        return await self._write(
            "POST", path, body, None, lambda answer: answers.decoded(answer, as_a), warnings=warnings
        )

    async def patch(
        self, path: str, body: Any, content_type: str = MERGE_PATCH, params: Params | None = None
    ) -> dict[str, Any]:
        """PATCH an object; returns it as stored."""
        return await self._write("PATCH", path, body, params, _stored, content_type=content_type)

    async def patch_as(self, path: str, body: Any, as_a: type[T], params: Params | None = None) -> T:
        """PATCH an object by a merge patch; returns it as stored, decoded straight into a type."""
        return await self._write(
            "PATCH", path, body, params, lambda answer: answers.decoded(answer, as_a), content_type=MERGE_PATCH
        )

    async def replace(self, path: str, body: Any, params: Params | None = None) -> dict[str, Any]:
        """PUT an object; returns it as stored."""
        return await self._write("PUT", path, body, params, _stored)

    async def delete(self, path: str, body: Any = None, params: Params | None = None) -> dict[str, Any]:
        """DELETE an object, or all that match; `body` holds DeleteOptions. Returns the object or a Status."""
        return await self._write(
            "DELETE", path, body, params, lambda answer: answers.document(answer, answers.AnyObject)
        )

    async def list(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """GET a whole list: all its pages as one, with their common resourceVersion."""
        query = {"limit": PAGE, **(params or {})}
        whole = await self.get(path, query, shape=answers.AnyList)
        following = whole["metadata"].pop("continue", None)
        while following:
            page = await self.get(path, {**query, "continue": following}, shape=answers.AnyList)
            whole["items"].extend(page["items"])
            following = page["metadata"].get("continue")
        return whole

    async def watch(
        self, path: str, params: Params | None = None, *, idle_timeout: float | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the lines of a watch, of any length, until the server ends it.

        Close the generator when leaving it early (`contextlib.aclosing`). After `idle_timeout` seconds without a
        byte the connection counts as dead (ApiUnavailable).
        """
        pieces: list[bytes] = []
        async with contextlib.aclosing(
            self.stream(path, {**(params or {}), "watch": True}, idle_timeout=idle_timeout)
        ) as chunks:
            async for chunk in chunks:
                *ends, rest = chunk.split(b"\n")
                for end in ends:
                    pieces.append(end)
                    if line := b"".join(pieces):
                        yield line
                    pieces.clear()
                if rest:
                    pieces.append(rest)
        if pieces:
            yield b"".join(pieces)

    async def stream(
        self, path: str, params: Params | None = None, *, idle_timeout: float | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the body of a GET, such as a log, in the chunks in which it arrives; close it like `watch`."""
        async with contextlib.aclosing(
            self._transport.stream(Request("GET", path, params or {}), idle_timeout)
        ) as chunks:
            async for chunk in chunks:
                yield chunk

    async def execute(self, pod_path: str, container: str, command: Sequence[str]) -> AsyncGenerator[bytes]:
        """Run a command in a running container and yield its stdout as it arrives; close it like `watch`.

        Raises:
            CommandFailedError: the command can't be started, or ends with another exit code than 0.
        """
        params = [("container", container), ("stdout", "true"), ("stderr", "true")]
        params += [("command", word) for word in command]
        stderr, status = b"", b""
        async with self._transport.websocket(f"{pod_path}/exec", params, _EXEC_PROTOCOL) as socket:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel == _STDOUT and data:
                    yield data
                elif channel == _STDERR:
                    stderr = (stderr + data)[-_LONGEST_STDERR:]
                elif channel == _STATUS:
                    status += data
        if not status:
            raise ApiUnavailable(f"{self.server}: the connection to {pod_path} broke")
        ended = answers.decoded(status, dict[str, Any])
        if ended.get("status") != "Success":
            raise CommandFailedError(stderr.decode("utf-8", "replace").strip() or ended.get("message") or "")

    async def _write(
        self,
        method: str,
        path: str,
        body: Any,
        params: Params | None,
        decode: Callable[[bytes], T],
        *,
        warnings: MutableSequence[str] | None = None,
        content_type: str = "application/json",
    ) -> T:
        data = None if body is None else msgspec.json.encode(body)
        request = Request(method, path, params or {}, data, content_type, self._may_write)
        return await self._transport.request(request, decode, warnings=warnings)


def _stored(answer: bytes) -> dict[str, Any]:
    return answers.document(answer, answers.Stored)
