"""What every Kubernetes API server refuses, and in which words: the fixture `api` may be ours or a real one."""

import json

import pytest
from apiserver_objects import CONFIG_MAPS, JOBS, PODS, config_map, mxjob, pod

from mxnet_operator.api.validation import validate

DNS_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"


def one(**fields):
    """The containers of a pod with one, which has these fields."""
    return {"containers": [{"name": "a", "image": "a", **fields}]}


def causes(answer):
    assert answer.code == 422, answer.text
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"name": "a"}]}, ["spec.containers[0].image: Required value"]),
        ({"containers": [{"image": "a"}]}, ["spec.containers[0].name: Required value"]),
        (
            {"containers": [{"name": "A_b", "image": "a"}]},
            [f'spec.containers[0].name: Invalid value: "A_b": {DNS_LABEL}'],
        ),
        ({"containers": [{"name": "a", "image": "a"}] * 2}, ['spec.containers[1].name: Duplicate value: "a"']),
        (one(env=[{"value": "x"}]), ["spec.containers[0].env[0].name: Required value"]),
        (
            one(resources={"requests": {"memory": "-1Gi"}}),
            [
                'spec.containers[0].resources.requests[memory]: Invalid value: "-1Gi": '
                "must be greater than or equal to 0"
            ],
        ),
        (
            one(resources={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
            ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
        ),
        (
            one(resources={"requests": {"nvidia.com/gpu": 1}}),
            ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
    ],
)
async def test_a_pod_that_could_never_run_is_refused(api, namespace, spec, expected):
    found = causes(await api.post(PODS.format(namespace), pod("a", **spec)))
    assert [each[: len(wanted)] for each, wanted in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "text"},
        {"containers": [{"name": 1}]},
        one(env=[{"name": "A", "value": 1}]),
        one(resources={"limits": {"cpu": "lots"}}),
        one(resources={"limits": {"cpu": "1 core"}}),
    ],
    ids=str,
)
async def test_a_pod_of_wrong_types_is_a_bad_request(api, namespace, spec):
    answer = await api.post(PODS.format(namespace), pod("a", **spec))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"].startswith('Pod in version "v1" cannot be handled as a Pod: ')


async def test_what_kubernetes_fills_in_is_filled_in(api, namespace):
    amounts = {"limits": {"cpu": 1}, "requests": {"cpu": "1"}}
    spec = one(ports=[{"containerPort": 8080}], resources=amounts)
    created = (await api.post(PODS.format(namespace), pod("a", **spec))).ok()["spec"]
    assert created["containers"][0]["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert created["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


async def test_an_empty_text_is_no_value_where_there_is_a_default(api, namespace):
    of_pod = {"restartPolicy": "Always", "schedulerName": "default-scheduler"}
    containers = one(ports=[{"containerPort": 80, "protocol": ""}])
    created = (await api.post(PODS.format(namespace), pod("a", **dict.fromkeys(of_pod, ""), **containers))).ok()["spec"]
    assert {name: created[name] for name in of_pod} == of_pod
    assert created["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"a b": "c"}}, ['metadata.labels: Invalid value: "a b": name part must consist of']),
        ({"labels": {"a": "b c"}}, ['metadata.labels: Invalid value: "b c": a valid label must be']),
        (
            {"ownerReferences": [{"kind": "MXJob"}]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
                'metadata.ownerReferences.name: Invalid value: "": must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            ],
        ),
    ],
)
async def test_metadata_has_its_rules(api, namespace, metadata, expected):
    for path, manifest in ((JOBS, mxjob("a")), (CONFIG_MAPS, config_map("a"))):
        manifest["metadata"] |= metadata
        found = causes(await api.post(path.format(namespace), manifest))
        assert [each[: len(wanted)] for each, wanted in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a b": "c", "x.io/y z": "d", "A.b/c": "", "": ""}},
        {"labels": {"/a": "", "a/": "", "a" * 64: "", "b " * 40: ""}},
        {"labels": {"a": "b c", "b": "b" * 64, "c": "-", "d": "", "e": "- " * 40, "f": "ü" * 40}},
        {"annotations": {"x y": "any thing", "X.io/a": "b", "a/b/c": ""}},
    ],
)
async def test_validate_says_of_labels_and_annotations_what_the_server_says(api, namespace, metadata):
    manifest = mxjob("a")
    manifest["metadata"] |= metadata
    refused = causes(await api.post(JOBS.format(namespace), manifest))
    assert sorted(refused) == sorted(error.message for error in validate(manifest))
    assert refused


