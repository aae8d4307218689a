"""PriorityClasses, and the priority that pods get by them: the fixture `api` may be ours or a real one."""

import uuid

import pytest
from apiserver_objects import PODS, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


@pytest.fixture
async def classes(api):
    """Creates a PriorityClass, named after this test's run; all of them go with the test."""
    made = []

    async def create(name, value, **fields):
        answer = await api.post(CLASSES, priority_class(f"{name}-{uuid.uuid4().hex[:8]}", value, **fields))
        made.append(answer.ok()["metadata"]["name"])
        return made[-1]

    yield create
    for name in made:
        await api.delete(f"{CLASSES}/{name}")


async def priority_of(api, namespace, **spec):
    stored = (await api.post(PODS.format(namespace), pod(f"p-{uuid.uuid4().hex[:8]}", **spec))).ok()["spec"]
    return {key: stored.get(key) for key in ("priorityClassName", "priority", "preemptionPolicy")}


async def rejected(api, path, body, code):
    answer = await api.post(path, body)
    assert answer.code == code, answer.text
    return answer.body["message"]


async def test_a_pod_gets_the_priority_of_its_class(api, namespace, classes):
    high, never = await classes("high", 1000), await classes("never", -5, preemptionPolicy="Never")
    assert await priority_of(api, namespace, priorityClassName=high) == {
        "priorityClassName": high,
        "priority": 1000,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert await priority_of(api, namespace, priorityClassName=never, priority=-5) == {
        "priorityClassName": never,
        "priority": -5,
        "preemptionPolicy": "Never",
    }


async def test_a_pod_of_no_class_gets_that_of_the_default_or_zero(api, namespace, classes):
    nothing = {"priorityClassName": None, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert await priority_of(api, namespace) == nothing
    default = await classes("default", 7, globalDefault=True)
    # Admission of a real server reads its cache, which is behind for a moment.
    async with api.watch(CLASSES) as events:
        while (await events.next())["object"]["metadata"]["name"] != default:
            pass
    assert (await priority_of(api, namespace))["priorityClassName"] == default


async def test_a_class_that_does_not_exist_is_refused(api, namespace):
    message = await rejected(api, PODS.format(namespace), pod("a", priorityClassName="nope"), 403)
    assert message == 'pods "a" is forbidden: no PriorityClass with name nope was found'


async def test_a_pod_keeps_its_priority_whatever_writes_it(api, namespace, classes):
    name = await classes("kept", 9)
    manifest = pod("a", priorityClassName=name, schedulerName="nobody")  # a node would change the spec as well
    stored = (await api.post(PODS.format(namespace), manifest)).ok()
    (await api.delete(f"{CLASSES}/{name}")).ok()
    # without a resourceVersion: a scheduler may write its status meanwhile
    metadata = {key: each for key, each in stored["metadata"].items() if key != "resourceVersion"}
    written = ("priority", "preemptionPolicy")
    spec = {key: each for key, each in stored["spec"].items() if key not in written}
    labelled = stored | {"metadata": metadata | {"labels": {"a": "b"}}, "spec": spec}
    changed = (await api.put(f"{PODS.format(namespace)}/a", labelled)).ok()
    assert changed["spec"]["priority"] == 9
    answer = await api.merge(f"{PODS.format(namespace)}/a", {"spec": {"priority": 10}})
    assert answer.code == 422
