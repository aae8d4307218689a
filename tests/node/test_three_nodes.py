"""Gangs of real MXNet on three nodes, one of which is lost; `make nodes` runs scenes_of_three_nodes.py, too."""

import pytest
from real_node.images import ARGOEXEC, WORKFLOW_CONTROLLER

pytestmark = pytest.mark.node(ARGOEXEC, WORKFLOW_CONTROLLER)

OFF = "node.kubernetes.io/out-of-service=off:NoExecute"
"""What an administrator says of a machine that is off: docs/operate.md."""


def test_a_node_that_loses_its_power_costs_a_restart_from_the_last_checkpoint_through_which_airflow_and_argo_wait(
    followed, nodes
):
    """The step's pod is lost with the node. Worker 0 of Airflow's job isn't: its last lines would be lost, too."""
    airflow, argo = followed
    airflow.create()
    holder = airflow.pods()[f"{airflow.name}-worker-0"]["spec"]["nodeName"]
    lost = next(node for node in nodes[1:] if node.place.name != holder)
    name = argo.polled_from = lost.place.name
    argo.create()
    for gang in followed:
        gang.trained()
        assert gang.nodes() == {"node1", "node2", "node3"}
    lost.kill()
    try:
        for gang in followed:
            gang.waits_for(name)
        nodes[0].kubectl("taint", "node", name, OFF)
        for gang in followed:
            gang.restarted()
        for gang in followed:
            gang.succeeded(restarts=1)
            assert name not in gang.nodes()
    finally:
        lost.start()
        nodes[0].kubectl("taint", "node", name, f"{OFF}-")
