"""The hook through which Airflow's workers create, watch and delete MXJobs and read their logs."""

import contextlib
import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import tenacity
from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_provider.exceptions import MXNetJobDeletedError

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LOG_TIMEOUT: Final = (10, 300)
"""Seconds to connect, and without a byte before a log is asked for anew (a dead connection is silent too)."""


def _is_transient(e: BaseException) -> bool:
    # Not 409, unlike Airflow's own list: here it means "already exists" or "another uid", and stays so.
    if isinstance(e, ApiException):
        return e.status == 429 or (e.status or 0) >= 500
    return isinstance(e, HTTPError)


_through_short_outages = tenacity.retry(
    retry=tenacity.retry_if_exception(_is_transient),
    wait=tenacity.wait_random_exponential(multiplier=0.5, max=15),
    stop=tenacity.stop_after_delay(120),
    reraise=True,
)


class MXNetJobHook(KubernetesHook):
    """MXJobs of one cluster, over a connection of type `kubernetes`.

    Jobs and pods are the API server's JSON as dicts. Every call rides out two minutes of an unreachable or
    overloaded API server, and raises `kubernetes.client.ApiException` for what the server refuses.

    Args:
        args: As for Airflow's KubernetesHook.
        kwargs: As for Airflow's KubernetesHook: `kubernetes_conn_id`, `in_cluster`, `config_file`,
            `cluster_context` and so on.
    """

    def default_namespace(self) -> str:
        """The connection's namespace, else the one that Airflow's own pod runs in, else `default`."""
        if namespace := self.get_namespace():
            return str(namespace)
        if self.is_in_cluster and _SERVICE_ACCOUNT_NAMESPACE.exists():
            return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="ascii").strip()
        return self.DEFAULT_NAMESPACE

    @_through_short_outages
    def create_job(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create the job in the namespace that its metadata names, and return it with its uid."""
        job: dict[str, Any] = self._jobs.create_namespaced_custom_object(
            names.GROUP, names.VERSION, manifest["metadata"]["namespace"], names.PLURAL, dict(manifest)
        )
        return job

    @_through_short_outages
    def get_job(self, name: str, namespace: str) -> dict[str, Any] | None:
        """The job, or None where there is none of that name."""
        with _none_if_missing():
            job: dict[str, Any] = self._jobs.get_namespaced_custom_object(
                names.GROUP, names.VERSION, namespace, names.PLURAL, name
            )
            return job
        return None

    @_through_short_outages
    def delete_job(self, name: str, namespace: str, uid: str) -> bool:
        """Delete the job if it still is the one with this uid; returns whether there was something to delete.

        Its pods and Services go with it, by the cluster's garbage collection.
        """
        options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid), propagation_policy="Background")
        try:
            self._jobs.delete_namespaced_custom_object(
                names.GROUP, names.VERSION, namespace, names.PLURAL, name, body=options
            )
        except ApiException as e:
            if e.status in (404, 409):  # gone, or another job by now
                return False
            raise
        return True

    @_through_short_outages
    def replica_pods(self, job: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The pods that the job owns, as dicts."""
        metadata = job["metadata"]
        response = self.core_v1_client.list_namespaced_pod(
            metadata["namespace"],
            label_selector=f"{names.LABEL_JOB_NAME}={metadata['name']}",
            _preload_content=False,
        )
        pods: list[dict[str, Any]] = json.loads(response.data)["items"]
        return [pod for pod in pods if _is_owned(pod, metadata["uid"])]

    @_through_short_outages
    def get_replica_pod(self, name: str, namespace: str) -> dict[str, Any] | None:
        """One pod as a dict, or None where it is gone."""
        with _none_if_missing():
            response = self.core_v1_client.read_namespaced_pod(name, namespace, _preload_content=False)
            pod: dict[str, Any] = json.loads(response.data)
            return pod
        return None

    def open_log(
        self,
        pod: str,
        namespace: str,
        *,
        follow: bool = False,
        since: str | None = None,
        tail_lines: int | None = None,
    ) -> "contextlib.AbstractContextManager[Iterable[bytes]] | None":
        """The log of the pod's `mxnet` container as a stream of bytes, each line with its timestamp.

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

    def wait(
        self,
        job: Mapping[str, Any],
        *,
        poll_interval: float,
        observe: Callable[[dict[str, Any]], None] = lambda _job: None,
        stop: threading.Event | None = None,
    ) -> dict[str, Any] | None:
        """Wait until the job is over, and return it as it then is.

        Args:
            job: The job as created or read: the one with this uid is waited for.
            poll_interval: Seconds between two looks, give or take a fifth, so that many tasks spread out.
            observe: Called with the job after every look at it.
            stop: Ends the waiting when set; then None is returned.

        Raises:
            MXNetJobDeletedError: The job is gone, or another has its name, and it was not over when last seen.
        """
        name, namespace, uid = (job["metadata"][key] for key in ("name", "namespace", "uid"))
        stop = stop or threading.Event()
        while not stop.is_set():
            current = self.get_job(name, namespace)
            if current is None or current["metadata"]["uid"] != uid:
                fate = "was deleted" if current is None else "was deleted, and another has its name,"
                raise MXNetJobDeletedError(f"MXJob {namespace}/{name} {fate} before it had finished.")
            observe(current)
            if job_state(current) in TERMINAL:
                return current
            stop.wait(poll_interval * random.uniform(0.8, 1.2))  # noqa: S311 - no secret depends on it
        return None

    @property
    def _jobs(self) -> Any:
        return self.custom_object_client


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


def _is_owned(pod: Mapping[str, Any], uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ())
