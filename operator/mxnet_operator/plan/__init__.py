"""Decide what a job needs next: pure functions of the job, its observed children, and the time; one file per policy."""

from mxnet_operator.plan.absence import (
    may_have_unlabelled_pods,
    relies_on_absence,
    relies_on_record,
)
from mxnet_operator.plan.actions import Plan
from mxnet_operator.plan.children import ChildRule, ChildView
from mxnet_operator.plan.decide import plan
from mxnet_operator.plan.joining import with_attempt_created
from mxnet_operator.plan.lease import kept_lease
from mxnet_operator.plan.observed import NodeView, Observed, PodView
from mxnet_operator.plan.policy import Policy
from mxnet_operator.plan.queue import flavors_wanted, priority_wanted, queue_of
from mxnet_operator.plan.queue_workload import QueueSystem, QueueWorkload
from mxnet_operator.plan.rejection import RejectedCreation, creation_rejected, reconcile_failed, reconciled, reject
from mxnet_operator.plan.services import ServiceView
from mxnet_operator.plan.terminating_pods import nodes_in_doubt
from mxnet_operator.plan.workflow import goes_with_workflow

__all__ = [
    "ChildRule",
    "ChildView",
    "NodeView",
    "Observed",
    "Plan",
    "PodView",
    "Policy",
    "QueueSystem",
    "QueueWorkload",
    "RejectedCreation",
    "ServiceView",
    "creation_rejected",
    "flavors_wanted",
    "goes_with_workflow",
    "kept_lease",
    "may_have_unlabelled_pods",
    "nodes_in_doubt",
    "plan",
    "priority_wanted",
    "queue_of",
    "reconcile_failed",
    "reconciled",
    "reject",
    "relies_on_absence",
    "relies_on_record",
    "with_attempt_created",
]
