"""In-memory Kubernetes API server: the subset that kubectl, controllers and Airflow need."""

from mxnet_operator.local.apiserver.logs import LogSource
from mxnet_operator.local.apiserver.server import ApiServer
from mxnet_operator.local.apiserver.store import DeleteOptions, Store

__all__ = ["ApiServer", "DeleteOptions", "LogSource", "Store"]
