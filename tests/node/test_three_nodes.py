"""Gangs of real MXNet on three nodes, one of which is lost; `make nodes` runs scenes_of_three_nodes.py, too."""

import pytest
from followed_gangs import LOST, train_both
from real_node.images import ARGOEXEC, WORKFLOW_CONTROLLER

pytestmark = [pytest.mark.node(ARGOEXEC, WORKFLOW_CONTROLLER), pytest.mark.timeout(1800)]

OFF = "node.kubernetes.io/out-of-service=off:NoExecute"
"""What an administrator says of a machine that is off: docs/operate.md."""


def test_a_node_that_loses_its_power_costs_a_restart_from_the_last_checkpoint_through_which_airflow_and_argo_wait(
    followed, nodes
):
    first, _, third = nodes
    train_both(*followed)
    for gang in followed:
        assert gang.nodes() == {"node1", "node2", LOST}
    third.kill()  # for good: no test comes after this one
    for gang in followed:
        gang.waits_for(LOST)
    first.kubectl("taint", "node", LOST, OFF)
    for gang in followed:
        gang.restarted()
    for gang in followed:
        gang.succeeded(restarts=1)
        assert LOST not in gang.nodes()
