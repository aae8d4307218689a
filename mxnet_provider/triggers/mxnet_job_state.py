"""The trigger that waits until an MXJob of a given name is in one of some states; it owns nothing and ends nothing."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from mxnet_operator.api import names
from mxnet_provider.cluster import ClusterConnection
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.sensor_state import SensorEvent, settled
from mxnet_provider.options import DEFAULT_CONNECTION
from mxnet_provider.triggers.arguments import serialized
from mxnet_provider.triggers.connection import connected, storable_errors
from mxnet_provider.watch import until_settled

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook


class MXNetJobStateTrigger(BaseTrigger):
    """Wait until the MXJob of a name is in one of some states.

    Arguments that a later release adds have defaults, none is ever taken away, and no default ever changes.

    Args:
        name: The job's name.
        namespace: The job's namespace; None: the connection's, else `default`.
        target_states: States that are waited for.
        fail_states: States in which there is nothing to wait for.
        missing_ok: Whether a job that is not there is waited for too.
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
        api_outage_tolerance: For how many seconds the API server may be away.
        api_version: The job's apiVersion.
        kind: The job's kind, for messages.
        plural: The resource's name in the API's paths.
        kubernetes_conn_id: Connection of type `kubernetes`.
        in_cluster: Use the service account of the triggerer's pod.
        config_file: Path of a kubeconfig on the triggerer.
        cluster_context: A context of the kubeconfig.
    """

    def __init__(
        self,
        *,
        name: str,
        namespace: str,
        target_states: Sequence[str],
        fail_states: Sequence[str] = (),
        missing_ok: bool = False,
        poll_interval: float = 60.0,
        api_outage_tolerance: float = 600.0,
        api_version: str = names.API_VERSION,
        kind: str = names.KIND,
        plural: str = names.PLURAL,
        kubernetes_conn_id: str | None = DEFAULT_CONNECTION,
        in_cluster: bool | None = None,
        config_file: str | None = None,
        cluster_context: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ref = JobRef(name=name, namespace=namespace, api_version=api_version, kind=kind, plural=plural)
        self.target_states = list(target_states)
        self.fail_states = list(fail_states)
        self.missing_ok = missing_ok
        self.poll_interval = poll_interval
        self.api_outage_tolerance = api_outage_tolerance
        self.kubernetes_conn_id = kubernetes_conn_id
        self.in_cluster = in_cluster
        self.config_file = config_file
        self.cluster_context = cluster_context

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and the arguments from which Airflow makes the trigger again."""
        return serialized(self, MXNetJobStateTrigger.__init__)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and send what was seen."""
        connection = ClusterConnection.of(self)
        with storable_errors(self.log):
            async with connected(connection, say=self.log.info, tolerance=self.api_outage_tolerance) as hook:
                decision = await self._watch(hook)
        yield TriggerEvent(decision.payload())  # type: ignore[no-untyped-call]

    async def _watch(self, hook: "MXNetJobAsyncHook") -> SensorEvent:
        settle = partial(
            settled, target_states=self.target_states, fail_states=self.fail_states, missing_ok=self.missing_ok
        )
        return await until_settled(
            hook,
            self.ref,
            self.log,
            settle,
            poll_interval=self.poll_interval,
            api_outage_tolerance=self.api_outage_tolerance,
        )
