"""The hook through which Airflow's workers create, watch and delete MXJobs and read their logs."""

import asyncio
import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import tenacity
from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from mxnet_operator.api import names
from mxnet_operator.api.bundled_objects import PLURALS
from mxnet_operator.readers.pods import is_owned_by
from mxnet_provider.hooks import answers
from mxnet_provider.hooks.api_errors import is_transient, reason
from mxnet_provider.hooks.defined_connection import require_undefined
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.job import kill
from mxnet_provider.job.completion import Completion
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.options import WaitOptions
from mxnet_provider.replica_logs import ReplicaLogs
from mxnet_provider.watch import JobWatch, run_in_thread

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LOG_TIMEOUT: Final = (10, 300)
"""Seconds to connect, and without a byte before a log is asked for anew (a dead connection is silent too)."""
_CLIENTS: Final = ("api_client", "core_v1_client", "custom_object_client", "conn_extras")
_TEXT_FOR_TRUTH: Final = 'Text counts as true: in the extra as JSON, write "in_cluster": false, or leave it out.'
_METHODS: Final = {kind: re.sub(r"\B[A-Z]", r"_\g<0>", kind).lower() for kind in PLURALS}
"""Kinds as the methods of the Kubernetes client name them."""

T = TypeVar("T")

_through_short_outages = tenacity.retry(
    retry=tenacity.retry_if_exception(is_transient),
    wait=tenacity.wait_random_exponential(multiplier=0.5, max=15),
    stop=tenacity.stop_after_delay(120),
    reraise=True,
)


def _with_fresh_credentials(call: Callable[..., T]) -> Callable[..., T]:
    """Read the credentials anew and ask once more where the server no longer knows us (401), or we no longer trust it.

    Tokens rotate, and so do a cluster's certificate authorities.
    """

    @functools.wraps(call)
    def wrapped(self: "MXNetJobHook", *args: Any, **kwargs: Any) -> T:
        try:
            return call(self, *args, **kwargs)
        except ApiException as e:
            if e.status == 401:
                self.log.info("The API server no longer accepts the credentials; reading them anew.")
            elif _is_distrusted(e):
                self.log.info("No trusted connection to the API server; reading the credentials anew: %s", e.reason)
            else:
                raise
            self.configuration(anew=True)
            return call(self, *args, **kwargs)

    return wrapped


def _is_distrusted(error: ApiException) -> bool:
    """Whether TLS failed, as the Kubernetes client words it: there was no answer at all."""
    return error.status == 0 and str(error.reason).startswith("SSLError")


