"""The official Python client against the local API server."""

import asyncio

import pytest
from apiserver_objects import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    PODS,
    SECRETS,
    SERVICES,
    config_map,
    event,
    mxjob,
    pod,
    secret,
    volume_claim,
)
from kubernetes import client, config
from log_sources import ScriptedLogs

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.local.apiserver.resources import BUILT_IN
from mxnet_operator.local.kubelet.node import NodeKeeper
from mxnet_operator.local.waiting import Timing

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


async def test_every_kind_has_all_that_its_type_requires(connection, running, api):
    service = {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "ports": [{"port": 9091}]}}
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    made = (await api.post(PODS.format("default"), pod("p"))).ok()
    for path, body in (
        (SERVICES, service),
        (CONFIG_MAPS, config_map("c")),
        (SECRETS, secret("s")),
        (CLAIMS, volume_claim("v")),
        (EVENTS, event("e", made)),
        ("/apis/coordination.k8s.io/v1/namespaces/{}/leases", lease),
    ):
        (await api.post(path.format("default"), body)).ok()
    async with Client(load_credentials(str(running.kubeconfig))) as own:
        await NodeKeeper(own, "local", {"cpu": "1"}, Timing(), {})._heartbeat()
    apis = {"": "CoreV1Api", "coordination.k8s.io": "CoordinationV1Api", "apiextensions.k8s.io": "ApiextensionsV1Api"}
    for each in BUILT_IN:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in each.kind)
        group = getattr(client, apis[each.group])(connection)
        listed = await asyncio.to_thread(getattr(group, f"list{name}" + "_for_all_namespaces" * each.namespaced))
        assert listed.items, each.kind


async def test_versions_and_dynamic_discovery(connection):
    version = await asyncio.to_thread(client.VersionApi(connection).get_code)
    assert version.git_version.startswith("v1.")

    def discover():
        from kubernetes.dynamic import DynamicClient

        found = DynamicClient(connection).resources.get(api_version="kubeflow.org/v1", kind="MXJob")
        return found.name, found.namespaced

    assert await asyncio.to_thread(discover) == ("mxjobs", True)
