"""Argo workflows with MXJobs in them, as Hera classes: a step that is one job, its clean-up, sweeps and pipelines."""

from mxnet_argo.cleanup import delete_jobs_on_exit, exit_handler
from mxnet_argo.job import MXJobSpec
from mxnet_argo.pipelines import sweep, tune_then_train
from mxnet_argo.reference import mxjob_ref
from mxnet_argo.runner import MXJobRunner
from mxnet_argo.step import MXJobStep
from mxnet_argo.values import Value, data, expression, integer, number, text

__all__ = [
    "MXJobRunner",
    "MXJobSpec",
    "MXJobStep",
    "Value",
    "data",
    "delete_jobs_on_exit",
    "exit_handler",
    "expression",
    "integer",
    "mxjob_ref",
    "number",
    "sweep",
    "text",
    "tune_then_train",
]
