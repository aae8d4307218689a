"""The official Python client against the local API server."""

import asyncio

import pytest
from apiserver_objects import mxjob, pod
from kubernetes import client, config
from log_sources import ScriptedLogs

JOB = ("kubeflow.org", "v1", "default", "mxjobs")


@pytest.fixture
async def connection(running):
    configuration = client.Configuration()
    await asyncio.to_thread(
        config.load_kube_config, str(running.kubeconfig), client_configuration=configuration, persist_config=False
    )
    with client.ApiClient(configuration) as made:
        yield made
        pools = made.rest_client.pool_manager.pools  # it would leave their connections open
        for key in pools.keys():  # noqa: SIM118 - it can't be iterated over
            pools[key].close()


async def test_custom_objects_are_created_read_patched_listed_and_deleted(connection):
    jobs = client.CustomObjectsApi(connection)
    made = await asyncio.to_thread(jobs.create_namespaced_custom_object, *JOB, mxjob("j1"))
    assert made["metadata"]["uid"]
    patch = {"metadata": {"labels": {"a": "b"}}}
    await asyncio.to_thread(jobs.patch_namespaced_custom_object, *JOB, "j1", patch)
    state = {"status": {"state": "Running"}}
    await asyncio.to_thread(jobs.patch_namespaced_custom_object_status, *JOB, "j1", state)
    read = await asyncio.to_thread(jobs.get_namespaced_custom_object, *JOB, "j1")
    assert (read["metadata"]["labels"], read["status"]["state"]) == ({"a": "b"}, "Running")
    read["spec"]["runPolicy"] = {"backoffLimit": 2}
    await asyncio.to_thread(jobs.replace_namespaced_custom_object, *JOB, "j1", read)
    listed = await asyncio.to_thread(jobs.list_namespaced_custom_object, *JOB, label_selector="a=b")
    assert [item["spec"]["runPolicy"]["backoffLimit"] for item in listed["items"]] == [2]
    deleted = await asyncio.to_thread(jobs.delete_namespaced_custom_object, *JOB, "j1")
    assert deleted["status"] == "Success"
    with pytest.raises(client.ApiException, match="NotFound"):
        await asyncio.to_thread(jobs.get_namespaced_custom_object, *JOB, "j1")


async def test_typed_pods_go_through_unharmed(connection, running):
    running.server.log_source = ScriptedLogs("line")
    core = client.CoreV1Api(connection)
    manifest = pod("p", node="n")
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}}
    made = await asyncio.to_thread(core.create_namespaced_pod, "default", manifest)
    assert made.spec.containers[0].resources.requests == {"nvidia.com/gpu": "1", "memory": "1Gi"}
    made.metadata.labels = {"a": "b"}
    await asyncio.to_thread(core.replace_namespaced_pod, "p", "default", made)
    listed = await asyncio.to_thread(core.list_pod_for_all_namespaces, label_selector="a=b")
    assert [item.metadata.name for item in listed.items] == ["p"]
    response = await asyncio.to_thread(core.read_namespaced_pod_log, "p", "default", _preload_content=False)
    assert response.data == b"line\n"
    going = await asyncio.to_thread(core.delete_namespaced_pod, "p", "default", grace_period_seconds=0)
    assert going.metadata.name == "p"


async def test_versions_and_dynamic_discovery(connection):
    version = await asyncio.to_thread(client.VersionApi(connection).get_code)
    assert version.git_version.startswith("v1.")

    def discover():
        from kubernetes.dynamic import DynamicClient

        found = DynamicClient(connection).resources.get(api_version="kubeflow.org/v1", kind="MXJob")
        return found.name, found.namespaced

    assert await asyncio.to_thread(discover) == ("mxjobs", True)
