"""What every Kubernetes API server does on reads and writes: the fixture `api` may be ours or a real one."""

import asyncio

import pytest
from apiserver_objects import CONFIG_MAPS, JOBS, PODS, SERVICES, config_map, mxjob, pod

from mxnet_operator.api.conversion import without_server_fields


async def test_refuses_a_stale_resource_version(api, namespace):
    path = JOBS.format(namespace)
    first = (await api.post(path, mxjob("a"))).ok()
    labelled = first | {"metadata": first["metadata"] | {"labels": {"x": "1"}}}
    (await api.put(f"{path}/a", labelled)).ok()
    answer = await api.put(f"{path}/a", first | {"metadata": first["metadata"] | {"labels": {"x": "2"}}})
    assert answer.code == 409
    assert answer.body["reason"] == "Conflict"
    assert answer.body["message"] == (
        'Operation cannot be fulfilled on mxjobs.kubeflow.org "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert answer.body["details"] == {"name": "a", "group": "kubeflow.org", "kind": "mxjobs"}


async def test_a_patch_that_names_a_stale_resource_version_is_refused(api, namespace):
    path = JOBS.format(namespace)
    first = (await api.post(path, mxjob("a"))).ok()
    (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "1"}}})).ok()
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "status": {"startTime": None}}
    assert (await api.merge(f"{path}/a/status", stale)).code == 409
    assert (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "2"}}})).ok()["metadata"]["labels"] == {"x": "2"}


async def test_only_one_of_many_writers_of_one_version_wins(api, namespace):
    path = CONFIG_MAPS.format(namespace)
    first = (await api.post(path, config_map("a", count="0"))).ok()
    answers = await asyncio.gather(*(api.put(f"{path}/a", first | {"data": {"by": str(i)}}) for i in range(8)))
    assert sorted(answer.code for answer in answers) == [200] + [409] * 7


async def test_a_custom_resource_is_replaced_only_with_its_resource_version_given(api, namespace):
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    answer = await api.put(f"{JOBS.format(namespace)}/a", mxjob("a", replicas=2))
    assert answer.code == 422
    assert answer.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert answer.body["details"]["causes"][0]["message"].endswith("must be specified for an update")


async def test_a_config_map_is_replaced_without_one(api, namespace):
    (await api.post(CONFIG_MAPS.format(namespace), config_map("a", x="1"))).ok()
    assert (await api.put(f"{CONFIG_MAPS.format(namespace)}/a", config_map("a", x="2"))).ok()["data"] == {"x": "2"}


async def test_a_name_can_be_taken_once(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("e1"))).ok()
    answer = await api.post(path, mxjob("e1"))
    assert answer.code == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'mxjobs.kubeflow.org "e1" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "e1", "group": "kubeflow.org", "kind": "mxjobs"},
        "code": 409,
    }


async def test_a_job_as_the_server_printed_it_is_created_anew_without_what_the_server_sets(api, namespace):
    path = JOBS.format(namespace)
    first = (await api.post(path, mxjob("a", finalizers=["example.com/keep"]))).ok()
    (await api.delete(f"{path}/a")).ok()
    printed = (await api.get(f"{path}/a")).ok()
    (await api.merge(f"{path}/a", {"metadata": {"finalizers": None}})).ok()
    again = (await api.post(path, without_server_fields(printed))).ok()
    assert "deletionTimestamp" in printed["metadata"]
    assert "deletionTimestamp" not in again["metadata"]
    assert again["metadata"]["uid"] != first["metadata"]["uid"]


