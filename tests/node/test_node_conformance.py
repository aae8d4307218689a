"""The table of container behaviours on the real kubelet, which is right; the local one has the same table."""

from container_behaviours import BEHAVIOURS, OBJECTS, differences, is_over, seen
from real_node.cheap_gang import BUSYBOX
from waiting import eventually


def test_containers_behave_as_the_table_says(world):
    for manifest in (*OBJECTS, *(each.pod(name, BUSYBOX) for name, each in BEHAVIOURS.items())):
        world.create(manifest)

    def pods_over():
        pods = world.get("pods", "-l", "behaviour=yes")["items"]
        return all(map(is_over, pods)) and {each["metadata"]["name"]: each for each in pods}

    pods = eventually(pods_over, every=1)
    logs = {
        name: world.kubectl("logs", name, "--container=main") if each.seen.get("log") else ""
        for name, each in BEHAVIOURS.items()
    }
    found = {name: seen(pod, logs[name]) for name, pod in pods.items()}
    assert differences(found, world.namespace) == {}
