"""What a resourceFieldRef means: pkg/api/v1/resource/helpers.go of Kubernetes, ExtractContainerResourceValue."""

import pytest

from mxnet_operator.local.kubelet.environment import ConfigError, resource_text

NODE = {"cpu": "7.5", "memory": "16777216Ki", "ephemeral-storage": "100Gi", "pods": "110", "hugepages-2Mi": "1Gi"}
SET = {
    "limits": {"cpu": "1500m", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
    "requests": {"cpu": "100m", "memory": "300M", "ephemeral-storage": "1", "hugepages-2Mi": "4Mi"},
}


@pytest.mark.parametrize(
    ("resources", "resource", "divisor", "text"),
    [
        (SET, "limits.cpu", None, "2"),
        (SET, "limits.cpu", "1m", "1500"),
        (SET, "limits.cpu", "0", "2"),
        (SET, "limits.memory", None, "1073741824"),
        (SET, "limits.memory", "1Mi", "1024"),
        (SET, "requests.cpu", None, "1"),
        (SET, "requests.memory", "1Mi", "287"),
        (SET, "requests.ephemeral-storage", None, "1"),
        (SET, "limits.hugepages-2Mi", "1Mi", "4"),
        (SET, "requests.hugepages-2Mi", None, "4194304"),
        (SET, "limits.ephemeral-storage", "1Gi", "100"),
        ({}, "limits.cpu", None, "8"),
        ({}, "limits.cpu", "1m", "7500"),
        ({}, "limits.memory", "1Gi", "16"),
        ({"limits": {"cpu": "0"}}, "limits.cpu", None, "8"),
        ({"requests": {"cpu": "1"}}, "limits.cpu", None, "8"),
        (None, "limits.ephemeral-storage", "1Gi", "100"),
        ({}, "limits.hugepages-2Mi", None, "0"),
        ({}, "requests.cpu", None, "0"),
        ({}, "requests.memory", "1Gi", "0"),
        ({"limits": {"memory": "2Gi"}}, "requests.memory", "1Gi", "2"),
    ],
)
def test_what_is_not_set_is_the_nodes_limit_or_no_request(resources, resource, divisor, text):
    container = {"name": "main", "resources": resources}
    reference = {"resource": resource, "divisor": divisor}
    assert resource_text({"spec": {"containers": [container]}}, container, reference, NODE) == text


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_another_container_of_the_pod_may_be_meant(field):
    spec = {"containers": [{"name": "main"}]}
    spec[field] = [*spec.get(field, []), {"name": "other", "resources": {"limits": {"cpu": "3"}}}]
    reference = {"containerName": "other", "resource": "limits.cpu"}
    assert resource_text({"spec": spec}, spec["containers"][0], reference, NODE) == "3"


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ({"resource": "limits.nvidia.com/gpu"}, "Unsupported container resource : limits.nvidia.com/gpu"),
        ({"resource": "cpu"}, "Unsupported container resource : cpu"),
        ({"resource": "limits.cpu", "containerName": "none"}, "container none not found"),
    ],
)
def test_what_kubernetes_has_no_value_for_is_refused_in_its_words(reference, why):
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    with pytest.raises(ConfigError, match=why):
        resource_text({"spec": {"containers": [container]}}, container, reference, NODE)
