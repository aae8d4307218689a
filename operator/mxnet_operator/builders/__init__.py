"""Manifests of a job's children, ready to be created: pure functions of a job with defaults."""

from mxnet_operator.builders.pods import build_pod
from mxnet_operator.builders.queue_workload import build_queue_workload, queue_workload_spec
from mxnet_operator.builders.services import build_service

__all__ = ["build_pod", "build_queue_workload", "build_service", "queue_workload_spec"]
