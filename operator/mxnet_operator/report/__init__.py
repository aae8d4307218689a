"""HTML page on a job: training or tuning, time line and replicas; as a report, one self-contained file."""

from mxnet_operator.report.page import html
from mxnet_operator.report.run import Replica, Run

__all__ = ["Replica", "Run", "html"]
