"""Watches: changes of a resource from a revision on, for a selection of its objects.

A watcher keeps no queue. It reads the journal from where it stands, so one that is slow costs nothing and, once the
journal has forgotten its place, gets a 410 and starts again.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.selectors import Selector
from mxnet_operator.local.apiserver.statuses import expired
from mxnet_operator.local.apiserver.storage import Change, name_of
from mxnet_operator.local.apiserver.store import Store

BOOKMARK_SECONDS = 60.0
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True)
class WatchOptions:
    """Options of a watch: `revision` None starts with the existing objects, a number with the changes after it.

    A revision of 0 stands for now.
    """

    resource: Resource
    namespace: str
    selector: Selector
    revision: int | None
    bookmarks: bool
    timeout: float


Event = tuple[str, Object]
"""Watch event: a type (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR) and its object."""


async def watch(store: Store, options: WatchOptions, closing: asyncio.Event) -> AsyncGenerator[list[Event], None]:
    """Yield batches of events until the timeout (seconds) is over or the server closes."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + options.timeout
    resource, journal = options.resource, store.storage.journal(options.resource)
    changed = asyncio.Event()
    unlisten = journal.listen(changed.set)
    closed = asyncio.ensure_future(closing.wait())
    try:
        if options.revision is None:
            position = store.storage.revision
            existing = store.select(resource, options.namespace, options.selector)
            initial: list[Event] = [("ADDED", obj) for obj in existing]
            if options.bookmarks:
                initial.append(_bookmark(resource, position, _INITIAL_END))
            yield initial
        else:
            position = options.revision or store.storage.revision
        next_bookmark = loop.time() + BOOKMARK_SECONDS
        while not closing.is_set():
            if position < journal.oldest:
                yield [("ERROR", expired(f"too old resource version: {position} ({journal.oldest})").status)]
                return
            changed.clear()
            changes = journal.since(position)
            # a watch from the future stays there, silent, as on the real server
            position = max(position, store.storage.revision)
            if events := [event for change in changes if (event := _event(options, change))]:
                yield events
                continue
            wake_at = min(deadline, next_bookmark) if options.bookmarks else deadline
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait(
                    {waiting, closed}, timeout=wake_at - loop.time(), return_when=asyncio.FIRST_COMPLETED
                )
            finally:  # a client that goes away cancels us here
                waiting.cancel()
            if loop.time() >= deadline:
                return
            if options.bookmarks and loop.time() >= next_bookmark and not changed.is_set():
                yield [_bookmark(resource, position)]
                next_bookmark = loop.time() + BOOKMARK_SECONDS
    finally:
        closed.cancel()
        unlisten()


def _event(options: WatchOptions, change: Change) -> Event | None:
    """Convert a change to a watch event: an object that no longer matches is DELETED, with its old state."""
    if options.namespace and name_of(change.object)[0] != options.namespace:
        return None
    present = options.resource.present
    before = present(change.before) if change.before is not None else None
    after = present(change.after) if change.after is not None else None
    was = before is not None and options.selector(before)
    if after is not None and options.selector(after):
        return ("MODIFIED" if was else "ADDED", after)
    if before is not None and was:
        return "DELETED", before | {"metadata": before["metadata"] | {"resourceVersion": str(change.revision)}}
    return None


def _bookmark(resource: Resource, revision: int, annotations: dict[str, str] | None = None) -> Event:
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    return "BOOKMARK", {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