@pytest.mark.parametrize(
    "metadata", [{"labels": {"a": 1}}, {"labels": []}, {"annotations": "x"}, {"ownerReferences": 1}]
)
async def test_metadata_of_wrong_types_is_a_bad_request(api, namespace, metadata):
    for path, manifest in ((JOBS, mxjob("a")), (PODS, pod("a"))):
        manifest["metadata"] |= metadata
        assert (await api.post(path.format(namespace), manifest)).code == 400


@pytest.mark.parametrize("name", ["UPPER", "a_b", "-a", "a" * 254, "a..b"])
async def test_a_name_is_a_dns_name(api, namespace, name):
    for path, manifest in ((JOBS, mxjob(name)), (CONFIG_MAPS, config_map(name))):
        assert causes(await api.post(path.format(namespace), manifest))[0].startswith("metadata.name: Invalid value")


async def test_a_bad_name_of_a_job_is_told_by_the_server_and_by_the_rule(api, namespace):
    server, rule = causes(await api.post(JOBS.format(namespace), mxjob("N_")))
    assert server.startswith('metadata.name: Invalid value: "N_": a lowercase RFC 1123 subdomain must')
    assert rule.startswith('metadata.name: Invalid value: "N_": must start with a lower-case letter')


async def test_a_generated_name_is_cut_to_fit_a_label(api, namespace):
    long = config_map("")
    long["metadata"] = {"generateName": "g" * 70}
    assert len((await api.post(CONFIG_MAPS.format(namespace), long)).ok()["metadata"]["name"]) == 63


@pytest.mark.parametrize("raw", [b"{", b"", b"[1, 2]", b'"text"', b"null", b"\xff\xfe"])
async def test_what_is_no_json_object_is_a_bad_request(api, namespace, raw):
    answer = await api.ask("POST", JOBS.format(namespace), raw=raw)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("validation", "code", "warned"),
    [("Strict", 400, False), ("Warn", 201, True), ("", 201, True), ("Ignore", 201, False)],
)
async def test_unknown_fields_are_refused_told_or_dropped(api, namespace, validation, code, warned):
    for path, kind, manifest in ((JOBS, "MXJob", mxjob("a")), (PODS, "Pod", pod("a"))):
        manifest["spec"]["bogus"] = 1
        asked = {"fieldValidation": validation} if validation else {}
        answer = await api.post(path.format(namespace), manifest, **asked)
        assert answer.code == code
        if code == 400:
            refusal = 'strict decoding error: unknown field "spec.bogus"'
            assert answer.body["message"] == f'{kind} in version "v1" cannot be handled as a {kind}: {refusal}'
        else:
            assert "bogus" not in answer.body["spec"]
        assert answer.headers.getall("Warning", []) == (['299 - "unknown field \\"spec.bogus\\""'] if warned else [])


@pytest.mark.parametrize(
    ("patch", "query", "why"),
    [
        ({"spec": {"bogus": 1}}, {"fieldValidation": "Strict"}, 'strict decoding error: unknown field "spec.bogus"'),
        ({"metadata": {"labels": {"a": 1}}}, {}, ""),
    ],
)
async def test_a_patch_to_what_can_not_be_read_is_invalid(api, namespace, patch, query, why):
    path = f"{JOBS.format(namespace)}/a"
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    (cause,) = causes(await api.merge(path, patch, **query))
    assert cause.startswith('patch: Invalid value: "{')
    assert why in cause


async def test_a_patch_moves_no_object(api, namespace):
    path = f"{JOBS.format(namespace)}/a"
    (await api.post(JOBS.format(namespace), mxjob("a"))).ok()
    name = await api.merge(path, {"metadata": {"name": "b"}})
    assert (name.code, name.body["message"]) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    moved = await api.merge(path, {"metadata": {"namespace": "b"}})
    assert (moved.code, moved.body["message"]) == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    uid = await api.merge(path, {"metadata": {"uid": "b"}})
    assert causes(uid)[0] == 'metadata.uid: Invalid value: "b": field is immutable'
    assert (await api.merge(path, {"kind": "Pod"})).code in {400, 422}


