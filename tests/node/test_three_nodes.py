"""A gang of real MXNet on three nodes, one of which is lost; `make nodes` runs scenes_of_three_nodes.py, too."""

OFF = "node.kubernetes.io/out-of-service=off:NoExecute"
"""What an administrator says of a machine that is off: docs/operate.md."""


def test_a_node_that_loses_its_power_costs_a_restart_from_the_last_checkpoint_on_the_others(gang, nodes):
    _, _, third = nodes
    gang.create()
    gang.trained()
    assert gang.nodes() == {"node1", "node2", "node3"}
    third.kill()
    try:
        gang.waits_for("node3")
        nodes[0].kubectl("taint", "node", "node3", OFF)
        gang.restarted()
        gang.succeeded(restarts=1)
        assert gang.nodes() <= {"node1", "node2"}
    finally:
        third.start()
        nodes[0].kubectl("taint", "node", "node3", f"{OFF}-")
