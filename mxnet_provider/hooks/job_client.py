"""Requests about MXJobs over one asynchronous connection, wherever its credentials come from."""

import abc
import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar
from urllib.parse import quote

import aiohttp
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from mxnet_operator.api import names
from mxnet_operator.api.bundled_objects import PLURALS
from mxnet_operator.readers.pods import is_owned_by
from mxnet_provider.hooks import answers
from mxnet_provider.hooks.api_connection import ApiConnection, open_connection
from mxnet_provider.hooks.api_errors import reason
from mxnet_provider.job import kill
from mxnet_provider.job.job_ref import JobRef

_PAGE: Final = 500
_COUNTINGS: Final = 5
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

T = TypeVar("T")


def _with_fresh_credentials(
    call: "Callable[..., Awaitable[T]]",
) -> "Callable[..., Awaitable[T]]":
    """Read the credentials anew and ask once more where the server no longer knows us (401), or we no longer trust it.

    Tokens rotate, and so do a cluster's certificate authorities.
    """

    @functools.wraps(call)
    async def wrapped(self: "AsyncJobClient", *args: Any, **kwargs: Any) -> T:
        try:
            return await call(self, *args, **kwargs)
        except (ApiException, aiohttp.ClientSSLError) as e:
            if isinstance(e, ApiException) and e.status != 401:
                raise
            await self._reconnect(e)
            return await call(self, *args, **kwargs)

    return wrapped


