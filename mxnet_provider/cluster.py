"""How the tasks of this provider reach their cluster: the hook that they all make of the same four arguments."""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job import MXNetJobHook


class ReachesCluster:
    """An operator or sensor with the arguments of a connection to a cluster."""

    kubernetes_conn_id: str
    in_cluster: bool | None
    config_file: str | None
    cluster_context: str | None

    @cached_property
    def hook(self) -> "MXNetJobHook":
        """The hook for the cluster that the job runs in."""
        from mxnet_provider.hooks.mxnet_job import MXNetJobHook  # noqa: PLC0415 - not where a DAG is parsed

        return MXNetJobHook(
            kubernetes_conn_id=self.kubernetes_conn_id,
            in_cluster=self.in_cluster,
            config_file=self.config_file,
            cluster_context=self.cluster_context,
        )
