"""Decide what a job needs next: pure functions of the job, its observed children, and the time; one file per policy."""

from mxnet_operator.plan.actions import Effects, Reads
from mxnet_operator.plan.children import ChildRule, ServiceView
from mxnet_operator.plan.decide import plan
from mxnet_operator.plan.lease import kept_lease
from mxnet_operator.plan.observed import ChildView, NodeView, Observed, PodView
from mxnet_operator.plan.rejection import RejectedCreation, creation_rejected, reconcile_failed, reconciled, reject
from mxnet_operator.plan.replicas import with_attempt_created
from mxnet_operator.plan.times import Policy

__all__ = [
    "ChildRule",
    "ChildView",
    "Effects",
    "NodeView",
    "Observed",
    "PodView",
    "Policy",
    "Reads",
    "RejectedCreation",
    "ServiceView",
    "creation_rejected",
    "kept_lease",
    "plan",
    "reconcile_failed",
    "reconciled",
    "reject",
    "with_attempt_created",
]