class AsyncJobClient(abc.ABC):
    """MXJobs of one cluster, for use as an asynchronous context.

    Calls don't wait out an outage: the poller does. They raise `kubernetes.client.ApiException` for what the server
    rejects, and `aiohttp.ClientError`, ConnectionError or TimeoutError where it can't be reached or answers with
    something else.
    """

    user_agent: ClassVar[str]
    """What asks, in the audit log of the API server: a task or the trigger that waits for it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        """Called with what a user should know about the connection."""
        self._held = contextlib.AsyncExitStack()
        self._open: ApiConnection | None = None

    @abc.abstractmethod
    async def _configuration(self, *, anew: bool) -> client.Configuration:
        """Return the cluster's address and credentials; `anew` once they are no longer accepted."""

    async def __aenter__(self) -> Self:
        await self._connect(await self._configuration(anew=False))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._open = None
        await self._held.aclose()

    @_with_fresh_credentials
    async def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        """Return the job that has the name, or None; whether it is the one is for its uid to say."""
        try:
            return answers.object_of(await self._connection.request("GET", ref.path))
        except ApiException as e:
            if e.status == 404:
                return None
            raise

    @_with_fresh_credentials
    async def create_job(self, manifest: Mapping[str, Any], plural: str = names.PLURAL) -> dict[str, Any]:
        """Create the job, again where a quota was just being counted (409 Conflict), and return it with its uid."""
        ref = JobRef.of(manifest, plural)
        for attempt in range(_COUNTINGS):
            try:
                return answers.object_of(await self._connection.request("POST", ref.collection, body=manifest))
            except ApiException as e:
                if reason(e) != "Conflict" or attempt == _COUNTINGS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @_with_fresh_credentials
    async def apply_object(self, manifest: Mapping[str, Any], namespace: str) -> bool:
        """Create an object of `bundled_objects.PLURALS`, or patch the one that exists; return whether it is new."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/{PLURALS[manifest['kind']]}"
        try:
            await self._connection.request("POST", path, body=manifest)
        except ApiException as e:
            if reason(e) != "AlreadyExists":
                raise
            named = f"{path}/{quote(manifest['metadata']['name'], safe='')}"
            await self._connection.request("PATCH", named, body=manifest, content_type=_STRATEGIC_MERGE_PATCH)
            return False
        return True

    @_with_fresh_credentials
    async def list_jobs(self, like: JobRef, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a reference's kind and namespace that a label selector finds."""
        found = await self._connection.request("GET", like.collection, params={"labelSelector": selector})
        return answers.items_of(found)

    @_with_fresh_credentials
    async def all_jobs(self, namespace: str | None, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a namespace, or of all, that a label selector finds, read page by page."""
        like = JobRef(name="", namespace=namespace or "")
        path = like.collection if namespace else f"/apis/{names.API_VERSION}/{names.PLURAL}"
        params, found = {"labelSelector": selector, "limit": str(_PAGE)}, []
        while True:
            page = await self._connection.request("GET", path, params=params)
            found += answers.items_of(page)
            if not (following := page["metadata"].get("continue")):
                return found
            params["continue"] = following

    @_with_fresh_credentials
    async def may_patch(self, ref: JobRef) -> bool:
        """Whether the account may patch jobs; to be asked of a name that does not exist yet.

        Rights are checked before the object is: without the right that is answered 403, with it 404.
        """
        try:
            await self._connection.request("PATCH", ref.path, body={"metadata": {}}, content_type=_MERGE_PATCH)
        except ApiException as e:
            if e.status not in (403, 404):
                raise
            return bool(e.status != 403)
        return True

    @_with_fresh_credentials
    async def events(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """Return the events about objects of this name."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        found = await self._connection.request("GET", path, params={"fieldSelector": f"involvedObject.name={name}"})
        return answers.items_of(found)

    @_with_fresh_credentials
    async def delete_job(
        self, ref: JobRef, *, propagation_policy: str = "Foreground", resource_version: str | None = None
    ) -> bool:
        """Delete the job if it still is the one with this uid, and of this version; returns whether it was deleted."""
        only = {"uid": ref.uid} | ({} if resource_version is None else {"resourceVersion": resource_version})
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": only,
            "propagationPolicy": propagation_policy,
        }
        return await self._unless_gone(self._connection.request("DELETE", ref.path, body=body))

    @_with_fresh_credentials
    async def patch_job(self, ref: JobRef, patch: Mapping[str, Any]) -> bool:
        """Merge a patch that names a resourceVersion; returns False where the job has changed since, or is gone."""
        return await self._unless_gone(
            self._connection.request("PATCH", ref.path, body=patch, content_type=_MERGE_PATCH)
        )

    async def end_job(self, ref: JobRef, decide: kill.Decide, *, propagation_policy: str = "Foreground") -> kill.Ending:
        """Do to the job what `decide` makes of it as it is, again for as long as it changes in between."""
        for _ in range(kill.ATTEMPTS):
            match decide(await self.get_job(ref)):
                case kill.Leave(why):
                    return kill.Ending(done=False, why=why)
                case kill.Deletion(version):
                    done = await self.delete_job(ref, propagation_policy=propagation_policy, resource_version=version)
                case patch:
                    done = await self.patch_job(ref, patch)
            if done:
                return kill.Ending(done=True)
        return kill.Ending(done=False, why="it kept changing")

    @_with_fresh_credentials
    async def replica_pods(self, ref: JobRef) -> list[dict[str, Any]]:
        """Return the pods that the job owns."""
        found = await self._connection.request(
            "GET",
            _pods(ref.namespace),
            params={"labelSelector": f"{names.LABEL_JOB_NAME}={ref.name}"},
        )
        return [pod for pod in answers.items_of(found) if is_owned_by(pod, ref.uid)]

    @_with_fresh_credentials
    async def get_replica_pod(self, name: str, namespace: str) -> dict[str, Any] | None:
        """Return one pod, or None where it is gone."""
        try:
            return answers.object_of(await self._connection.request("GET", _pod(name, namespace)))
        except ApiException as e:
            if e.status == 404:
                return None
            raise

    async def read_log(
        self,
        pod: str,
        namespace: str,
        *,
        since: str | None,
        tail_lines: int | None = None,
        follow: bool = False,
        idle_seconds: float | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Read the log of the pod's `mxnet` container from an RFC 3339 time on, or its last lines, with timestamps.

        One that is followed goes on until the container has ended, or is silent for `idle_seconds`.
        """
        params = {"container": names.CONTAINER, "timestamps": "true"}
        if follow:
            params["follow"] = "true"
        if since is not None:
            params["sinceTime"] = since
        if tail_lines is not None:
            params["tailLines"] = str(tail_lines)
        async for chunk in self._connection.stream(f"{_pod(pod, namespace)}/log", params, idle_seconds):
            yield chunk

    @property
    def _connection(self) -> ApiConnection:
        if self._open is None:
            raise RuntimeError("the client is used within `async with`")
        return self._open

    async def _connect(self, configuration: client.Configuration) -> None:
        self._open = await self._held.enter_async_context(open_connection(configuration, self.user_agent))

    async def _reconnect(self, because: Exception) -> None:
        if isinstance(because, ApiException):
            self._say("The API server no longer accepts the credentials; reading them anew.")
        else:
            self._say(f"No trusted connection to the API server; reading the credentials anew: {because}")
        configuration = await self._configuration(anew=True)
        await self._held.aclose()
        await self._connect(configuration)

    @staticmethod
    async def _unless_gone(answer: Awaitable[Any]) -> bool:
        try:
            answers.confirmed(await answer)
        except ApiException as e:
            if e.status in (404, 409):  # gone, or another job by now
                return False
            raise
        return True


def _pod(name: str, namespace: str) -> str:
    return f"{_pods(namespace)}/{quote(name, safe='')}"


def _pods(namespace: str) -> str:
    """Return the path of a namespace's pods on the API server."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
