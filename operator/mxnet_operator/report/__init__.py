"""HTML report on a finished job: training or tuning, time line and replicas in one self-contained file."""

from mxnet_operator.report.drawing import MissingMatplotlibError, require_matplotlib
from mxnet_operator.report.page import html
from mxnet_operator.report.run import Replica, Run

__all__ = ["MissingMatplotlibError", "Replica", "Run", "html", "require_matplotlib"]
