"""The table of container behaviours on the local kubelet; tests/node has the same on a real one."""

from container_behaviours import BEHAVIOURS, OBJECTS, differences, is_over, seen
from kubelet_fixtures import IMAGE

from mxnet_operator.kube.resources import CONFIGMAPS, SECRETS

PATHS = {"ConfigMap": CONFIGMAPS, "Secret": SECRETS}


async def test_containers_behave_as_the_table_says(node):
    for manifest in OBJECTS:
        await node.client.create(PATHS[manifest["kind"]].path(node.namespace), manifest)
    for name, each in BEHAVIOURS.items():
        await node.create(each.pod(name, IMAGE))
    pods = {name: await node.until(name, is_over, "was over") for name in BEHAVIOURS}
    logs = {
        name: await node.log(name, container="main") if each.seen.get("log") else ""
        for name, each in BEHAVIOURS.items()
    }
    found = {name: seen(pod, logs[name]) for name, pod in pods.items()}
    assert differences(found, node.namespace) == {}
