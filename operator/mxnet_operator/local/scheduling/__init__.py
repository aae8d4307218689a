"""The scheduler of the local cluster: which pods go to its one node, and what the others wait for."""