async def test_a_name_is_generated_on_request(api, namespace):
    job = mxjob("x")
    job["metadata"] = {"generateName": "run-"}
    names = {(await api.post(JOBS.format(namespace), job)).ok()["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


async def test_a_new_object_gets_its_metadata_from_the_server(api, namespace):
    job = mxjob("a", uid="mine", generation=9, creationTimestamp="2001-01-01T00:00:00Z")
    job["status"] = {"startTime": "2001-01-01T00:00:00Z"}
    made = (await api.post(JOBS.format(namespace), job)).ok()
    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["generation"] == 1
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
    assert made["metadata"]["namespace"] == namespace
    assert "status" not in made


async def test_what_is_not_there_is_not_found(api, namespace):
    answer = await api.get(f"{JOBS.format(namespace)}/zz")
    assert answer.code == 404
    assert answer.body["message"] == 'mxjobs.kubeflow.org "zz" not found'
    assert answer.body["details"] == {"name": "zz", "group": "kubeflow.org", "kind": "mxjobs"}


async def test_an_object_needs_a_namespace_that_exists(api):
    answer = await api.post(JOBS.format("nope"), mxjob("a"))
    assert answer.code == 404
    assert answer.body["message"] == 'namespaces "nope" not found'


async def test_what_no_group_serves_is_no_page(api):
    for path in ("/apis/none.example.org/v1", "/apis/kubeflow.org/v1/nothings", "/nothing"):
        assert (await api.get(path)).code == 404, path


async def test_what_a_built_in_group_does_not_serve_is_not_found(api):
    for path in ("/api/v1/nothings", "/api/v1/namespaces/default/pods/a/nothing", "/api/v1/pods/a"):
        answer = await api.get(path)
        assert (answer.code, answer.body["reason"], answer.body["details"]) == (404, "NotFound", {}), path
        assert answer.body["message"] == "the server could not find the requested resource", path


async def test_a_custom_resource_has_no_part_but_its_status(api, namespace):
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    answer = await api.get(f"{JOBS.format(namespace)}/a/scale")
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")


async def test_a_write_that_changes_nothing_keeps_the_resource_version(api, namespace):
    path = JOBS.format(namespace)
    first = (await api.post(path, mxjob("a", labels={"x": "1"}))).ok()
    again = (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "1"}}})).ok()
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_status_and_the_rest_are_written_apart(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("a"))).ok()
    both = {"spec": {"runPolicy": {"backoffLimit": 1}}, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    main = (await api.merge(f"{path}/a", both)).ok()
    assert main["spec"]["runPolicy"]["backoffLimit"] == 1
    assert "status" not in main
    assert main["metadata"]["generation"] == 2
    both["spec"]["runPolicy"]["backoffLimit"] = 5
    status = (await api.merge(f"{path}/a/status", both)).ok()
    assert status["status"] == {"startTime": "2026-01-01T00:00:00Z", "restarts": 0}  # 0 is the default in the CRD
    assert status["spec"]["runPolicy"]["backoffLimit"] == 1
    assert status["metadata"]["generation"] == 2


async def test_a_dry_run_stores_nothing(api, namespace):
    path = JOBS.format(namespace)
    assert (await api.post(path, mxjob("a"), dryRun="All")).ok()["metadata"]["uid"]
    assert (await api.get(f"{path}/a")).code == 404
    first = (await api.post(path, mxjob("a"))).ok()
    (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "1"}}}, dryRun="All")).ok()
    (await api.delete(f"{path}/a", dryRun="All")).ok()
    assert (await api.get(f"{path}/a")).ok() == first


async def test_a_list_of_built_in_objects_says_only_once_what_they_are(api, namespace):
    (await api.post(PODS.format(namespace), pod("a"))).ok()
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    pods, jobs = (await api.get(PODS.format(namespace))).ok(), (await api.get(JOBS.format(namespace))).ok()
    assert (pods["kind"], pods["items"][0].keys() & {"kind", "apiVersion"}) == ("PodList", set())
    assert (jobs["kind"], jobs["items"][0]["kind"]) == ("MXJobList", "MXJob")


