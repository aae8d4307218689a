"""A finished job as one HTML file that needs nothing else: its training or tuning, time line, replicas."""

from mxnet_operator.report.drawing import MissingMatplotlibError, require_matplotlib
from mxnet_operator.report.page import html
from mxnet_operator.report.run import Replica, Run

__all__ = ["MissingMatplotlibError", "Replica", "Run", "html", "require_matplotlib"]
