"""The hook through which Airflow's workers create, watch and delete MXJobs and read their logs."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from airflow.providers.common.compat.sdk import AirflowException
from kubernetes import client

from mxnet_operator.client.blocking import blocking
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.job_events import job_events
from mxnet_operator.client.outage import Outage, Retries
from mxnet_operator.client.pod_log import PodLog
from mxnet_provider.hooks.defined_connection import DefinedConnectionHook
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.hooks.kube_configuration import TEXT_FOR_TRUTH
from mxnet_provider.job.polling import JITTER
from mxnet_provider.watch import run_in_thread

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

_OUTAGE_SECONDS: Final = 120.0
_LONGEST_PAUSE: Final = 15.0

T = TypeVar("T")


class MXNetJobHook(DefinedConnectionHook):
    """MXJobs of one cluster, over a connection of type `kubernetes`.

    Jobs and pods are the API server's JSON as dicts. Every call rides out two minutes of an unreachable API server, an
    overloaded one (429) and a rotated token, and raises `mxnet_operator.kube.errors.ApiError` (with the HTTP status as
    `code`) for what the server rejects.

    Args:
        args: As for Airflow's KubernetesHook.
        kwargs: As for Airflow's KubernetesHook: `kubernetes_conn_id`, `in_cluster`, `config_file`,
            `cluster_context` and so on.
    """

    def get_conn(self) -> client.ApiClient:
        """Return Airflow's client; what is wrong with the connection is said with its id."""
        try:
            return super().get_conn()
        except AirflowException as e:
            raise AirflowException(f"Connection {self.conn_id}: {e} {TEXT_FOR_TRUTH}") from e

    def stated_namespace(self) -> str | None:
        return str(self._through_outage(partial(asyncio.to_thread, self.get_namespace)) or "") or None

    def default_namespace(self) -> str:
        """Return the connection's namespace, else the one that Airflow's own pod runs in, else `default`."""
        if namespace := self.stated_namespace():
            return namespace
        if self.is_in_cluster and _SERVICE_ACCOUNT_NAMESPACE.exists():
            return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="ascii").strip()
        return self.DEFAULT_NAMESPACE

    # Airflow's hook has two methods of these names, whose types mypy would take for those of an assignment.
    def create_job(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create the job, again where a quota was just being counted (409 Conflict), and return it with its uid."""
        return self._ask(lambda jobs: jobs.create_job(manifest))

    def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        """Return the job that has the name, or None; whether it is the one is for its uid to say."""
        return self._ask(lambda jobs: jobs.get_job(ref))

    apply_object = blocking(AsyncJobClient.apply_object)
    list_jobs = blocking(AsyncJobClient.list_jobs)
    delete_job = blocking(AsyncJobClient.delete_job)
    patch_job = blocking(AsyncJobClient.patch_job)
    may_patch = blocking(AsyncJobClient.may_patch)
    end_job = blocking(AsyncJobClient.end_job)
    replica_pods = blocking(AsyncJobClient.replica_pods)

    def get_job_once(self, ref: JobRef, *, timeout: float | None = None) -> dict[str, Any] | None:
        """Return what `get_job` does, without trying again where the API server does not answer within `timeout` s."""

        async def look(jobs: AsyncJobClient) -> dict[str, Any] | None:
            async with asyncio.timeout(timeout):
                return await jobs.get_job(ref)

        return run_in_thread(self._ask_once(look))

    def warnings(self, ref: JobRef) -> list[dict[str, Any]]:
        """Return the Warning events about the job and its pods, the oldest first."""

        async def read(jobs: AsyncJobClient) -> list[dict[str, Any]]:
            job = await jobs.get_job(ref)
            return [] if job is None or job["metadata"]["uid"] != ref.uid else await job_events(jobs.api, job)

        return [event for event in self._ask(read) if event.get("type") == "Warning"]

    def last_lines(self, pod: str, namespace: str, lines: int) -> list[str]:
        """Return the last lines of the pod's `mxnet` container so far; none where the pod is gone."""

        async def read(jobs: AsyncJobClient) -> list[str]:
            return [line async for line in PodLog(jobs.api, namespace, pod).so_far(tail=lines)]

        return self._ask(read)

    def job_client(self) -> AsyncJobClient:
        """Return an asynchronous client of the same cluster, to be entered."""
        return AsyncJobClient(self, self.log.info)

    def _ask(self, call: Callable[[AsyncJobClient], Coroutine[Any, Any, T]]) -> T:
        return self._through_outage(partial(self._ask_once, call))

    async def _ask_once(self, call: Callable[[AsyncJobClient], Coroutine[Any, Any, T]]) -> T:
        async with self.job_client() as jobs:
            return await call(jobs)

    @staticmethod
    def _through_outage(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        retries = Retries(Outage(_OUTAGE_SECONDS), longest=_LONGEST_PAUSE, jitter=JITTER)
        return run_in_thread(retries.until_answered(work))
