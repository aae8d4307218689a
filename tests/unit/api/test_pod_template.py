"""The pod template in the CRDs: Kubernetes' own types, nothing that 1.8.1 took refused, and small enough to apply."""

import json
from typing import Any

import pytest
from builders import make_mxjob
from training_operator import its_crd

from mxnet_operator.api import job_formats
from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.kinds import ALL, Kind
from mxnet_operator.api.pod_template import complete_schema, crd_schema
from mxnet_operator.api.structural import apply_schema_defaults, drop_nulls, structural_errors
from mxnet_operator.api.validation import unknown_fields, validate

LARGEST_CRD = 160_000
"""Bytes, far from the 262,144 of all annotations together: `kubectl apply` keeps a copy of the object in one."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def worker(**container: Any) -> dict[str, Any]:
    return make_mxjob().worker(1, **container).manifest()


def template(**spec: Any) -> dict[str, Any]:
    return make_mxjob().worker(1).template("Worker", **spec).manifest()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_kubectl_apply_has_room_for_a_copy_of_each_crd(kind: Kind) -> None:
    written = json.dumps(custom_resource_definition(kind), separators=(",", ":"))
    # Go writes these as \u003c
    escaped = len(written.encode()) + 5 * sum(written.count(each) for each in "<>&")
    assert escaped < LARGEST_CRD


ILL_TYPED = [
    (worker(env={"FOO": "bar"}), "containers[0].env"),
    (worker(env=[{"value": "3"}]), "containers[0].env[0].name"),
    (worker(env=[{"name": "A", "value": 3}]), "containers[0].env[0].value"),
    (worker(ports=[9091]), "containers[0].ports[0]"),
    (worker(ports=[{"name": "mxjob-port"}]), "containers[0].ports[0].containerPort"),
    (worker(resources={"limits": "1"}), "containers[0].resources.limits"),
    (worker(resources={"limits": {"cpu": "two"}}), "containers[0].resources.limits.cpu"),
    (worker(command="python train.py"), "containers[0].command"),
    (worker(args=[5]), "containers[0].args[0]"),
    (worker(args=[None]), "containers[0].args[0]"),
    (worker(volumeMounts=[{"name": "data"}]), "containers[0].volumeMounts[0].mountPath"),
    (worker(livenessProbe={"periodSeconds": "5"}), "containers[0].livenessProbe.periodSeconds"),
    (template(nodeSelector="gpu"), "spec.nodeSelector"),
    (template(tolerations=[{"key": 1}]), "spec.tolerations[0].key"),
    (make_mxjob().worker(1).template_metadata("Worker", labels={"a": 1}).manifest(), "template.metadata.labels.a"),
]


@pytest.mark.parametrize(("manifest", "where"), ILL_TYPED, ids=[where for _, where in ILL_TYPED])
def test_what_has_the_wrong_type_is_rejected_with_its_path(manifest: dict[str, Any], where: str) -> None:
    (error,) = validate(manifest)
    assert error.path.endswith(where)


@pytest.mark.parametrize(
    ("manifest", "where"),
    [
        (worker(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": 3}}}]), "valueFrom.secretKeyRef.key"),
        (worker(readinessProbe={"httpGet": {"port": [80]}}), "httpGet.port"),
        (template(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": "gpu"}}}), "nodeSelectorTerms"),
        (template(volumes=[{"name": "a", "configMap": {"items": [{"key": "a"}]}}]), "configMap.items[0].path"),
    ],
)
def test_what_lies_deeper_than_the_crd_is_found_before_a_job_is_sent(manifest: dict[str, Any], where: str) -> None:
    assert validate(manifest) == []
    assert job_formats.errors(manifest)[0].path.endswith(where)


UNKNOWN = [
    (worker(resource={}), "resource", "resources"),
    (worker(volumeMount=[]), "volumeMount", "volumeMounts"),
    (worker(env=[{"name": "A", "valu": "b"}]), "env[0].valu", "value"),
    (template(nodeselector={}), "nodeselector", "nodeSelector"),
    (
        template(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "x", "readonly": 1}}]),
        "readonly",
        "readOnly",
    ),
    (make_mxjob().worker(1).template_metadata("Worker", label={"a": "b"}).manifest(), "metadata.label", "labels"),
]


@pytest.mark.parametrize(("manifest", "where", "meant"), UNKNOWN, ids=[where for _, where, _ in UNKNOWN])
def test_an_unknown_field_of_a_template_is_named_with_the_one_that_was_meant(
    manifest: dict[str, Any], where: str, meant: str
) -> None:
    assert validate(manifest) == []
    (error,) = unknown_fields(manifest)
    assert error.path.endswith(where)
    assert error.detail.endswith(f"did you mean {meant}?")


@pytest.mark.parametrize(
    "manifest",
    [
        worker(resources={"limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 2}, "requests": {"cpu": 0.5}}),
        worker(command=None, args=None, env=None, ports=None, resources=None, securityContext=None),
        worker(env=[{"name": "A", "value": None}, {"name": "B"}], resources={}, ports=[]),
        worker(livenessProbe={"tcpSocket": {"port": "http"}}, readinessProbe={"httpGet": {"port": 80, "path": None}}),
        template(volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"sizeLimit": 5, "medium": None}}]),
        template(securityContext={}, affinity={}, tolerations=None, imagePullSecrets=[{}]),
        make_mxjob().worker(1).template_metadata("Worker", creationTimestamp=None, labels=None).manifest(),
        make_mxjob().worker(1).run_policy(suspend=None, cleanPodPolicy=None).manifest(),
    ],
)
def test_what_clients_write_for_nothing_is_taken(manifest: dict[str, Any]) -> None:
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["restartPolicy"] = None
    manifest["spec"]["successPolicy"] = None
    assert job_formats.errors(manifest) == []
    assert unknown_fields(manifest) == []


def test_nothing_is_refused_that_training_operators_crd_took() -> None:
    """Field by field: of a field that both type, ours takes what its own takes."""
    (version,) = its_crd()["spec"]["versions"]
    specs = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mxReplicaSpecs"]
    theirs = specs["additionalProperties"]["properties"]["template"]
    compared = list(_compared(crd_schema(), theirs, "template")) + list(
        _compared(complete_schema(), theirs, "template")
    )
    assert len(compared) > 1000
    # pods without it were refused then as well ("must be a valid IP address")
    refused_later = "template.spec.hostAliases[]: {'ip'} not needed there"
    assert {each for each in compared if each} == {refused_later}


def _compared(ours: dict[str, Any], theirs: dict[str, Any], path: str) -> Any:
    """For each field that both know, what ours refuses of it and theirs doesn't; empty where nothing."""
    if ours.get("type") in (None, "quantity"):
        yield "" if "pattern" not in ours or ours["pattern"] == theirs.get("pattern") else f"{path}: another pattern"
        return
    same = ours["type"] == theirs.get("type")
    needed = set(ours.get("required", ())) - set(theirs.get("required", ())) - {"image", "spec"}
    yield ("" if same else f"{path}: {theirs.get('type')} there") + (
        f"{path}: {needed} not needed there" if needed else ""
    )
    for name, field in ours.get("properties", {}).items():
        if name in theirs.get("properties", {}):
            yield from _compared(field, theirs["properties"][name], f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in ours and inner in theirs:
            yield from _compared(ours[inner], theirs[inner], f"{path}[]")


def test_nulls_are_dropped_as_the_server_drops_them() -> None:
    """apiextensions-apiserver's own table (prunenulls_test.go), and maps."""
    schema = {
        "items": {
            "properties": {"a": {"default": "A"}, "d": {"properties": {"x": {}}}},
            "additionalProperties": {"type": "string"},
        }
    }
    value: Any = [{"a": None}, {"d": None}, {"e": None}, {"d": {"x": None, "y": None}}, None]
    drop_nulls(schema, value)
    assert value == [{"a": None}, {}, {}, {"d": {"y": None}}, None]


def test_defaults_are_filled_only_into_objects_that_are_there() -> None:
    schema = {"properties": {"spec": {"properties": {"on": {"default": False}}}}}
    for value, filled in (({"spec": {}}, {"spec": {"on": False}}), ({}, {})):
        apply_schema_defaults(schema, value)
        assert value == filled


def test_a_number_or_a_text_is_either() -> None:
    schema = {"x-kubernetes-int-or-string": True}
    assert [bool(structural_errors(schema, each, "p")) for each in (1, "a", 1.5, True, [], {})] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
