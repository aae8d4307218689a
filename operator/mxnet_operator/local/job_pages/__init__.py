"""Read-only web pages of the local cluster's jobs, for links from Airflow: state, replicas, curve, logs."""

from mxnet_operator.local.job_pages.server import JobPages, page_template

__all__ = ["JobPages", "page_template"]
