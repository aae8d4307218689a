"""Reflector: keep a cache in step with the server by list and watch, and relist after errors."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from mxnet_operator.kube import answers
from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import PAGE, Client
from mxnet_operator.kube.errors import ApiError, InvalidAnswerError, KubeError
from mxnet_operator.kube.resources import Resource
from mxnet_operator.kube.transport import Params

T = TypeVar("T")

WATCH_SECONDS: Final = (300, 600)
"""Range of the random timeoutSeconds of a watch (client-go's), which spreads reconnections."""
INITIAL_SECONDS: Final = 30.0
"""Seconds that the next initial event may take: a server that ignores sendInitialEvents never ends them."""
_SHORTEST_WATCH: Final = 1.0
"""Seconds; a watch that ends earlier without an event counts as a failure, to avoid a tight loop."""
_GONE: Final = 410
"""HTTP code for a resourceVersion that is too old to start a watch from: the reflector lists again."""
QUIET_SECONDS: Final = 90.0
"""Seconds within which a live watch has brought an event: servers send a bookmark every minute."""
_BREAK_SECONDS: Final = 10.0
"""Seconds; a watch that is back sooner was only restarted, as happens every few minutes."""

log = logging.getLogger(__name__)


class Reflector(Generic[T]):
    """Reflector of a resource's objects into `cache`; `run` retries for ever.

    `project` makes of an object's JSON what is cached; None means that the object is of no interest. Its argument is
    a view of a larger buffer: copy what is to be kept. `on_change` is called with the old and the new value (None:
    there is none), also for deletions that happened while the watch was down.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        cache: Indexer[T],
        project: Callable[[msgspec.Raw], T | None],
        on_change: Callable[[T | None, T | None], None],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        idle_timeout: float = answers.SILENCE_SECONDS,
        initial_timeout: float = INITIAL_SECONDS,
        page: int = PAGE,
        backoff: Backoff = Backoff(first=0.2, longest=30.0),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a reflector, which makes no request before `run`; times are in seconds."""
        self.cache = cache
        self.resource = resource
        self.namespace = namespace
        self.synced = asyncio.Event()
        self._client = client
        self._project = project
        self._on_change = on_change
        self._path = resource.path(namespace)
        self._params: Params = {"labelSelector": label_selector} if label_selector else {}
        self._idle_timeout = idle_timeout
        self._initial_timeout = initial_timeout
        self._page = page
        self._backoff = backoff
        self._clock = clock
        self._streams_lists = True
        self._version = ""
        self._failures = 0
        self._last_heard = self._silent_since = self._heard_since = clock()
        self._lost_at: float | None = None
        self.trouble = ""
        """Why the watch fails; empty while it works."""
        self.trouble_code = 0
        """HTTP status with which the watch fails; 0 while it works, or where the server doesn't answer."""

    def heard_since(self) -> float | None:
        """Return since when, on `clock`, the watch has been up without a break; None while it is down.

        What the cache has not shown since then has not happened. A break is what keeps the watch away for more than a
        moment, or this process from running.
        """
        now = self._clock()
        if not self.synced.is_set() or now - self._last_heard > QUIET_SECONDS:
            return None
        return None if self._lost_at is not None else self._heard_since

    def seconds_since_last_event(self) -> float:
        """Return the seconds since the last event of the server, which sends a bookmark every minute."""
        return self._clock() - self._last_heard

    def seconds_of_silence(self) -> float:
        """Return the seconds for which a connected server has sent nothing.

        A server that can't be reached, or that answers with errors, isn't silent. Beyond some idle timeouts, connecting
        anew doesn't help any more, or this reflector itself is stuck.
        """
        return self._clock() - self._silent_since

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._attempt()
            except ApiError as error:
                if error.code == _GONE and self._version:
                    log.info("%s: the watch can't go on where it was, listing again: %s", self.resource, error)
                    self._version = ""
                await self._pause(error)
            except KubeError as error:
                await self._pause(error)
            except Exception:  # A bug, whoever keeps this running tells of it; the next start lists anew.
                self._version = ""
                raise

    async def _attempt(self) -> None:
        began = self._clock()
        try:
            if self._version:
                await self._watch()
            elif self._streams_lists:
                await self._list_by_watch()
            else:
                await self._list()
        finally:
            if self._clock() - began < self._idle_timeout:  # It ended for another reason than the server's silence.
                self._silent_since = self._clock()

    async def _pause(self, error: Exception) -> None:
        self._failures += 1
        self.trouble = str(error)
        self.trouble_code = error.code if isinstance(error, ApiError) else 0
        self._lost_at = self._clock() if self._lost_at is None else self._lost_at
        delay = self._backoff.delay(self._failures)
        level = {1: logging.INFO, 3: logging.WARNING}.get(self._failures % 20, logging.DEBUG)
        log.log(level, "%s: %s; trying again in %.1f s", self.resource, error, delay)
        await asyncio.sleep(delay)

    def _heard(self) -> None:
        now = self._clock()
        was_lost = self._lost_at is not None and now - self._lost_at > _BREAK_SECONDS
        if was_lost or now - self._last_heard > QUIET_SECONDS or not self.synced.is_set():
            self._heard_since = now
        self._lost_at = None
        self.trouble, self.trouble_code = "", 0
        self._last_heard = self._silent_since = now
        if self._failures >= 3:
            log.info("%s: the server is back", self.resource)
        self._failures = 0

    async def _list_by_watch(self) -> None:
        """List by a watch that begins with every existing object (KEP-3157), and go on watching."""
        found: dict[str, tuple[str, T]] = {}
        initial: Params = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        try:
            async with asyncio.timeout(self._initial_timeout) as limit, self._events(initial) as events:
                async for event, meta in events:
                    if self._version:
                        self._apply(event, meta)
                        continue
                    limit.reschedule(asyncio.get_running_loop().time() + self._initial_timeout)
                    if event.type == "DELETED":
                        found.pop(meta.key, None)
                    elif event.type != "BOOKMARK":
                        self._collect(found, meta, event.object)
                    elif meta.ends_initial_events:
                        self._replace(found, meta.resource_version)
                        found = {}
                        limit.reschedule(None)
                if not self._version:
                    raise KubeError("the watch ended before its initial events did")
        except ApiError as error:
            if self._version or error.code not in {400, 422}:
                raise
            self._list_in_pages_from_now_on(str(error))
        except TimeoutError:
            self._list_in_pages_from_now_on("its initial events don't end")

    def _list_in_pages_from_now_on(self, why: str) -> None:
        log.info("%s: the server streams no lists (%s); listing in pages", self.resource, why)
        self._streams_lists = False

    async def _list(self) -> None:
        found: dict[str, tuple[str, T]] = {}
        params: dict[str, str | int | bool] = {**self._params, "limit": self._page}
        while True:
            try:
                page = await self._client.get_as(self._path, answers.Page, params)
            except ApiError as error:
                if error.code != _GONE or "continue" not in params:
                    raise
                # The pages' snapshot is compacted: take all in one, as client-go does.
                found.clear()
                params = dict(self._params)
                continue
            self._silent_since = self._clock()
            for raw in page.items:
                self._collect(found, answers.meta_of(raw), raw)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        self._replace(found, page.metadata.resource_version)

    async def _watch(self) -> None:
        began, heard = self._clock(), False
        async with self._events({"resourceVersion": self._version}) as events:
            async for event, meta in events:
                heard = True
                self._apply(event, meta)
        if not heard and self._clock() - began < _SHORTEST_WATCH:
            raise KubeError("the server ended the watch at once")

    @contextlib.asynccontextmanager
    async def _events(self, params: Params) -> AsyncIterator[AsyncIterator[tuple[answers.Event, answers.Meta]]]:
        """Open a watch and yield its events; an ERROR event is raised."""
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311 - jitter is no secret
        query = {**self._params, "allowWatchBookmarks": True, "timeoutSeconds": seconds, **params}
        lines = self._client.watch(self._path, query, idle_timeout=self._idle_timeout)

        async def decoded() -> AsyncIterator[tuple[answers.Event, answers.Meta]]:
            async for line in lines:
                event = answers.decoded(line, answers.Event)
                if event.type == "ERROR":
                    raise ApiError.from_status(answers.decoded(event.object, dict[str, Any]))
                meta = answers.meta_of(event.object)
                if event.type != "BOOKMARK" and not meta.name:
                    raise InvalidAnswerError(f"{self.resource}: the watch sent an object without a name")
                self._heard()
                yield event, meta

        async with contextlib.aclosing(lines):
            yield decoded()

    def _apply(self, event: answers.Event, meta: answers.Meta) -> None:
        """Apply one event after the initial ones to the cache."""
        if _goes_back(self._version, meta.resource_version):
            raise ApiError(
                _GONE,
                "Expired",
                f"the resourceVersion went back to {meta.resource_version}: another server, or one restored",
            )
        if event.type == "DELETED":
            self._remove(meta.key)
        elif event.type != "BOOKMARK":
            self._store(meta, self._projected(meta, event.object))
        self._version = meta.resource_version
        self.cache.advance(self._version)

    def _collect(self, found: dict[str, tuple[str, T]], meta: answers.Meta, raw: msgspec.Raw) -> None:
        item = self._projected(meta, raw)
        if item is not None:
            found[meta.key] = (meta.resource_version, item)

    def _projected(self, meta: answers.Meta, raw: msgspec.Raw) -> T | None:
        try:
            return self._project(raw)
        except Exception as error:  # one odd object must not stop the stream
            log.warning("%s %s is left out: %s: %s", self.resource, meta.key, type(error).__name__, error)
            return None

    def _replace(self, found: dict[str, tuple[str, T]], version: str) -> None:
        """Replace the cache by a list, with a callback for every difference."""
        for key in [key for key in self.cache if key not in found]:
            self._remove(key)
        for key, (item_version, item) in found.items():
            if self.cache.version(key) != item_version:
                self._on_change(self.cache.store(key, item_version, item), item)
        self._version = version
        self.cache.begin_at(version)
        self._heard()
        if not self.synced.is_set():
            log.info("%s: %d objects at version %s", self.resource, len(self.cache), version)
            self.synced.set()

    def _store(self, meta: answers.Meta, item: T | None) -> None:
        if item is None:
            self._remove(meta.key)
        else:
            self._on_change(self.cache.store(meta.key, meta.resource_version, item), item)

    def _remove(self, key: str) -> None:
        old = self.cache.remove(key)
        if old is not None:
            self._on_change(old, None)


def _goes_back(ours: str, theirs: str) -> bool:
    """Whether the server's resourceVersion went back: another server, or one restored from a backup."""
    return ours.isdecimal() and theirs.isdecimal() and int(theirs) < int(ours)
