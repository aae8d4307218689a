"""A finished job as one HTML file that needs nothing else: training curve, time line, replicas."""

from mxnet_operator.report.curve import MissingMatplotlibError
from mxnet_operator.report.page import html
from mxnet_operator.report.run import Replica, Run

__all__ = ["MissingMatplotlibError", "Replica", "Run", "html"]