async def test_the_grace_of_a_pod_is_fixed_and_its_deadline_only_shrinks(api, namespace):
    path = f"{PODS.format(namespace)}/a"
    (await api.post(PODS.format(namespace), pod("a", activeDeadlineSeconds=5))).ok()
    (grace,) = causes(await api.merge(path, {"spec": {"terminationGracePeriodSeconds": 5}}))
    assert grace.startswith("spec: Forbidden: pod updates may not change fields other than")
    assert causes(await api.merge(path, {"spec": {"activeDeadlineSeconds": 6}})) == [
        "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"
    ]
    assert (await api.merge(path, {"spec": {"activeDeadlineSeconds": None}})).code == 422


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "x"},
        {"resourceVersion": "x"},
        {"continue": "x"},
        {"watch": "1", "timeoutSeconds": "x"},
        {"fieldSelector": "x"},
    ],
)
async def test_a_query_that_makes_no_sense_is_a_bad_request(api, namespace, query):
    assert (await api.get(JOBS.format(namespace), **query)).code == 400


async def test_a_new_object_has_no_resource_version(api, namespace):
    answer = await api.post(JOBS.format(namespace), mxjob("a", resourceVersion="1"))
    assert (answer.code, answer.body["message"]) == (500, "resourceVersion should not be set on objects to be created")
    assert "reason" not in answer.body


async def test_an_object_on_its_way_out_takes_no_new_finalizer(api, namespace):
    path = f"{JOBS.format(namespace)}/a"
    (await api.post(JOBS.format(namespace), mxjob("a", finalizers=["example.org/x"]))).ok()
    (await api.delete(path)).ok()
    answer = await api.merge(path, {"metadata": {"finalizers": ["example.org/x", "example.org/y"]}})
    assert causes(answer)[0] == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.org/y"}'
    )
    (await api.merge(path, {"metadata": {"finalizers": None}})).ok()


async def test_the_scheduling_gates_of_a_pod_are_taken_away(api, namespace):
    path, gates = f"{PODS.format(namespace)}/a", [{"name": "example.org/a"}, {"name": "example.org/b"}]
    created = (await api.post(PODS.format(namespace), pod("a", schedulingGates=gates))).ok()
    [condition] = created["status"]["conditions"]
    assert {key: condition.get(key) for key in ("type", "status", "reason", "message")} == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }

    async def replaced(*left):
        patch = [{"op": "add", "path": "/spec/schedulingGates", "value": [*left]}]
        return await api.ask("PATCH", path, patch, content_type="application/json-patch+json")

    (await replaced(gates[1])).ok()
    (await replaced()).ok()


async def test_what_is_in_namespaces_is_not_deleted_in_all_of_them_at_once(api, namespace):
    for path in ("/api/v1/configmaps", "/api/v1/pods"):
        answer = await api.ask("DELETE", path)
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_jobs_of_all_namespaces_at_once_are_only_read(api, method):
    assert (await api.ask(method, "/apis/kubeflow.org/v1/mxjobs", mxjob("a"))).code in {404, 405}


async def test_the_containers_of_a_pod_stay(api, namespace):
    (await api.post(PODS.format(namespace), pod("a"))).ok()
    more = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "b", "image": "b"}}]
    answer = await api.ask("PATCH", f"{PODS.format(namespace)}/a", more, content_type="application/json-patch+json")
    assert causes(answer) == ["spec.containers: Forbidden: pod updates may not add or remove containers"]


async def test_the_first_namespaces_stay(api):
    answer = await api.delete("/api/v1/namespaces/default")
    assert (answer.code, answer.body["message"]) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


async def test_plain_json_is_given_whatever_else_is_accepted(api, namespace):
    for accept in ("application/json, */*", "*/*"):
        answer = await api.ask("GET", JOBS.format(namespace), headers={"Accept": accept})
        assert json.loads(answer.text)["kind"] == "MXJobList"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_a_token_is_taken_whatever_the_case_of_its_scheme(api, scheme):
    """Within a pod the Kubernetes client for Python writes it small."""
    answer = await api.ask("GET", "/api/v1/pods", headers={"Authorization": f"{scheme} {api.token}"})
    assert answer.code == 200


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, 'of type integer: "null"'),
        ("a", 'of type integer: "string"'),
        ([], 'of type integer: "array"'),
        (True, 'of type int32: ""'),
        ({}, 'of type int32: ""'),
        (1.5, 'of type int32: "float64"'),
    ],
    ids=str,
)
async def test_what_is_no_integer_in_a_list_of_them_is_named_by_its_type(api, namespace, code, said):
    job = mxjob("a")
    job["spec"]["runPolicy"] = {"exitCodes": {"retryable": [code]}}
    cause, *_ = causes(await api.post(JOBS.format(namespace), job))
    where = "spec.runPolicy.exitCodes.retryable[0]"
    assert cause.startswith(f"{where}: Invalid value: ")
    assert f"{where} in body must be {said}" in cause
