"""Requests about jobs, their pods and their logs, for `mxjob`, the Python client and Airflow's workers and triggers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.bundled_objects import PLURALS
from mxnet_operator.api.kinds import kind_of
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import PODS, Resource
from mxnet_operator.readers.pods import is_owned_by

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

ATTEMPTS: Final = 20
"""How often a job is read again that changes between being read and being ended."""
_COUNTINGS: Final = 5
"""How often a job is created anew where a quota was just being counted."""


class JobRef(msgspec.Struct, frozen=True, kw_only=True):
    """Reference to a job: its name, its uid, and its resource.

    The name finds it, and the uid says whether what was found is it. `uid` is empty until the job has been created.
    """

    name: str
    namespace: str
    uid: str = ""
    api_version: str = names.API_VERSION
    kind: str = names.KIND
    plural: str = names.PLURAL

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> "JobRef":
        metadata, api_version, kind = job["metadata"], job.get("apiVersion"), job.get("kind")
        known = kind_of(api_version, kind) if api_version and kind else None
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata.get("uid") or "",
            api_version=api_version or names.API_VERSION,
            kind=kind or names.KIND,
            plural=names.PLURAL if known is None else known.plural,
        )

    @property
    def resource(self) -> Resource:
        group, _, version = self.api_version.partition("/")
        return Resource(group, version, self.plural)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        """The path of all such jobs of its namespace on the API server."""
        return self.resource.path(self.namespace)

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)


class Deletion(msgspec.Struct, frozen=True):
    """The job is to be deleted, if nothing of it has changed since it was read."""

    resource_version: str

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> "Deletion":
        return cls(job["metadata"]["resourceVersion"])


class Leave(msgspec.Struct, frozen=True):
    """Nothing is to be done; `why` is empty where that is no news."""

    why: str = ""


Request = Deletion | Leave | dict[str, Any]
"""A dict is the patch to send; it names the version that was read."""
Decide = Callable[[Mapping[str, Any] | None], Request]


class Ending(msgspec.Struct, frozen=True):
    """Whether a job was ended, and if not, why, where that is news."""

    done: bool
    why: str = ""


class JobClient:
    """Requests about jobs over a client of the API server.

    A request is sent once: whoever waits for a job knows how long an outage may be. It raises `ApiError` for what the
    server rejects, and `ApiUnavailable` where the server can't be reached (both of `mxnet_operator.kube.errors`).
    """

    def __init__(self, api: "Client | None" = None) -> None:
        self._open = api

    @property
    def api(self) -> "Client":
        if self._open is None:
            raise RuntimeError("the client is used within `async with`")
        return self._open

    async def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        """Return the job that has the name, or None; whether it is the one is for its uid to say."""
        return await self.api.find(ref.path, shape=Stored)

    async def create_job(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create the job, again where a quota was just being counted (409 Conflict), and return it with its uid."""
        ref = JobRef.of(manifest)
        for attempt in range(_COUNTINGS):
            try:
                return await self.api.create(ref.collection, manifest)
            except ApiError as e:
                if e.reason != "Conflict" or attempt == _COUNTINGS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def apply_object(self, manifest: Mapping[str, Any], namespace: str) -> bool:
        """Create an object of `bundled_objects.PLURALS`, or patch the one that exists; return whether it is new."""
        from mxnet_operator.kube.client import STRATEGIC_MERGE_PATCH  # noqa: PLC0415

        resource = Resource("", "v1", PLURALS[manifest["kind"]])
        try:
            await self.api.create(resource.path(namespace), manifest)
        except ApiError as e:
            if e.reason != "AlreadyExists":
                raise
            path = resource.path(namespace, manifest["metadata"]["name"])
            await self.api.patch(path, manifest, STRATEGIC_MERGE_PATCH)
            return False
        return True

    async def list_jobs(self, namespace: str | None, selector: str) -> list[dict[str, Any]]:
        """Return the jobs of a namespace, or of all, that a label selector finds, read page by page."""
        return await self._listed(MXJOBS.path(namespace), labelSelector=selector)

    async def may_patch(self, ref: JobRef) -> bool:
        """Whether the account may patch jobs; to be asked of a name that does not exist yet.

        Rights are checked before the object is: without the right that is answered 403, with it 404.
        """
        try:
            await self.api.patch(ref.path, {"metadata": {}})
        except ApiError as e:
            if e.code not in (403, 404):
                raise
            return e.code != 403
        return True

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
        return await _unless_gone(self.api.delete(ref.path, body))

    async def end_job(self, ref: JobRef, decide: Decide, *, propagation_policy: str = "Foreground") -> Ending:
        """Do to the job what `decide` makes of it as it is, again for as long as it changes in between."""
        for _ in range(ATTEMPTS):
            match decide(await self.get_job(ref)):
                case Leave(why):
                    return Ending(done=False, why=why)
                case Deletion(version):
                    done = await self.delete_job(ref, propagation_policy=propagation_policy, resource_version=version)
                case patch:
                    done = await self.patch_job(ref, patch)
            if done:
                return Ending(done=True)
        return Ending(done=False, why="it kept changing")

    async def patch_job(self, ref: JobRef, patch: Mapping[str, Any]) -> bool:
        """Merge a patch that names a resourceVersion; returns False where the job has changed since, or is gone."""
        return await _unless_gone(self.api.patch(ref.path, patch))

    async def replica_pods(self, ref: JobRef) -> list[dict[str, Any]]:
        found = await self._listed(PODS.path(ref.namespace), labelSelector=f"{names.LABEL_JOB_NAME}={ref.name}")
        return [pod for pod in found if is_owned_by(pod, ref.uid)]

    async def _listed(self, path: str, **selector: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.api.list(path, selector))["items"]
        return found


async def _unless_gone(write: Awaitable[Any]) -> bool:
    try:
        await write
    except ApiError as e:
        if e.code in (404, 409):  # gone, or another job by now
            return False
        raise
    return True
