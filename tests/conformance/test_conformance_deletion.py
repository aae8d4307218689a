"""How things go: preconditions, grace, finalizers, owners, namespaces. `api` may be ours or a real server's."""

import asyncio

from apiserver_objects import CONFIG_MAPS, JOBS, PODS, config_map, mxjob, owned_by, pod
from waiting import SECONDS


async def gone(api, path):
    """Wait until a GET answers 404."""
    collection, _, name = path.rpartition("/")
    async with asyncio.timeout(SECONDS):
        while (await api.get(path)).code != 404:
            async with api.watch(collection, fieldSelector=f"metadata.name={name}", timeoutSeconds="5") as stream:
                while (event := await stream.next()) and event["type"] != "DELETED":
                    pass


async def test_a_deleted_custom_resource_is_answered_with_a_status(api, namespace):
    made = (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    answer = (await api.delete(f"{JOBS.format(namespace)}/a", {"propagationPolicy": "Background"})).ok()
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {
        "name": "a",
        "group": "kubeflow.org",
        "kind": "mxjobs",
        "uid": made["metadata"]["uid"],
    }


async def test_a_delete_holds_its_preconditions(api, namespace):
    path = JOBS.format(namespace)
    made = (await api.post(path, mxjob("a"))).ok()
    for precondition in ({"uid": "xx"}, {"resourceVersion": "1"}):
        answer = await api.delete(f"{path}/a", {"preconditions": precondition})
        assert answer.code == 409
        assert answer.body["message"].startswith(
            'Operation cannot be fulfilled on MXJob.kubeflow.org "a": the '
            + ("UID in the precondition (xx)" if "uid" in precondition else "ResourceVersion in the precondition (1)")
        )
    right = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    assert (await api.delete(f"{path}/a", {"preconditions": right})).code == 200


async def test_a_pod_without_a_node_goes_at_once(api, namespace):
    (await api.post(PODS.format(namespace), pod("a"))).ok()
    assert (await api.delete(f"{PODS.format(namespace)}/a")).ok()["kind"] == "Pod"
    assert (await api.get(f"{PODS.format(namespace)}/a")).code == 404


async def test_a_pod_on_a_node_waits_for_its_kubelet(api, namespace):
    path = f"{PODS.format(namespace)}/a"
    (await api.post(PODS.format(namespace), pod("a", node="n", terminationGracePeriodSeconds=20))).ok()
    going = (await api.delete(path)).ok()
    assert going["metadata"]["deletionGracePeriodSeconds"] == 20
    assert (await api.get(path)).ok()["metadata"]["deletionTimestamp"] == going["metadata"]["deletionTimestamp"]
    again = (await api.delete(path, {"gracePeriodSeconds": 60})).ok()
    assert again["metadata"]["deletionGracePeriodSeconds"] == 20
    sooner = (await api.delete(path, {"gracePeriodSeconds": 5})).ok()
    assert sooner["metadata"]["deletionGracePeriodSeconds"] == 5
    (await api.delete(path, {"gracePeriodSeconds": 0})).ok()
    assert (await api.get(path)).code == 404


async def test_a_finished_pod_goes_at_once(api, namespace):
    path = f"{PODS.format(namespace)}/a"
    (await api.post(PODS.format(namespace), pod("a", node="n"))).ok()
    (await api.merge(f"{path}/status", {"status": {"phase": "Succeeded"}})).ok()
    (await api.delete(path)).ok()
    assert (await api.get(path)).code == 404


async def test_an_owner_in_another_namespace_is_absent(api, namespace):
    other = (await api.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})).ok()["metadata"]["name"]
    owner = (await api.post(CONFIG_MAPS.format(other), config_map("owner"))).ok()
    path = CONFIG_MAPS.format(namespace)
    (await api.post(path, config_map("owned", owner=owner))).ok()
    await gone(api, f"{path}/owned")
    assert (await api.get(f"{CONFIG_MAPS.format(other)}/owner")).code == 200
    (await api.delete(f"/api/v1/namespaces/{other}")).ok()


async def test_a_finalizer_holds_an_object_until_it_is_removed(api, namespace):
    path = f"{JOBS.format(namespace)}/a"
    (await api.post(JOBS.format(namespace), mxjob("a", finalizers=["example.org/wait"]))).ok()
    going = (await api.delete(path)).ok()
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["generation"] == 2
    assert (await api.merge(path, {"metadata": {"finalizers": ["example.org/wait", "example.org/more"]}})).code == 422
    (await api.merge(path, {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(path)).code == 404


async def test_dependents_go_with_their_owner(api, namespace):
    owner = (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    (await api.post(PODS.format(namespace), pod("p", owner=owner))).ok()
    (await api.post(CONFIG_MAPS.format(namespace), config_map("free"))).ok()
    (await api.delete(f"{JOBS.format(namespace)}/a")).ok()
    await gone(api, f"{PODS.format(namespace)}/p")
    assert (await api.get(f"{CONFIG_MAPS.format(namespace)}/free")).code == 200


async def test_a_dependent_that_comes_too_late_goes_as_well(api, namespace):
    owner = (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    (await api.delete(f"{JOBS.format(namespace)}/a")).ok()
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()  # the same name is not the same owner
    (await api.post(PODS.format(namespace), pod("p", owner=owner))).ok()
    await gone(api, f"{PODS.format(namespace)}/p")


async def test_a_dependent_keeps_the_owner_that_is_left(api, namespace):
    first = (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    second = (await api.post(JOBS.format(namespace), mxjob("b"))).ok()
    shared = config_map("c")
    shared["metadata"]["ownerReferences"] = [owned_by(first), owned_by(second)]
    made = (await api.post(CONFIG_MAPS.format(namespace), shared)).ok()
    async with api.watch(CONFIG_MAPS.format(namespace), resourceVersion=made["metadata"]["resourceVersion"]) as stream:
        (await api.delete(f"{JOBS.format(namespace)}/a")).ok()
        event = await stream.next()
    assert event["type"] == "MODIFIED"
    assert [each["name"] for each in event["object"]["metadata"]["ownerReferences"]] == ["b"]


async def test_a_foreground_delete_waits_for_the_dependents(api, namespace):
    owner = (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    held = pod("p", node="n")
    held["metadata"]["ownerReferences"] = [owned_by(owner, blockOwnerDeletion=True)]
    (await api.post(PODS.format(namespace), held)).ok()
    going = (await api.delete(f"{JOBS.format(namespace)}/a", {"propagationPolicy": "Foreground"})).ok()
    assert going["metadata"]["finalizers"] == ["foregroundDeletion"]
    async with api.watch(PODS.format(namespace), fieldSelector="metadata.name=p") as stream:
        while "deletionTimestamp" not in (await stream.next())["object"]["metadata"]:
            pass
    assert (await api.get(f"{JOBS.format(namespace)}/a")).code == 200
    (await api.delete(f"{PODS.format(namespace)}/p", {"gracePeriodSeconds": 0})).ok()
    await gone(api, f"{JOBS.format(namespace)}/a")


async def test_a_namespace_takes_its_contents_along(api, namespace):
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    (await api.post(PODS.format(namespace), pod("p", node="n"))).ok()
    going = (await api.delete(f"/api/v1/namespaces/{namespace}")).ok()
    assert going["status"]["phase"] == "Terminating"
    refused = await api.post(CONFIG_MAPS.format(namespace), config_map("late"))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    (await api.delete(f"{PODS.format(namespace)}/p", {"gracePeriodSeconds": 0})).ok()
    await gone(api, f"/api/v1/namespaces/{namespace}")
    assert (await api.get(JOBS.format(namespace))).ok()["items"] == []
