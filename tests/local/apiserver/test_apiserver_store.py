"""The store without HTTP, as a simulation drives it: its own clock, its own randomness, collection when it says so."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from apiserver_objects import config_map, event, mxjob, pod

from mxnet_operator.api.crd import custom_resource_definition, definitions, legacy_definitions
from mxnet_operator.local.apiserver.garbage_collection import GarbageCollector
from mxnet_operator.local.apiserver.resources import CONFIG_MAPS, EVENTS, PODS
from mxnet_operator.local.apiserver.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return Store([custom_resource_definition()], clock=clock, rng=random.Random(1))


@pytest.fixture
def jobs(store):
    return store.catalog.find("kubeflow.org", "v1", "mxjobs")


def test_a_seed_and_a_clock_make_the_same_history_again(clock):
    def live():
        store = Store([custom_resource_definition()], clock=clock, rng=random.Random(7))
        made = store.create(PODS, "default", {**pod("x"), "metadata": {"generateName": "p-"}})
        return made, store.storage.revision

    first, second = live(), live()
    assert first == second
    assert first[0]["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_collector_that_starts_late_knows_what_was_there(store, jobs):
    owner = store.create(jobs, "default", mxjob("a"))
    store.create(PODS, "default", pod("p", owner=owner))
    store.delete(jobs, "default", "a")
    GarbageCollector(store).run()
    assert store.select(PODS) == []


def test_an_owner_of_a_kind_that_is_not_served_is_left_alone(store):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "uid": "u"}}
    store.create(PODS, "default", pod("p", owner=owner))
    GarbageCollector(store).run()
    assert len(store.select(PODS)) == 1


def test_events_are_forgotten_after_an_hour(store, jobs, clock):
    job = store.create(jobs, "default", mxjob("a"))
    store.create(EVENTS, "default", event("old", job))
    clock.now += timedelta(minutes=61)
    store.create(EVENTS, "default", event("new", job))
    assert [each["metadata"]["name"] for each in store.select(EVENTS)] == ["new"]


def test_a_version_of_an_earlier_life_is_too_old_in_the_next(store, clock):
    seen = store.create(CONFIG_MAPS, "default", config_map("a"))["metadata"]["resourceVersion"]
    clock.now += timedelta(seconds=10)
    following = Store(clock=clock)
    assert int(seen) < following.storage.journal(CONFIG_MAPS).oldest


def test_the_groups_of_definitions_come_by_name_whatever_the_order_of_their_installation(clock):
    store = Store([*legacy_definitions()[::-1], *definitions()], clock=clock)
    assert list(store.catalog.groups())[-3:] == ["fioravanzo.org", "kubeflow.org", "mxnet.mlkube.io"]
