"""What to do next with a job: pure functions of the job, what is observed, and the time; one file per policy."""

from mxnet_operator.plan.absence import has_just_ended, relies_on_absence
from mxnet_operator.plan.actions import Plan
from mxnet_operator.plan.children import ChildRule, ChildView
from mxnet_operator.plan.decide import plan
from mxnet_operator.plan.joining import with_attempt_created
from mxnet_operator.plan.lease import kept_lease
from mxnet_operator.plan.observed import NodeView, Observed, PodView
from mxnet_operator.plan.policy import Policy
from mxnet_operator.plan.refusal import Refused, creation_refused, reconcile_failed, reconciled, refuse
from mxnet_operator.plan.services import ServiceView
from mxnet_operator.plan.stuck import nodes_in_doubt
from mxnet_operator.plan.workflow import goes_with_workflow

__all__ = [
    "ChildRule",
    "ChildView",
    "NodeView",
    "Observed",
    "Plan",
    "PodView",
    "Policy",
    "Refused",
    "ServiceView",
    "creation_refused",
    "goes_with_workflow",
    "has_just_ended",
    "kept_lease",
    "nodes_in_doubt",
    "plan",
    "reconcile_failed",
    "reconciled",
    "refuse",
    "relies_on_absence",
    "with_attempt_created",
]
