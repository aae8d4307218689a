"""What every Kubernetes API server says of a pod's log before a kubelet has one."""

import pytest
from apiserver_objects import PODS, pod

TWO = [{"name": "main", "image": "a:1"}, {"name": "side", "image": "b:1"}]


async def test_a_pod_without_a_node_has_an_empty_log(api, namespace):
    (await api.post(PODS.format(namespace), pod("a", schedulerName="by-hand"))).ok()
    answer = await api.get(f"{PODS.format(namespace)}/a/log")
    assert (answer.code, answer.text) == (204, "")


async def test_a_pod_that_is_not_there_has_no_log(api, namespace):
    answer = await api.get(f"{PODS.format(namespace)}/zz/log")
    assert (answer.code, answer.body["message"]) == (404, 'pods "zz" not found')


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({}, 400, "a container name must be specified for pod a, choose one of: [main side]"),
        ({"container": "other"}, 400, "container other is not valid for pod a"),
        (
            {"container": "main", "tailLines": "-1"},
            422,
            'PodLogOptions "a" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            {"container": "main", "sinceSeconds": "0"},
            422,
            'PodLogOptions "a" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
        ),
    ],
)
async def test_a_log_that_can_not_be_meant_is_refused(api, namespace, query, code, message):
    (await api.post(PODS.format(namespace), pod("a", containers=TWO, schedulerName="by-hand"))).ok()
    answer = await api.get(f"{PODS.format(namespace)}/a/log", **query)
    assert (answer.code, answer.body["message"]) == (code, message)


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"sinceTime": "yesterday"}])
async def test_a_log_option_of_the_wrong_type_is_a_bad_request(api, namespace, query):
    (await api.post(PODS.format(namespace), pod("a", schedulerName="by-hand"))).ok()
    answer = await api.get(f"{PODS.format(namespace)}/a/log", **query)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
