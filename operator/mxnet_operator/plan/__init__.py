"""What to do next with a job: pure functions of the job, what is observed, and the time; one file per policy."""

from mxnet_operator.plan.actions import Plan
from mxnet_operator.plan.decide import plan
from mxnet_operator.plan.observed import Observed, PodView, ServiceView
from mxnet_operator.plan.refusal import creation_refused, refuse

__all__ = ["Observed", "Plan", "PodView", "ServiceView", "creation_refused", "plan", "refuse"]
