"""Description of an MXJob for all interfaces: its fields, their checks, and the manifest built from it."""

from mxnet_operator.job.checks import DescriptionError
from mxnet_operator.job.description import MXJobDescription
from mxnet_operator.job.manifest import to_manifest
from mxnet_operator.job.placeholder import Placeholder
from mxnet_operator.job.pods import Role

__all__ = ["DescriptionError", "MXJobDescription", "Placeholder", "Role", "to_manifest"]
