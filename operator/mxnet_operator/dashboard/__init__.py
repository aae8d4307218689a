"""Dashboard: web pages of all jobs and of each job, live, for the local cluster and any kubeconfig."""

from mxnet_operator.dashboard.server import Dashboard, new_token, page_template

__all__ = ["Dashboard", "new_token", "page_template"]
