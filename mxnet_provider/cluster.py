"""Way from a task or trigger to its cluster: four arguments, which all of them have."""

import os
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

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


class ClusterAccessMixin:
    """An operator or sensor with the arguments of a connection to a cluster."""

    @property
    def connection(self) -> ClusterConnection:
        """The connection to the cluster that the job runs in."""
        return ClusterConnection.of(self)

    @cached_property
    def hook(self) -> "MXNetJobHook":
        """The hook for the cluster that the job runs in."""
        from mxnet_provider.hooks.mxnet_job import MXNetJobHook  # noqa: PLC0415 - not where a DAG is parsed

        return MXNetJobHook(**self.connection.arguments())
