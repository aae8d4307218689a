"""Way from a task or trigger to its cluster: four arguments, which all of them have."""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.sdk import BaseOperator

from mxnet_provider.options import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job import MXNetJobHook


_ARGUMENTS: Final = ("kubernetes_conn_id", "in_cluster", "config_file", "cluster_context")


def connection_of(owner: object) -> dict[str, Any]:
    """Return the arguments of both hooks, which an operator, sensor or trigger has as attributes."""
    given = {name: getattr(owner, name) for name in _ARGUMENTS}
    file = given["config_file"]
    return {**given, "config_file": None if file is None else os.fspath(file)}


class ClusterAccessMixin(BaseOperator):
    """An operator or sensor that reaches a cluster.

    Args:
        kubernetes_conn_id: Airflow connection of type `kubernetes`. If `kubernetes_default` doesn't exist, the
            pod's ServiceAccount or kubectl's configuration is used. (templated)
        in_cluster: Use the ServiceAccount of the pod that Airflow runs in.
        config_file: Path of a kubeconfig, in place of the connection's; the triggerer needs the file, too.
            (templated)
        cluster_context: Context of the kubeconfig; unset, its current one. (templated)
    """

    template_fields: Sequence[str] = ("kubernetes_conn_id", "config_file", "cluster_context")

    def __init__(
        self,
        *,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        in_cluster: bool | None = None,
        config_file: str | None = None,
        cluster_context: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kubernetes_conn_id = kubernetes_conn_id
        self.in_cluster = in_cluster
        self.config_file = config_file
        self.cluster_context = cluster_context

    @cached_property
    def hook(self) -> "MXNetJobHook":
        from mxnet_provider.hooks.mxnet_job import MXNetJobHook  # noqa: PLC0415 - not where a DAG is parsed

        return MXNetJobHook(**connection_of(self))
