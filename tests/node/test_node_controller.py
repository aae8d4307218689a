"""The controller from its image, as the shipped manifests deploy it, on a real node."""

from real_node.cheap_gang import UNTIL_AGAIN, gang, with_state
from real_node.images import OPERATOR

LOOK = "import os; print(os.getuid(), os.access('/', os.W_OK), os.path.exists('/var/run/secrets/kubernetes.io'))"


def controllers(node):
    return {pod["metadata"]["name"]: pod for pod in node.get("pods", "--namespace=mxnet-operator")["items"]}


def leader(node):
    """The identity of who leads; empty between one that has left and the next."""
    return node.get("lease", "mxnet-operator", "--namespace=mxnet-operator")["spec"].get("holderIdentity", "")


def image_that_leads(node):
    led_by = (pod for name, pod in controllers(node).items() if leader(node).startswith(name))
    return next((pod["spec"]["containers"][0]["image"] for pod in led_by), "")


def test_both_controllers_run_as_nobody_with_a_token_and_file_systems_that_are_read_only(node):
    pods = controllers(node)
    assert len(pods) == 2
    for name, pod in pods.items():
        (status,) = pod["status"]["containerStatuses"]
        assert (status["ready"], status["restartCount"]) == (True, 0)
        seen = node.kubectl("exec", "--namespace=mxnet-operator", name, "--", "python", "-c", LOOK)
        assert seen.split() == ["65532", "False", "True"]


def test_the_other_leads_when_the_pod_of_the_one_that_led_is_deleted(node):
    (first,) = [name for name in controllers(node) if leader(node).startswith(name)]
    node.kubectl("delete", "pod", "--namespace=mxnet-operator", first)
    while leader(node).startswith(first) or not leader(node):
        pass  # each look is a process
    assert any(leader(node).startswith(name) for name in controllers(node))
    node.rolled_out("mxnet-operator", "mxnet-operator")


def test_an_upgrade_leaves_running_jobs_alone(world, state):
    """No release came before this one: what follows is the same image under another tag, in pods of its own."""
    node, newer = world.node, OPERATOR.name.rpartition(":")[0] + ":next"
    world.create(with_state(gang(command=UNTIL_AGAIN), state))
    world.wait("mxjob/gang", "condition=Running")
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods("gang").items()}
    node.run("ctr", "--namespace=k8s.io", "images", "tag", OPERATOR.name, newer)
    deployment = ("--namespace=mxnet-operator", "deployment/mxnet-operator")
    node.kubectl("set", "image", *deployment, f"controller={newer}")
    node.rolled_out("mxnet-operator", "mxnet-operator")
    try:
        while image_that_leads(node) != newer:
            pass  # each look is a process
        assert {name: pod["metadata"]["uid"] for name, pod in world.pods("gang").items()} == before
        (state / "again").touch()
        world.ended("gang", "Succeeded")
        assert world.get("mxjob", "gang")["status"].get("restarts", 0) == 0
    finally:
        node.kubectl("rollout", "undo", *deployment)
        node.rolled_out("mxnet-operator", "mxnet-operator")
