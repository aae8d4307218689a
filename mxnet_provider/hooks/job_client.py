"""Requests about MXJobs over one asynchronous connection, wherever its credentials come from."""

import abc
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final, Self
from urllib.parse import quote

import aiohttp
from kubernetes import client

from mxnet_operator.api import names
from mxnet_operator.api.bundled_objects import PLURALS
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.client import STRATEGIC_MERGE_PATCH, Client
from mxnet_operator.kube.credentials import Credentials
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.pods import is_owned_by
from mxnet_provider.hooks import kube_configuration
from mxnet_provider.job import kill
from mxnet_provider.job.job_ref import JobRef

_COUNTINGS: Final = 5
REPLY_SECONDS: Final = 30.0


class AsyncJobClient(abc.ABC):
    """MXJobs of one cluster, for use as an asynchronous context.

    Calls don't wait out an outage: the poller does. They raise `ApiError` for what the server rejects, and
    `ApiUnavailable` where it can't be reached or answers with something else (both of `mxnet_operator.kube.errors`).
    Credentials that the server no longer accepts, or authorities that no longer vouch for it, are read anew once.
    """

    user_agent: ClassVar[str]
    """What asks, in the audit log of the API server: a task or the trigger that waits for it."""
    connect_seconds: ClassVar[float] = 10.0
    """How long a request may wait for a connection."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        """Called with what a user should know about the connection."""
        self._held = contextlib.AsyncExitStack()
        self._open: Client | None = None

    @abc.abstractmethod
    async def _configuration(self, *, anew: bool) -> client.Configuration:
        """Return the cluster's address and credentials; `anew` once they are no longer accepted."""

    def _connector(self) -> contextlib.AbstractAsyncContextManager[aiohttp.TCPConnector | None]:
        """Return the connections to share with other clients; None for the client's own."""
        return contextlib.nullcontext()

    async def __aenter__(self) -> Self:
        credentials = await self._credentials(anew=False)
        # A task follows logs, each on a connection of its own.
        api = Client(
            credentials,
            connect_timeout=self.connect_seconds,
            request_timeout=REPLY_SECONDS,
            attempts=1,
            user_agent=self.user_agent,
            connector=await self._held.enter_async_context(self._connector()),
        )
        self._open = await self._held.enter_async_context(api)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._open = None
        await self._held.aclose()

    async def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        """Return the job that has the name, or None; whether it is the one is for its uid to say."""
        return await self._api.find(ref.path, shape=Stored)

    async def create_job(self, manifest: Mapping[str, Any], plural: str = names.PLURAL) -> dict[str, Any]:
        """Create the job, again where a quota was just being counted (409 Conflict), and return it with its uid."""
        ref = JobRef.of(manifest, plural)
        for attempt in range(_COUNTINGS):
            try:
                return await self._api.create(ref.collection, manifest)
            except ApiError as e:
                if e.reason != "Conflict" or attempt == _COUNTINGS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def apply_object(self, manifest: Mapping[str, Any], namespace: str) -> bool:
        """Create an object of `bundled_objects.PLURALS`, or patch the one that exists; return whether it is new."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/{PLURALS[manifest['kind']]}"
        try:
            await self._api.create(path, manifest)
        except ApiError as e:
            if e.reason != "AlreadyExists":
                raise
            named = f"{path}/{quote(manifest['metadata']['name'], safe='')}"
            await self._api.patch(named, manifest, STRATEGIC_MERGE_PATCH)
            return False
        return True

    async def list_jobs(self, like: JobRef, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a reference's kind and namespace that a label selector finds."""
        return await self._listed(like.collection, labelSelector=selector)

    async def all_jobs(self, namespace: str | None, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a namespace, or of all, that a label selector finds, read page by page."""
        like = JobRef(name="", namespace=namespace or "")
        path = like.collection if namespace else f"/apis/{names.API_VERSION}/{names.PLURAL}"
        return await self._listed(path, labelSelector=selector)

    async def may_patch(self, ref: JobRef) -> bool:
        """Whether the account may patch jobs; to be asked of a name that does not exist yet.

        Rights are checked before the object is: without the right that is answered 403, with it 404.
        """
        try:
            await self._api.patch(ref.path, {"metadata": {}})
        except ApiError as e:
            if e.code not in (403, 404):
                raise
            return e.code != 403
        return True

    async def events(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """Return the events about objects of this name."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        return await self._listed(path, fieldSelector=f"involvedObject.name={name}")

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
        return await self._unless_gone(self._api.delete(ref.path, body))

    async def patch_job(self, ref: JobRef, patch: Mapping[str, Any]) -> bool:
        """Merge a patch that names a resourceVersion; returns False where the job has changed since, or is gone."""
        return await self._unless_gone(self._api.patch(ref.path, patch))

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

    async def replica_pods(self, ref: JobRef) -> list[dict[str, Any]]:
        """Return the pods that the job owns."""
        found = await self._listed(_pods(ref.namespace), labelSelector=f"{names.LABEL_JOB_NAME}={ref.name}")
        return [pod for pod in found if is_owned_by(pod, ref.uid)]

    async def get_replica_pod(self, name: str, namespace: str) -> dict[str, Any] | None:
        """Return one pod, or None where it is gone."""
        return await self._api.find(_pod(name, namespace), shape=Stored)

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
        params: dict[str, str | int | bool] = {"container": names.CONTAINER, "timestamps": True}
        if follow:
            params["follow"] = True
        if since is not None:
            params["sinceTime"] = since
        if tail_lines is not None:
            params["tailLines"] = tail_lines
        idle = REPLY_SECONDS if idle_seconds is None else idle_seconds
        chunks = self._api.stream(f"{_pod(pod, namespace)}/log", params, idle_timeout=idle)
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                yield chunk

    @property
    def _api(self) -> Client:
        if self._open is None:
            raise RuntimeError("the client is used within `async with`")
        return self._open

    async def _credentials(self, *, anew: bool) -> Credentials:
        configuration = await self._configuration(anew=anew)
        return await kube_configuration.credentials(configuration, self._renewed)

    async def _renewed(self) -> Credentials:
        self._say("The API server no longer accepts the credentials, or is no longer trusted; reading them anew.")
        return await self._credentials(anew=True)

    async def _listed(self, path: str, **selector: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._api.list(path, selector))["items"]
        return found

    @staticmethod
    async def _unless_gone(write: Awaitable[Any]) -> bool:
        try:
            await write
        except ApiError as e:
            if e.code in (404, 409):  # gone, or another job by now
                return False
            raise
        return True


def _pod(name: str, namespace: str) -> str:
    return f"{_pods(namespace)}/{quote(name, safe='')}"


def _pods(namespace: str) -> str:
    """Return the path of a namespace's pods on the API server."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
