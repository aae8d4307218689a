"""The manifests of a job's children, ready to be created: pure functions of a job with defaults."""

from mxnet_operator.build.pods import build_pod
from mxnet_operator.build.services import build_service

__all__ = ["build_pod", "build_service"]
