"""Kubelet that runs the pods of a node as process groups of this machine: no root, no containers."""
