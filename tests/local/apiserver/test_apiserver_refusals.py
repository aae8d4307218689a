"""What the local API server refuses, and in which words (docs/facts/kubernetes.md)."""

import io
import json
import ssl

import aiohttp
import pytest
from apiserver_objects import CONFIG_MAPS, JOBS, PODS, SERVICES, config_map, mxjob

PATH = JOBS.format("default")


@pytest.mark.parametrize("header", [None, "", "Bearer ", "Bearer wrong", "Basic YTpi", "a-token-for-tests"])
@pytest.mark.parametrize("path", ["/api/v1/pods", "/version", "/apis", "/nothing", "/openapi/v3"])
async def test_nothing_is_said_without_the_token(running, header, path):
    trust = ssl.create_default_context(cafile=str(running.certificate))
    headers = {"Authorization": header} if header is not None else {}
    url = f"https://127.0.0.1:{running.port}{path}"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url, ssl=trust) as response:
        body = await response.json()
    assert response.status == 401
    assert (body["kind"], body["reason"], body["code"]) == ("Status", "Unauthorized", 401)


async def test_nothing_is_said_over_plain_http(running):
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{running.port}/readyz")


async def test_health_needs_no_token(running):
    trust = ssl.create_default_context(cafile=str(running.certificate))
    async with aiohttp.ClientSession() as session:
        for path in ("/readyz", "/livez", "/healthz"):
            async with session.get(f"https://127.0.0.1:{running.port}{path}", ssl=trust) as response:
                assert (response.status, await response.text()) == (200, "ok")


async def test_who_pretends_to_be_another_is_refused(api):
    assert (await api.ask("GET", PATH, headers={"Impersonate-User": "bob"})).code == 403


async def test_a_quantity_that_no_machine_has_is_refused(api):
    container = {"name": "a", "image": "a"}
    for spec, field in (
        ({"containers": [container | {"resources": {"limits": {"memory": "1e99"}}}]}, "spec.containers[0].resources"),
        ({"containers": [container], "overhead": {"cpu": "1e999"}}, "spec.overhead"),
    ):
        refused = await api.post(PODS.format("default"), {"metadata": {"name": "a"}, "spec": spec})
        assert (refused.code, [each["field"] for each in refused.body["details"]["causes"]]) == (422, [field])


async def test_what_there_was_is_not_listed(api):
    now = (await api.get(PATH)).ok()["metadata"]["resourceVersion"]
    (await api.get(PATH, limit="1", resourceVersion=now, resourceVersionMatch="NotOlderThan")).ok()
    assert (await api.get(PATH, resourceVersion=now, resourceVersionMatch="Exact")).code == 400


async def test_an_object_may_be_nested_only_so_deep(api):
    deep = b'{"apiVersion":"kubeflow.org/v1","kind":"MXJob","metadata":{"name":"a"},"spec":'
    levels = 20_000  # more than Python's limit, which hypothesis raises while it runs
    deep += b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    assert (await api.ask("POST", PATH, raw=deep)).code == 400


async def test_a_body_may_be_only_so_large(api):
    raw = io.BytesIO(json.dumps(config_map("a", x="y" * 4 * 1024 * 1024)).encode())
    answer = await api.ask("POST", CONFIG_MAPS.format("default"), raw=raw)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "content_type", ["application/vnd.kubernetes.protobuf", "application/yaml", "application/x-www-form-urlencoded"]
)
async def test_only_json_is_read(api, content_type):
    answer = await api.ask("POST", PATH, raw=b"k8s", content_type=content_type)
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_server_side_apply_is_not_offered(api):
    (await api.post(PATH, mxjob("a"))).ok()
    answer = await api.ask("PATCH", f"{PATH}/a", mxjob("a"), content_type="application/apply-patch+yaml")
    assert answer.code == 415


async def test_a_service_that_needs_a_proxy_is_refused(api):
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    answer = await api.post(SERVICES.format("default"), {"metadata": {"name": "s"}, "spec": spec})
    assert answer.body["details"]["causes"][0]["field"] == "spec.type"


async def test_a_deletion_that_orphans_is_refused_and_deletes_nothing(api):
    (await api.post(PATH, mxjob("a"))).ok()
    for answer in (
        await api.delete(f"{PATH}/a", {"propagationPolicy": "Orphan"}),
        await api.delete(f"{PATH}/a", propagationPolicy="Orphan"),
    ):
        assert (answer.code, "Orphan" in answer.body["message"]) == (400, True)
    assert (await api.get(f"{PATH}/a")).code == 200


async def test_definitions_are_read_only(api):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await api.get(f"{path}/mxjobs.kubeflow.org")).ok()["spec"]["group"] == "kubeflow.org"
    for answer in (await api.post(path, {}), await api.delete(f"{path}/mxjobs.kubeflow.org")):
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")
