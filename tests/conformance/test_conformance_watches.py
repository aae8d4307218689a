"""What every Kubernetes API server does on watches: the fixture `api` may be ours or a real one."""

import pytest
from apiserver_objects import CONFIG_MAPS, JOBS, PODS, config_map, mxjob, pod


def said(event):
    return event["type"], event["object"]["metadata"].get("name")


async def test_resumes_a_watch_from_its_resource_version(api, namespace):
    path = JOBS.format(namespace)
    start = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    async with api.watch(path, resourceVersion=start) as stream:
        (await api.post(path, mxjob("a"))).ok()
        seen = await stream.next()
    (await api.post(path, mxjob("b"))).ok()
    (await api.delete(f"{path}/a")).ok()
    async with api.watch(path, resourceVersion=seen["object"]["metadata"]["resourceVersion"]) as stream:
        assert [said(event) for event in await stream.take(2)] == [("ADDED", "b"), ("DELETED", "a")]


async def test_answers_410_for_an_old_resource_version(api, namespace):
    async with api.watch(JOBS.format(namespace), resourceVersion="1") as stream:
        event = await stream.next()
        assert event["type"] == "ERROR"
        assert event["object"]["kind"] == "Status"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 1 (")
        assert await stream.next() is None


async def test_a_watch_without_a_version_begins_with_what_exists(api, namespace):
    path = CONFIG_MAPS.format(namespace)
    (await api.post(path, config_map("a", labels={"mine": "1"}))).ok()
    for version in ({}, {"resourceVersion": "0"}, {"resourceVersion": ""}):
        async with api.watch(path, labelSelector="mine=1", **version) as stream:
            assert said(await stream.next()) == ("ADDED", "a")


async def test_a_watch_ends_cleanly_at_its_timeout(api, namespace):
    async with api.watch(JOBS.format(namespace), timeoutSeconds="1") as stream:
        assert await stream.next() is None


async def test_what_stops_to_match_is_deleted_in_its_old_state_at_the_new_version(api, namespace):
    path = CONFIG_MAPS.format(namespace)
    made = (await api.post(path, config_map("a", labels={"app": "x"}))).ok()
    start = made["metadata"]["resourceVersion"]
    async with api.watch(path, labelSelector="app=x", resourceVersion=start) as stream:
        moved = (await api.merge(f"{path}/a", {"metadata": {"labels": {"app": "y"}}})).ok()
        gone = await stream.next()
        assert said(gone) == ("DELETED", "a")
        assert gone["object"]["metadata"]["labels"] == {"app": "x"}
        assert gone["object"]["metadata"]["resourceVersion"] == moved["metadata"]["resourceVersion"]
        (await api.merge(f"{path}/a", {"metadata": {"labels": {"app": "x"}}})).ok()
        assert said(await stream.next()) == ("ADDED", "a")


async def test_a_deletion_has_a_version_of_its_own(api, namespace):
    path = JOBS.format(namespace)
    made = (await api.post(path, mxjob("a"))).ok()
    async with api.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as stream:
        (await api.delete(f"{path}/a")).ok()
        gone = await stream.next()
    assert said(gone) == ("DELETED", "a")
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_a_list_by_watch_ends_with_a_marked_bookmark(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("a"))).ok()
    asked = {"allowWatchBookmarks": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(path, **asked) as stream:
        assert said(await stream.next()) == ("ADDED", "a")
        bookmark = await stream.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "MXJob"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        (await api.post(path, mxjob("b"))).ok()
        assert said(await stream.next()) == ("ADDED", "b")
    resumed = bookmark["object"]["metadata"]["resourceVersion"]
    async with api.watch(path, resourceVersion=resumed) as stream:
        assert said(await stream.next()) == ("ADDED", "b")


async def test_bookmarks_come_only_to_who_allows_them(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("a"))).ok()
    async with api.watch(path, timeoutSeconds="1") as stream:
        assert said(await stream.next()) == ("ADDED", "a")
        assert await stream.next() is None


async def test_a_watch_may_begin_now_without_what_exists(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("a"))).ok()
    async with api.watch(path, sendInitialEvents="false", resourceVersionMatch="NotOlderThan") as stream:
        (await api.post(path, mxjob("b"))).ok()
        assert said(await stream.next()) == ("ADDED", "b")


async def test_a_write_that_changes_nothing_is_no_event(api, namespace):
    path = CONFIG_MAPS.format(namespace)
    made = (await api.post(path, config_map("a", x="1"))).ok()
    async with api.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as stream:
        (await api.merge(f"{path}/a", {"data": {"x": "1"}})).ok()
        (await api.merge(f"{path}/a", {"data": {"x": "2"}})).ok()
        event = await stream.next()
    assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"x": "2"})


async def test_a_watch_by_name_sees_only_that_object(api, namespace):
    path = JOBS.format(namespace)
    start = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    async with api.watch(path, fieldSelector="metadata.name=b", resourceVersion=start, watch="True") as stream:
        (await api.post(path, mxjob("a"))).ok()
        (await api.post(path, mxjob("b"))).ok()
        assert said(await stream.next()) == ("ADDED", "b")


async def test_a_watched_table_announces_its_columns_once(api, namespace):
    path = JOBS.format(namespace)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    (await api.post(path, mxjob("a"))).ok()
    (await api.post(path, mxjob("b"))).ok()
    async with api.watch(path, headers=accept) as stream:
        first, second = await stream.take(2)
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert (first["object"]["rows"][0]["cells"][0], second["object"]["rows"][0]["cells"][0]) == ("a", "b")


@pytest.mark.parametrize("node", ["n", None], ids=["placed", "unplaced"])
async def test_a_pod_that_is_deleted_at_once_is_first_marked_as_being_deleted(api, namespace, node):
    """Airflow's KubernetesExecutor takes a pod that goes without that mark for another scheduler's."""
    path = PODS.format(namespace)
    start = (await api.post(path, pod("a", node=node))).ok()["metadata"]["resourceVersion"]
    async with api.watch(path, resourceVersion=start, fieldSelector="metadata.name=a") as stream:
        (await api.delete(f"{path}/a", {"gracePeriodSeconds": 0})).ok()
        events = [await stream.next()]
        while events[-1]["type"] != "DELETED":
            events.append(await stream.next())
    marked = [event["type"] for event in events if event["object"]["metadata"].get("deletionTimestamp")]
    assert marked == ["MODIFIED", "DELETED"]
    assert events[-1]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
