"""Scenes of a gang on three nodes that take minutes each: `make nodes` runs them, no tier does."""

import time

import pytest
from followed_gangs import train_both
from kubernetes_programs import kubectl
from real_node.images import ARGOEXEC, WORKFLOW_CONTROLLER
from waiting import SECONDS, eventually

pytestmark = [pytest.mark.node(ARGOEXEC, WORKFLOW_CONTROLLER), pytest.mark.timeout(1800)]

OFF = "node.kubernetes.io/out-of-service=off:NoExecute"
CONTROLLER = "--namespace=mxnet-operator"


def test_a_drained_node_costs_a_restart_on_the_others(gang, nodes):
    gang.create()
    gang.trained()
    chosen = ("--pod-selector=gang=digits", "--force", f"--timeout={SECONDS}s")
    nodes[0].kubectl("drain", "node3", *chosen)
    try:
        gang.succeeded(restarts=1)
        assert gang.nodes() <= {"node1", "node2"}
    finally:
        nodes[0].kubectl("uncordon", "node3")


@pytest.mark.parametrize("seconds", [20, 300])
def test_a_network_that_is_cut_between_two_nodes_for_a_while_costs_nothing(gang, nodes, seconds):
    _, second, third = nodes
    gang.create()
    gang.trained()
    with second.apart_from(third):
        time.sleep(seconds)  # the outage itself
    gang.succeeded()


def test_a_network_that_stays_cut_is_ended_by_the_stall_and_the_next_attempt_meets_no_ghost(followed, nodes):
    first, second, third = nodes
    train_both(*followed, stallTimeoutSeconds=60)
    with second.apart_from(third):
        first.kubectl("cordon", "node3")  # as who is on duty does: else the next attempt hangs in the same way
        try:
            for gang in followed:
                gang.restarted()
            for gang in followed:
                gang.succeeded(restarts=1)
        finally:
            first.kubectl("uncordon", "node3")


def test_a_node_that_comes_back_with_its_old_pods_alive_disturbs_nobody(gang, nodes):
    first, _, third = nodes
    gang.create(epochs=80)
    gang.trained()
    with third.unplugged():
        gang.waits_for("node3")
    first.wait("node/node3", "condition=Ready")
    gang.restarted()
    gang.succeeded(restarts=1)
    eventually(lambda: len(gang.pods()) == 6, every=1)


def test_the_leaders_node_dies_with_a_part_of_a_gang_and_the_other_controller_restarts_it(gang, nodes):
    first = nodes[0]
    first.kubectl("cordon", "node1")
    try:
        first.kubectl("rollout", "restart", "deployment/mxnet-operator", CONTROLLER)
        first.rolled_out("mxnet-operator", "mxnet-operator")
    finally:
        first.kubectl("uncordon", "node1")

    def leader():
        return first.get("lease", "mxnet-operator", CONTROLLER)["spec"].get("holderIdentity", "")

    def leaders_node():
        pods = first.get("pods", CONTROLLER)["items"]
        return next((each["spec"]["nodeName"] for each in pods if leader().startswith(each["metadata"]["name"])), "")

    gang.create()
    gang.trained()
    dead, was = eventually(leaders_node), leader()
    victim = next(node for node in nodes[1:] if node.place.name == dead)
    victim.kill()
    try:
        eventually(lambda: leader() not in {was, ""}, every=1)
        gang.waits_for(dead)
        first.kubectl("taint", "node", dead, OFF)
        gang.restarted()
        gang.succeeded(restarts=1)
        assert dead not in gang.nodes()
    finally:
        victim.start()
        first.kubectl("taint", "node", dead, f"{OFF}-")


def test_an_api_server_that_is_away_for_two_minutes_costs_nothing(followed, nodes):
    # Tolerated as by Kubernetes' default: after the outage, nodes count as lost for a moment.
    train_both(*followed, epochs=80, tolerated=300)
    with nodes[0].down("kube-apiserver"):
        time.sleep(120)  # the outage itself
    eventually(lambda: nodes[0].run(kubectl(), "get", "--raw", "/readyz", check=False).returncode == 0, every=1)
    for gang in followed:
        gang.succeeded()


def test_names_that_can_not_be_resolved_at_the_start_delay_the_gang(gang, nodes):
    with nodes[0].down("coredns"):
        gang.create()
        gang.world.wait("mxjob/digits", "condition=Created")
        time.sleep(30)  # the outage itself
    gang.succeeded()


def test_a_slow_node_makes_the_gang_slow_and_breaks_nothing(gang, nodes):
    gang.create()
    gang.trained()
    with nodes[2].slow(0.1):
        gang.trained(gang.epochs() + 2)
    gang.succeeded()