class MXNetJobHook(KubernetesHook):
    """MXJobs of one cluster, over a connection of type `kubernetes`.

    Jobs and pods are the API server's JSON as dicts. Every call rides out two minutes of an unreachable or
    overloaded API server and a rotated token, and raises `kubernetes.client.ApiException` for what the server rejects.

    Args:
        args: As for Airflow's KubernetesHook.
        kwargs: As for Airflow's KubernetesHook: `kubernetes_conn_id`, `in_cluster`, `config_file`,
            `cluster_context` and so on.
    """

    @classmethod
    def get_connection(cls, conn_id: str) -> Any:
        """Return the connection as Airflow's hook does, unless Airflow could not be asked for it.

        Raises:
            AirflowUnreachableError: so it is.
        """
        try:
            found = super().get_connection(conn_id)
        except AirflowNotFoundException:
            require_undefined(conn_id)
            raise
        if not found.extra:
            require_undefined(conn_id)
        return found

    def get_conn(self) -> client.ApiClient:
        """Return Airflow's client without urllib3's own retries.

        They sleep for as long as a Retry-After asks, be it a year, and write three warnings for each request of an
        outage into the task's log. Every call is tried again here.
        """
        try:
            connection = super().get_conn()
        except AirflowException as e:
            raise AirflowException(f"Connection {self.conn_id}: {e} {_TEXT_FOR_TRUTH}") from e
        connection.rest_client.pool_manager.connection_pool_kw["retries"] = False
        return connection

    @_through_short_outages
    def stated_namespace(self) -> str | None:
        """Return the connection's namespace; None where it has none."""
        return str(self.get_namespace() or "") or None

    @_through_short_outages
    def default_namespace(self) -> str:
        """Return the connection's namespace, else the one that Airflow's own pod runs in, else `default`."""
        if namespace := self.stated_namespace():
            return namespace
        if self.is_in_cluster and _SERVICE_ACCOUNT_NAMESPACE.exists():
            return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="ascii").strip()
        return self.DEFAULT_NAMESPACE

    @_through_short_outages
    @_with_fresh_credentials
    def create_job(self, manifest: Mapping[str, Any], plural: str = names.PLURAL) -> dict[str, Any]:
        """Create the job in the namespace that its metadata names, and return it with its uid.

        A creation that met a quota in the middle of being counted (409 Conflict) is tried again; one of a name that
        exists is rejected with 409 AlreadyExists.
        """
        ref = JobRef.of(manifest, plural)
        for attempt in range(5):
            try:
                created = self._jobs.create_namespaced_custom_object(
                    ref.group, ref.version, ref.namespace, ref.plural, dict(manifest)
                )
                return answers.object_of(created)
            except ApiException as e:
                if reason(e) != "Conflict" or attempt == 4:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @_through_short_outages
    @_with_fresh_credentials
    def apply_object(self, manifest: Mapping[str, Any], namespace: str) -> bool:
        """Create an object of `bundled_objects.PLURALS`, or patch the one that exists; return whether it is new."""
        kind, name = _METHODS[manifest["kind"]], manifest["metadata"]["name"]
        api, body = self.core_v1_client, dict(manifest)
        try:
            getattr(api, f"create_namespaced_{kind}")(namespace, body, _preload_content=False)
        except ApiException as e:
            if reason(e) != "AlreadyExists":
                raise
            getattr(api, f"patch_namespaced_{kind}")(name, namespace, body, _preload_content=False)
            return False
        return True

    @_through_short_outages
    def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        """Return the job that has the name, or None; whether it is the one is for its uid to say."""
        return self.get_job_once(ref)

    @_with_fresh_credentials
    def get_job_once(self, ref: JobRef, *, timeout: float | None = None) -> dict[str, Any] | None:
        """Return what `get_job` does, without trying again where the API server does not answer within `timeout` s."""
        with _none_if_missing():
            found = self._jobs.get_namespaced_custom_object(
                ref.group, ref.version, ref.namespace, ref.plural, ref.name, _request_timeout=timeout
            )
            return answers.object_of(found)
        return None

    @_through_short_outages
    @_with_fresh_credentials
    def list_jobs(self, like: JobRef, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a reference's kind and namespace that a label selector finds."""
        found = self._jobs.list_namespaced_custom_object(
            like.group, like.version, like.namespace, like.plural, label_selector=selector
        )
        return answers.items_of(found)

    @_through_short_outages
    @_with_fresh_credentials
    def delete_job(
        self, ref: JobRef, *, propagation_policy: str = "Foreground", resource_version: str | None = None
    ) -> bool:
        """Delete the job if it still is the one with this uid, and of this version where one is given.

        Its pods and Services go with it, by the cluster's garbage collection. Returns whether it was deleted.
        """
        only = client.V1Preconditions(uid=ref.uid, resource_version=resource_version)
        options = client.V1DeleteOptions(preconditions=only, propagation_policy=propagation_policy)
        return self._unless_gone(
            lambda: self._jobs.delete_namespaced_custom_object(
                ref.group, ref.version, ref.namespace, ref.plural, ref.name, body=options
            )
        )

    @_through_short_outages
    @_with_fresh_credentials
    def patch_job(self, ref: JobRef, patch: Mapping[str, Any]) -> bool:
        """Merge a patch that names a resourceVersion; returns False where the job has changed since, or is gone."""
        return self._unless_gone(
            lambda: self._jobs.patch_namespaced_custom_object(
                ref.group, ref.version, ref.namespace, ref.plural, ref.name, dict(patch)
            )
        )

    @_through_short_outages
    @_with_fresh_credentials
    def may_patch(self, ref: JobRef) -> bool:
        """Whether the account may patch jobs; to be asked of a name that does not exist yet.

        Rights are checked before the object is: without the right that is answered 403, with it 404.
        """
        try:
            self._jobs.patch_namespaced_custom_object(
                ref.group, ref.version, ref.namespace, ref.plural, ref.name, {"metadata": {}}
            )
        except ApiException as e:
            if e.status not in (403, 404):
                raise
            return bool(e.status != 403)
        return True

    def end_job(self, ref: JobRef, decide: kill.Decide, *, propagation_policy: str = "Foreground") -> kill.Ending:
        """Do to the job what `decide` makes of it as it is, again for as long as it changes in between."""
        for _ in range(kill.ATTEMPTS):
            match decide(self.get_job(ref)):
                case kill.Leave(why):
                    return kill.Ending(done=False, why=why)
                case kill.Deletion(version):
                    done = self.delete_job(ref, propagation_policy=propagation_policy, resource_version=version)
                case patch:
                    done = self.patch_job(ref, patch)
            if done:
                return kill.Ending(done=True)
        return kill.Ending(done=False, why="it kept changing")

    @_through_short_outages
    @_with_fresh_credentials
    def replica_pods(self, ref: JobRef) -> list[dict[str, Any]]:
        """Return the pods that the job owns, as dicts."""
        response = self.core_v1_client.list_namespaced_pod(
            ref.namespace, label_selector=f"{names.LABEL_JOB_NAME}={ref.name}", _preload_content=False
        )
        pods = answers.items_of(answers.decoded(response.data))
        return [pod for pod in pods if is_owned_by(pod, ref.uid)]

    @_through_short_outages
    @_with_fresh_credentials
    def get_replica_pod(self, name: str, namespace: str) -> dict[str, Any] | None:
        """One pod as a dict, or None where it is gone."""
        with _none_if_missing():
            response = self.core_v1_client.read_namespaced_pod(name, namespace, _preload_content=False)
            return answers.object_of(answers.decoded(response.data))
        return None

    @_through_short_outages
    @_with_fresh_credentials
    def warnings(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """Return the Warning events about objects of this name, the oldest first."""
        response = self.core_v1_client.list_namespaced_event(
            namespace, field_selector=f"involvedObject.name={name}", _preload_content=False
        )
        events = answers.items_of(answers.decoded(response.data))
        return sorted(
            (event for event in events if event.get("type") == "Warning"),
            key=lambda event: event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or "",
        )

    @_with_fresh_credentials
    def open_log(
        self,
        pod: str,
        namespace: str,
        *,
        follow: bool = False,
        since: str | None = None,
        tail_lines: int | None = None,
    ) -> "contextlib.AbstractContextManager[Iterable[bytes]] | None":
        """Return the log of the pod's `mxnet` container as a stream of bytes, each line with its timestamp.

        Args:
            pod: The pod's name.
            namespace: The pod's namespace.
            follow: Whether to go on until the container ends.
            since: An RFC 3339 time in whole seconds; earlier lines are left out.
            tail_lines: How many of the last lines to read; None for all.

        Returns:
            A context manager around the stream, or None where the pod is gone.
        """
        # Not core_v1_client.read_namespaced_pod_log: it can't pass sinceTime, without which a stream
        # can only be resumed by comparing this machine's clock with the node's.
        query = {"container": names.CONTAINER, "timestamps": "true", "follow": str(follow).lower()}
        if since is not None:
            query["sinceTime"] = since
        if tail_lines is not None:
            query["tailLines"] = str(tail_lines)
        with _none_if_missing():
            response = self.api_client.call_api(
                "/api/v1/namespaces/{namespace}/pods/{name}/log",
                "GET",
                path_params={"namespace": namespace, "name": pod},
                query_params=list(query.items()),
                header_params={"Accept": "*/*"},
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_LOG_TIMEOUT,
            )
            return _stream_of(response)
        return None

    def job_client(self) -> AsyncJobClient:
        """Return an asynchronous client of the same cluster, to be entered."""
        return _WorkerJobClient(self)

    def configuration(self, *, anew: bool) -> client.Configuration:
        """Return the cluster's address and credentials; `anew` once they are no longer accepted."""
        if anew:
            for name in _CLIENTS:
                self.__dict__.pop(name, None)
        return self.api_client.configuration

    def wait(
        self,
        ref: JobRef,
        *,
        poll_interval: float,
        startup_timeout: float | None = None,
        api_outage_tolerance: float = WaitOptions.api_outage_tolerance,
        stop: threading.Event | None = None,
    ) -> tuple[Completion, dict[str, Any] | None] | None:
        """Wait until the job need not be waited for any more.

        Args:
            ref: The job: the one with this uid is waited for.
            poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
            startup_timeout: For how many seconds the job may wait for its pods to run.
            api_outage_tolerance: For how many seconds the API server may be away.
            stop: Ends the waiting when set; then None is returned.

        Returns:
            The completion, and the job as it was then.

        Raises:
            MXNetJobUnreachableError: The API server was away for too long.
        """
        waiting = WaitOptions(
            poll_interval=poll_interval, startup_timeout=startup_timeout, api_outage_tolerance=api_outage_tolerance
        )

        async def wait() -> tuple[Completion, dict[str, Any] | None] | None:
            async with self.job_client() as jobs:
                logs = ReplicaLogs(jobs, ref, (), self.log, Metrics({}, self.log.warning))
                watch = JobWatch(jobs, ref, waiting, logs, self.log)
                await watch.run_or_raise()
                return None if watch.found is None else (watch.found, watch.job)

        return run_in_thread(wait(), stop or threading.Event())

    @property
    def _jobs(self) -> Any:
        return self.custom_object_client

    @staticmethod
    def _unless_gone(call: Callable[[], Any]) -> bool:
        try:
            answers.confirmed(call())
        except ApiException as e:
            if e.status in (404, 409):  # gone, or another job by now
                return False
            raise
        return True


class _WorkerJobClient(AsyncJobClient):
    """Client with the configuration that Airflow's own hook yields."""

    def __init__(self, hook: MXNetJobHook) -> None:
        super().__init__(say=hook.log.info)
        self._hook = hook

    async def _configuration(self, *, anew: bool) -> client.Configuration:
        return await asyncio.to_thread(partial(self._hook.configuration, anew=anew))


@contextlib.contextmanager
def _none_if_missing() -> Iterator[None]:
    try:
        yield
    except ApiException as e:
        if e.status != 404:
            raise


@contextlib.contextmanager
def _stream_of(response: Any) -> Iterator[Iterable[bytes]]:
    try:
        yield response.stream()
    finally:
        response.close()  # a followed log has no end of its own: not fit for the connection pool
        response.release_conn()
