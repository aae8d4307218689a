"""Description of an MXJob for all interfaces: its fields, their checks, and the manifest built from it."""

from mxnet_operator.description.checks import DescriptionError
from mxnet_operator.description.description import MXJobDescription
from mxnet_operator.description.manifest import to_manifest
from mxnet_operator.description.pods import Placeholder, Role

__all__ = ["DescriptionError", "MXJobDescription", "Placeholder", "Role", "to_manifest"]
