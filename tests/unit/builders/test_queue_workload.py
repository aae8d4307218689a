"""The Workload that a job's queue sees: Kueue's CRD takes whatever the API server takes of a pod."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from builders import make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.integrations.kueue.objects import V1BETA1, V1BETA2, build_queue_workload
from mxnet_operator.integrations.kueue.workload import QueuePriority

KEYS = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "claims": ("name",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumes": ("name",),
}
"""Lists of a pod that are maps in Kueue 0.15's CRD (x-kubernetes-list-map-keys), where Kubernetes checks no such thing.

Of these Kubernetes itself lets several have the same keys: env, ports, claims, hostAliases and imagePullSecrets.
"""
DEFAULTS = {"protocol": "TCP"}
CONTAINERS: dict[str, dict[str, Any]] = {
    "a port of our number": {"ports": [{"containerPort": 9091}]},
    "a port under two names": {
        "ports": [{"name": "a", "containerPort": 80}, {"name": "b", "containerPort": 80, "protocol": "TCP"}]
    },
    "a variable twice": {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
    "a claim of two requests": {
        "resources": {"claims": [{"name": "gpu", "request": "large"}, {"name": "gpu", "request": "small"}]}
    },
}
SPECS: dict[str, dict[str, Any]] = {
    "an address of two host aliases": {"hostAliases": [{"ip": "::1", "hostnames": ["a"]}, {"ip": "::1"}]},
    "a pull secret twice": {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
}


def lists(value: Any) -> Iterator[tuple[str, list[Any]]]:
    """Every list below a value, with its field."""
    for field, of_field in value.items() if isinstance(value, dict) else ():
        if isinstance(of_field, list):
            yield field, of_field
            for each in of_field:
                yield from lists(each)
        else:
            yield from lists(of_field)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1", 1), ("2147483647", 2**31 - 1), ("2147483648", None), ("9999999999", None), ("0", None), ("24h", None)],
)
def test_the_longest_run_is_within_what_kueues_crd_takes(text: str, seconds: int | None) -> None:
    job = with_defaults(make_mxjob().worker(1).obj())
    metadata = msgspec.structs.replace(job.metadata, labels={"kueue.x-k8s.io/max-exec-time-seconds": text})
    job = msgspec.structs.replace(job, metadata=metadata)
    workload = build_queue_workload(job, "w", "x", QueuePriority("PriorityClass", ""))
    assert workload["spec"].get("maximumExecutionTimeSeconds") == seconds


@pytest.mark.parametrize("version", [V1BETA1, V1BETA2])
@pytest.mark.parametrize(
    ("container", "spec"),
    [*((each, {}) for each in CONTAINERS.values()), *(({}, each) for each in SPECS.values())],
    ids=[*CONTAINERS, *SPECS],
)
def test_no_list_that_is_a_map_for_kueue_has_a_key_twice(
    container: dict[str, Any], spec: dict[str, Any], version: str
) -> None:
    builder = make_mxjob().worker(2, **container)
    helper = {"name": "helper", "image": "helper", **container}
    job = with_defaults(builder.template("Worker", initContainers=[helper], **spec).obj())
    workload = build_queue_workload(job, "w", "x", QueuePriority("PriorityClass", ""), version)
    (pod_set,) = workload["spec"]["podSets"]
    for field, entries in lists(pod_set["template"]):
        if keys := KEYS.get(field):
            told = [tuple(each.get(key, DEFAULTS.get(key)) for key in keys) for each in entries]
            assert len(told) == len(set(told)), field
    written = build_pod(job, "Worker", 0, 0)["spec"]
    (only,) = written["initContainers"]
    assert helper.items() <= only.items()
    assert all(written[field] == value for field, value in spec.items())


def test_what_a_quota_depends_on_is_there_as_written() -> None:
    resources = {"limits": {"nvidia.com/gpu": 1, "cpu": "500m"}, "claims": [{"name": "gpu"}]}
    fields: dict[str, Any] = {
        "initContainers": [{"name": "first", "image": "first", "resources": resources, "restartPolicy": "Always"}],
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "overhead": {"cpu": "1"},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        "priorityClassName": "high",
        "runtimeClassName": "nvidia",
        "schedulingGates": [{"name": "quota"}],
    }
    job = with_defaults(make_mxjob().worker(2, resources=resources).template("Worker", **fields).obj())
    workload = build_queue_workload(job, "w", "x", QueuePriority("PriorityClass", ""))
    (pod_set,) = workload["spec"]["podSets"]
    spec = pod_set["template"]["spec"]
    assert {field: spec[field] for field in fields} == fields
    assert spec["containers"] == [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1", "resources": resources}]
