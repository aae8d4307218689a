"""Manifests of a job's children, ready to be created: pure functions of a job with defaults."""

from mxnet_operator.builders.pods import build_pod
from mxnet_operator.builders.services import build_service

__all__ = ["build_pod", "build_service"]
