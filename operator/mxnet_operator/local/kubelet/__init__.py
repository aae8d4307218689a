"""Runs the pods of a node as process groups of this machine: no root, no containers."""

from mxnet_operator.local.kubelet.kubelet import Kubelet
from mxnet_operator.local.kubelet.timing import Timing

__all__ = ["Kubelet", "Timing"]