async def test_labels_select(api, namespace):
    path = CONFIG_MAPS.format(namespace)
    for name, labels in (("a", {"app": "x", "tier": "1"}), ("b", {"app": "y"}), ("c", {"tier": "9"})):
        (await api.post(path, config_map(name, labels=labels | {"mine": "1"}))).ok()

    async def names(selector):
        listed = (await api.get(path, labelSelector=f"mine,{selector}")).ok()
        return "".join(item["metadata"]["name"] for item in listed["items"])

    assert await names("app=x") == "a"
    assert await names("app==x") == "a"
    assert await names("app!=x") == "bc"
    assert await names("app in (x, y)") == "ab"
    assert await names("app notin (x)") == "bc"
    assert await names("app") == "ab"
    assert await names("!app") == "c"


async def test_a_selector_that_is_none_is_refused(api, namespace):
    for selector in ("a in (", "a==b==c", "=b", "a b", "a,"):
        answer = await api.get(CONFIG_MAPS.format(namespace), labelSelector=selector)
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), selector


async def test_fields_select(api, namespace):
    path = PODS.format(namespace)
    (await api.post(path, pod("a"))).ok()
    (await api.post(path, pod("b", node="n1"))).ok()
    by_name = (await api.get(path, fieldSelector="metadata.name=a")).ok()
    by_node = (await api.get(path, fieldSelector="spec.nodeName=n1,status.phase!=Running")).ok()
    assert [item["metadata"]["name"] for item in by_name["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in by_node["items"]] == ["b"]
    refused = await api.get(JOBS.format(namespace), fieldSelector="spec.jobMode=MXTrain")
    assert refused.code == 400
    assert "field label not supported" in refused.body["message"]


async def test_a_json_patch_whose_test_fails_is_invalid(api, namespace):
    path = JOBS.format(namespace)
    (await api.post(path, mxjob("a"))).ok()
    kind = "application/json-patch+json"
    replace = [{"op": "replace", "path": "/spec/jobMode", "value": "MXTune"}]
    wrong = [{"op": "test", "path": "/spec/jobMode", "value": "Other"}, *replace]
    for refused in (wrong, [{"op": "zap", "path": "/spec/jobMode"}], [{"op": "remove", "path": "/spec/nothing"}]):
        answer = await api.ask("PATCH", f"{path}/a", refused, content_type=kind)
        assert (answer.code, answer.body["reason"], answer.body["details"]) == (422, "Invalid", {})
        assert answer.body["message"] == "the server rejected our request due to an error in our request"
    labelled = [{"op": "add", "path": "/metadata/labels", "value": {"x": "1"}}]
    assert (await api.ask("PATCH", f"{path}/a", labelled, content_type=kind)).ok()["metadata"]["labels"] == {"x": "1"}


async def test_custom_resources_know_no_strategic_merge(api, namespace):
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    answer = await api.ask(
        "PATCH", f"{JOBS.format(namespace)}/a", {}, content_type="application/strategic-merge-patch+json"
    )
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_a_strategic_merge_patch_merges_containers_by_name(api, namespace):
    path = PODS.format(namespace)
    containers = [{"name": "main", "image": "a:1"}, {"name": "side", "image": "b:1"}]
    (await api.post(path, pod("a", containers=containers))).ok()
    patch = {"spec": {"containers": [{"name": "side", "image": "b:2"}]}}
    kind = "application/strategic-merge-patch+json"
    patched = (await api.ask("PATCH", f"{path}/a", patch, content_type=kind)).ok()
    assert [(c["name"], c["image"]) for c in patched["spec"]["containers"]] == [("main", "a:1"), ("side", "b:2")]


async def test_a_strategic_merge_patch_merges_ports_by_number(api, namespace):
    path = SERVICES.format(namespace)
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    spec = {"clusterIP": "None", "selector": {"a": "b"}, "ports": ports}
    (await api.post(path, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})).ok()
    patch = {"spec": {"ports": [{"name": "c", "port": 2}]}}
    kind = "application/strategic-merge-patch+json"
    patched = (await api.ask("PATCH", f"{path}/s", patch, content_type=kind)).ok()
    assert {(each["name"], each["port"]) for each in patched["spec"]["ports"]} == {("a", 1), ("c", 2)}


async def test_the_name_in_the_body_must_be_that_of_the_url(api, namespace):
    (await api.post(CONFIG_MAPS.format(namespace), config_map("a"))).ok()
    other = await api.put(f"{CONFIG_MAPS.format(namespace)}/a", config_map("b"))
    assert (other.code, other.body["message"]) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    elsewhere = config_map("c")
    elsewhere["metadata"]["namespace"] = "default"
    assert (await api.post(CONFIG_MAPS.format(namespace), elsewhere)).code == 400


async def test_an_object_of_another_kind_is_refused(api, namespace):
    job = {key: value for key, value in mxjob("a").items() if key not in ("apiVersion", "kind")}
    for given in (
        {"apiVersion": "kubeflow.org/v1", "kind": "Pod"},
        {"apiVersion": "v2", "kind": "MXJob"},
        {"kind": "MXJob"},
        {"apiVersion": "kubeflow.org/v1"},
    ):
        assert (await api.post(JOBS.format(namespace), given | job)).code in {400, 422}, given
    for given in ({"kind": "Service"}, {"apiVersion": "v2"}):
        assert (await api.post(PODS.format(namespace), pod("a") | given)).code == 400, given


async def test_a_pod_is_bound_to_a_node_once(api, namespace):
    path = PODS.format(namespace)
    (await api.post(path, pod("a", schedulerName="by-hand"))).ok()
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert (await api.post(f"{path}/a/binding", binding)).code == 201
    bound = (await api.get(f"{path}/a")).ok()
    assert bound["spec"]["nodeName"] == "n"
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    again = await api.post(f"{path}/a/binding", binding)
    assert (again.code, again.body["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"',
    )
    assert again.body["details"]["kind"] == "pods/binding"


async def test_a_binding_names_its_pod(api, namespace):
    answer = await api.post(f"{PODS.format(namespace)}/a/binding", {"target": {"kind": "Node", "name": "n"}})
    assert (answer.code, answer.body["message"]) == (400, "name in URL does not match name in Binding object")


async def test_a_pod_starts_pending_and_its_spec_stays(api, namespace):
    path = PODS.format(namespace)
    made = (await api.post(path, pod("a") | {"status": {"phase": "Running"}})).ok()
    assert made["status"]["phase"] == "Pending"
    assert made["spec"]["restartPolicy"] == "Always"
    refused = await api.merge(f"{path}/a", {"spec": {"restartPolicy": "Never"}})
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "spec")
    assert (await api.merge(f"{path}/a", {"spec": {"activeDeadlineSeconds": 1}})).ok()["spec"][
        "activeDeadlineSeconds"
    ] == 1


async def test_a_list_of_the_future_is_asked_to_come_back(api, namespace):
    now = int((await api.get(JOBS.format(namespace))).ok()["metadata"]["resourceVersion"])
    answer = await api.get(JOBS.format(namespace), resourceVersion=str(now + 10_000_000))
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_headless_service_is_stored_as_one(api, namespace):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 9091}]},
    }
    made = (await api.post(SERVICES.format(namespace), service)).ok()
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["ports"] == [{"port": 9091, "targetPort": 9091, "protocol": "TCP"}]


@pytest.mark.parametrize("mode", ["mxtune", "Banana"])
async def test_a_mode_that_does_not_exist_is_rejected_at_creation_and_in_updates(api, namespace, mode):
    wrong = mxjob("digits")
    wrong["spec"]["jobMode"] = mode
    created = await api.post(JOBS.format(namespace), wrong)
    (await api.post(JOBS.format(namespace), mxjob("digits"))).ok()
    changed = await api.merge(f"{JOBS.format(namespace)}/digits", {"spec": {"jobMode": mode}})
    for answer in (created, changed):
        (cause,) = answer.body["details"]["causes"]
        assert (answer.code, cause["field"]) == (422, "spec.jobMode")
        assert cause["message"].endswith("did you mean MXTrain or MXTune?")
