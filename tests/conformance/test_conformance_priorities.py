"""PriorityClasses, and the priority that pods get by them: the fixture `api` may be ours or a real one."""

import uuid

import pytest
from apiserver_objects import PODS, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLUSTER, NODE = "system-cluster-critical", "system-node-critical"


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


async def test_every_cluster_has_two_classes_for_its_own_pods(api, namespace):
    for name, value in ((CLUSTER, 2_000_000_000), (NODE, 2_000_001_000)):
        found = (await api.get(f"{CLASSES}/{name}")).ok()
        assert (found["value"], found["preemptionPolicy"]) == (value, "PreemptLowerPriority")
        assert (await priority_of(api, namespace, priorityClassName=name))["priority"] == value
        answer = await api.delete(f"{CLASSES}/{name}")
        assert (answer.code, answer.body["message"]) == (
            403,
            f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: this is a system priority class and cannot be'
            " deleted",
        )


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
    second = await rejected(api, CLASSES, priority_class("second", 1, globalDefault=True), 403)
    assert second == (
        'priorityclasses.scheduling.k8s.io "second" is forbidden:'
        f" PriorityClass {default} is already marked as default."
        " Only one default can exist"
    )
    assert (await priority_of(api, namespace))["priorityClassName"] == default


async def test_a_class_that_does_not_exist_is_refused(api, namespace):
    message = await rejected(api, PODS.format(namespace), pod("a", priorityClassName="nope"), 403)
    assert message == 'pods "a" is forbidden: no PriorityClass with name nope was found'


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec;"),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec;",
        ),
    ],
)
async def test_what_a_pod_says_otherwise_itself_is_refused(api, namespace, spec, what):
    message = await rejected(api, PODS.format(namespace), pod("a", **spec), 403)
    assert message.startswith(f'pods "a" is forbidden: {what} priority admission controller computed')
    assert message.endswith(" from the given PriorityClass name")


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


@pytest.mark.parametrize(
    ("manifest", "cause"),
    [
        (
            priority_class("system-mine", 1),
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only."
            " error: system-mine is not a known system priority class",
        ),
        (
            priority_class("too-high", 1_000_000_001),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            priority_class("odd", 1, preemptionPolicy="Sometimes"),
            'preemptionPolicy: Unsupported value: "Sometimes": supported values: "',
        ),
        (priority_class("UPPER", 1), 'metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must'),
    ],
)
async def test_a_class_has_its_rules(api, manifest, cause):
    answer = await api.post(CLASSES, manifest)
    assert answer.code == 422, answer.text
    (found,) = (f"{each['field']}: {each['message']}" for each in answer.body["details"]["causes"])
    assert found.startswith(cause)


async def test_value_and_policy_of_a_class_stay(api, classes):
    name = await classes("fixed", 3)
    for change, cause in (
        ({"value": 4}, "value: Forbidden: may not be changed in an update."),
        ({"preemptionPolicy": "Never"}, 'preemptionPolicy: Invalid value: "Never": field is immutable'),
    ):
        answer = await api.merge(f"{CLASSES}/{name}", change)
        assert answer.code == 422, answer.text
        (found,) = (f"{each['field']}: {each['message']}" for each in answer.body["details"]["causes"])
        assert found == cause
    assert (await api.merge(f"{CLASSES}/{name}", {"description": "for tests"})).ok()["description"] == "for tests"
