"""The reflector against scripted servers: lists and watches, what falls behind, ends, breaks, lies or says nothing."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from scripted_api import (
    added,
    answer,
    bookmark,
    deleted,
    hang_up,
    in_stream_error,
    make_object,
    modified,
    refuse,
    scripted_api,
    stream,
)
from waiting import MOMENT, until

from mxnet_operator.kube.answers import meta_of
from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.reflector import QUIET_SECONDS, Reflector
from mxnet_operator.kube.resources import PODS

NO_WATCH_LISTS = refuse(422, "Invalid", "sendInitialEvents is forbidden")


class Followed:
    """A running reflector and what it has told."""

    def __init__(self, api, client, options):
        self.api = api
        self.cache = Indexer()
        self.changes = asyncio.Queue()
        self.reflector = Reflector(
            client,
            PODS,
            self.cache,
            self._project,
            lambda old, new: self.changes.put_nowait((old, new)),
            **{"backoff": Backoff(0.001, 0.002), **options},
        )

    @staticmethod
    def _project(raw):
        meta = meta_of(raw)
        return None if meta.name == "ignored" else f"{meta.name}@{meta.resource_version}"

    async def told(self, *expected):
        """The next changes are these."""
        async with asyncio.timeout(MOMENT):
            assert [await self.changes.get() for _ in expected] == list(expected)

    async def synced(self):
        async with asyncio.timeout(MOMENT):
            await self.reflector.synced.wait()


@asynccontextmanager
async def following(*turns, **options):
    async with scripted_api(*turns) as api, api.client() as client:
        followed = Followed(api, client, options)
        running = asyncio.create_task(followed.reflector.run())
        try:
            yield followed
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_what_exists_is_known_once_the_initial_events_have_ended():
    async with following(stream(added("a", 3), added("b", 5), bookmark(9, initial_end=True), modified("a", 10))) as f:
        await f.told((None, "a@3"), (None, "b@5"), ("a@3", "a@10"))
        assert f.reflector.synced.is_set()
        assert f.cache.resource_version == 10
        query = f.api.queries()[0]
        assert query["sendInitialEvents"] == query["allowWatchBookmarks"] == query["watch"] == "true"
        assert query["resourceVersionMatch"] == "NotOlderThan"
        assert 300 <= int(query["timeoutSeconds"]) <= 600


async def test_nothing_is_known_before_the_initial_events_have_ended():
    async with following(stream(added("a", 3), then="end"), stream(bookmark(9, initial_end=True))) as f:
        await f.synced()
        assert f.changes.empty()


async def test_a_server_that_refuses_streamed_lists_is_asked_for_pages():
    first = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [make_object("a", 1)]}
    second = {"metadata": {"resourceVersion": "7"}, "items": [make_object("b", 2)]}
    async with following(
        NO_WATCH_LISTS, answer(first), answer(second), stream(added("c", 8)), label_selector="x=y"
    ) as f:
        await f.told((None, "a@1"), (None, "b@2"), (None, "c@8"))
        lists = f.api.queries()[1:3]
        assert lists == [
            {"limit": "500", "labelSelector": "x=y"},
            {"limit": "500", "labelSelector": "x=y", "continue": "more"},
        ]
        assert f.api.queries()[3]["resourceVersion"] == "7"


async def test_a_server_that_never_ends_the_initial_events_is_asked_for_pages():
    whole = {"metadata": {"resourceVersion": "7"}, "items": [make_object("a", 1)]}
    async with following(stream(added("a", 1)), answer(whole), initial_timeout=0.5) as f:
        await f.told((None, "a@1"))


async def test_pages_whose_snapshot_is_gone_are_asked_for_in_one():
    first = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [make_object("a", 1)]}
    whole = {"metadata": {"resourceVersion": "9"}, "items": [make_object("b", 2)]}
    async with following(NO_WATCH_LISTS, answer(first), refuse(410, "Expired"), answer(whole)) as f:
        await f.told((None, "b@2"))
        assert f.api.queries()[3] == {}


async def test_a_watch_that_ends_is_resumed_where_the_last_bookmark_was():
    async with following(
        stream(added("a", 3), bookmark(9, initial_end=True), bookmark(15), then="end"), stream(added("b", 16))
    ) as f:
        await f.told((None, "a@3"), (None, "b@16"))
        assert f.api.queries()[1]["resourceVersion"] == "15"
        assert "sendInitialEvents" not in f.api.queries()[1]


@pytest.mark.parametrize("gone", [refuse(410, "Expired"), stream(in_stream_error(410, "Expired"), then="end")])
async def test_a_watch_that_fell_behind_lists_again_and_tells_what_was_deleted_meanwhile(gone):
    async with following(
        stream(added("a", 3), added("b", 4), added("c", 5), bookmark(9, initial_end=True), then="end"),
        gone,
        stream(added("a", 3), added("c", 12), added("d", 13), bookmark(20, initial_end=True)),
    ) as f:
        await f.told((None, "a@3"), (None, "b@4"), (None, "c@5"))
        await f.told(("b@4", None), ("c@5", "c@12"), (None, "d@13"))
        assert f.changes.empty()
        assert f.cache.resource_version == 20


async def test_a_broken_connection_is_resumed_without_a_list():
    async with following(
        stream(bookmark(9, initial_end=True), then="break"), *[hang_up()] * 3, stream(added("a", 10), deleted("a", 11))
    ) as f:
        await f.told((None, "a@10"), ("a@10", None))
        assert all(query["resourceVersion"] == "9" for query in f.api.queries()[1:])


async def test_an_outage_of_any_kind_ends_in_a_list():
    async with following(
        hang_up(),
        refuse(503, "ServiceUnavailable"),
        refuse(403, "Forbidden"),
        stream(b"nonsense\n", then="end"),
        stream(added("a", 3), bookmark(9, initial_end=True)),
    ) as f:
        await f.told((None, "a@3"))


async def test_a_silent_connection_is_left_after_the_idle_time():
    async with following(stream(bookmark(9, initial_end=True)), stream(added("a", 10)), idle_timeout=0.05) as f:
        await f.told((None, "a@10"))
        assert f.api.queries()[1]["resourceVersion"] == "9"


async def test_another_server_whose_versions_are_lower_is_listed_anew():
    async with following(
        stream(added("a", 30), bookmark(90, initial_end=True), then="end"),
        stream(bookmark(4)),
        stream(added("b", 2), bookmark(5, initial_end=True)),
    ) as f:
        await f.told((None, "a@30"), ("a@30", None), (None, "b@2"))
        assert f.cache.resource_version == 5


async def test_an_object_that_is_of_no_interest_any_more_counts_as_deleted():
    async with following(stream(added("ignored", 1), bookmark(9, initial_end=True), added("a", 10))) as f:
        await f.told((None, "a@10"))
        assert list(f.cache) == ["default/a"]


async def test_the_time_since_the_server_was_heard_is_known():
    now = [100.0]
    async with following(stream(bookmark(9, initial_end=True)), clock=lambda: now[0]) as f:
        await f.synced()
        now[0] += 42
        assert f.reflector.seconds_since_last_event() == 42


async def test_a_server_that_can_not_be_reached_or_refuses_is_not_silent():
    now = [100.0]
    async with following(hang_up(), refuse(503, "ServiceUnavailable"), clock=lambda: now[0]) as f:
        now[0] += 400
        await until(lambda: len(f.api.asked) == 3)
        assert f.reflector.seconds_of_silence() == 0
        assert f.reflector.seconds_since_last_event() == 400


async def test_silence_goes_on_when_a_watch_that_was_left_for_it_is_silent_again():
    idle = 0.05
    async with following(stream(bookmark(9, initial_end=True)), stream(), stream(), idle_timeout=idle) as f:
        await until(lambda: len(f.api.asked) == 4)  # three were left for their silence
        assert f.reflector.seconds_of_silence() >= 3 * idle


async def test_a_watch_is_heard_since_its_list_and_not_while_it_is_quiet_for_too_long():
    now = [100.0]
    async with following(stream(bookmark(9, initial_end=True)), clock=lambda: now[0]) as f:
        assert f.reflector.heard_since() is None
        await f.synced()
        assert f.reflector.heard_since() == 100.0
        now[0] += QUIET_SECONDS
        assert f.reflector.heard_since() == 100.0
        now[0] += 1
        assert f.reflector.heard_since() is None


@pytest.mark.parametrize(("away", "anew"), [(5, False), (60, True)])
async def test_a_watch_that_was_away_for_more_than_a_moment_is_heard_anew_once_it_is_back(away, anew):
    now = [100.0]

    async def passes(request):
        now[0] += away
        assert f.reflector.heard_since() is None
        return await refuse(503, "ServiceUnavailable")(request)

    turns = (
        stream(bookmark(9, initial_end=True), then="break"),
        hang_up(),
        passes,
        stream(added("a", 10)),
    )
    async with following(*turns, clock=lambda: now[0]) as f:
        await f.told((None, "a@10"))
        assert f.reflector.heard_since() == (100.0 + away if anew else 100.0)


@pytest.mark.parametrize(("seconds", "since"), [(50, 100.0), (3600, 3700.0)], ids=["soon", "stood still"])
async def test_a_watch_that_the_server_ends_goes_on_being_heard_unless_the_process_stood_still(seconds, since):
    now = [100.0]

    async def later(request):
        now[0] += seconds
        assert f.reflector.heard_since() == (100.0 if since == 100.0 else None)
        return await stream(added("a", 10))(request)

    async with following(stream(bookmark(9, initial_end=True), then="end"), later, clock=lambda: now[0]) as f:
        await f.told((None, "a@10"))
        assert f.reflector.heard_since() == since
