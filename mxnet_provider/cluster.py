"""Way from a task or trigger to its cluster: four arguments, which all of them have."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from airflow.providers.common.compat.sdk import BaseOperator

from mxnet_provider.options import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job import MXNetJobHook


@dataclass(frozen=True, kw_only=True)
class ClusterConnection:
    """Arguments of both hooks, which say where the API server is and as whom it is asked."""

    kubernetes_conn_id: str | None = DEFAULT_CONNECTION
    """Connection of type `kubernetes`."""
    in_cluster: bool | None = None
    """Whether to use the service account of the pod that Airflow runs in."""
    config_file: str | None = None
    """Path of a kubeconfig, in place of the connection's."""
    cluster_context: str | None = None
    """A context of the kubeconfig."""

    @classmethod
    def of(cls, owner: object) -> Self:
        """Return the connection of an operator, sensor or trigger, which has each argument as an attribute."""
        given = {each.name: getattr(owner, each.name) for each in fields(cls)}
        file = given["config_file"]
        return cls(**{**given, "config_file": None if file is None else os.fspath(file)})

    def arguments(self) -> dict[str, Any]:
        """Return what the hooks and triggers take."""
        return asdict(self)


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

    @property
    def connection(self) -> ClusterConnection:
        """The connection to the cluster that the job runs in."""
        return ClusterConnection.of(self)

    @cached_property
    def hook(self) -> "MXNetJobHook":
        """The hook for the cluster that the job runs in."""
        from mxnet_provider.hooks.mxnet_job import MXNetJobHook  # noqa: PLC0415 - not where a DAG is parsed

        return MXNetJobHook(**self.connection.arguments())
