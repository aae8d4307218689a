"""Client for asynchronous programs: submit an MXJob, follow it, and fetch its result."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from mxnet_operator.api import names
from mxnet_operator.api.job_formats import submission_errors
from mxnet_operator.api.manifest_text import ManifestError, jsonable, load
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.validation import unknown_fields
from mxnet_operator.client.errors import (
    InvalidJobError,
    JobExistsError,
    JobFailedError,
    JobNotFoundError,
    LogIncompleteError,
    ResultLostError,
)
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.job_status import JobStatus, status_of
from mxnet_operator.client.jobs import (
    DeletedError,
    main_replica,
    pod_name,
    replicas,
    until_finished,
    until_gone,
)
from mxnet_operator.client.outage import RETRY_SECONDS, Outage, Retries
from mxnet_operator.client.pod_log import LogFollower, log_lines
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.client.whole_result import with_whole_result
from mxnet_operator.description import DescriptionError, MXJobDescription, to_manifest
from mxnet_operator.description.older_formats import in_v1
from mxnet_operator.description.plain import plain
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import is_path_segment
from mxnet_operator.readers.training_log import TrainingLog

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

JobOrName = str | JobStatus
"""A job's name, or the status that `submit` returned, which means that job only and no later one of its name."""
Manifest = Mapping[str, Any] | str | Path

_LOG: Final = logging.getLogger(__name__)
_BASE_NAME: Final = "train"
_SUFFIX: Final = 4
"""Random bytes after the names of jobs that have none of their own."""
_END: Final = None


@dataclass(kw_only=True, eq=False, repr=False)
class AsyncMXJobClient:
    """Asynchronous client for MXJobs on the cluster of a kubeconfig, or of the pod that runs it.

    Use it in `async with`. Credentials (bearer tokens and their files, client certificates, exec plugins) are
    kubectl's, and are read again when the server rejects them.

    The arguments are those of `MXJobClient`. Every method may raise ApiError (the server rejects the request) and
    ApiUnavailable (the server can't be reached) of `mxnet_operator.kube.errors`. Entering the client may raise
    CredentialsError.
    """

    kubeconfig: str | Path | None = None
    context: str | None = None
    namespace: str | None = None
    retry_timeout: float = RETRY_SECONDS

    def __post_init__(self) -> None:
        self._open = contextlib.AsyncExitStack()
        self._client: Client | None = None

    async def __aenter__(self) -> Self:
        """Read the credentials; nothing connects before the first request."""
        from mxnet_operator.kube.client import Client  # noqa: PLC0415 - an extra brings what it needs
        from mxnet_operator.kube.credentials import load_credentials  # noqa: PLC0415

        file = None if self.kubeconfig is None else str(self.kubeconfig)
        credentials = await asyncio.to_thread(load_credentials, file, self.context)
        self._client = await self._open.enter_async_context(Client(credentials))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def submit(
        self,
        job: MXJobDescription | None = None,
        *,
        manifest: Manifest | None = None,
        allow_unknown_fields: bool = False,
    ) -> JobStatus:
        """Create a job and return its status.

        A job without a name gets a unique one. If the server's reply is lost, the job is found again: never two.

        Args:
            job: Description of the job. Beside a manifest, it is merged over the manifest.
            manifest: A whole MXJob: a mapping, YAML text, or the path of a file.
            allow_unknown_fields: Accept fields that this release doesn't know, such as those of a newer Kubernetes.

        Raises:
            InvalidJobError: The job is not valid. The error has every mistake.
            JobExistsError: A job of this name exists.
        """
        return status_of(await self._created(self.manifest(job, manifest, allow_unknown_fields=allow_unknown_fields)))

    def manifest(
        self,
        job: MXJobDescription | None = None,
        manifest: Manifest | None = None,
        *,
        allow_unknown_fields: bool = False,
    ) -> dict[str, Any]:
        """Return the manifest that `submit` would send; only a generated name ends differently each time.

        Raises:
            InvalidJobError: The job is not valid.
        """
        if job is None and manifest is None:
            raise TypeError("submit() takes a description, a manifest, or both")
        try:
            made = to_manifest(job or MXJobDescription(), None if manifest is None else _read(manifest))
        except DescriptionError as error:
            raise InvalidJobError(error.problems) from error
        metadata = made["metadata"]
        if not metadata.get("name"):
            base = str(metadata.pop("generateName", _BASE_NAME)).rstrip("-")
            metadata["name"] = f"{base}-{secrets.token_hex(_SUFFIX)}"
        metadata.setdefault("namespace", self.namespace or (self._client.namespace if self._client else "default"))
        problems = submission_errors(made)
        if not allow_unknown_fields:
            problems = [*problems, *unknown_fields(made)]
        if problems:
            raise InvalidJobError(problems)
        return made

    async def get(self, job: JobOrName) -> JobStatus:
        """Return the current status of a job.

        Raises:
            JobNotFoundError: The job doesn't exist.
        """
        return await self._status(await self._found(job))

    async def wait(self, job: JobOrName, *, timeout: float | None = None, check: bool = True) -> JobStatus:  # noqa: ASYNC109
        """Wait until a job has finished, and return its status.

        Args:
            job: The job's name, or what `submit` returned.
            timeout: Seconds to wait. The job goes on afterwards. Default: no limit.
            check: Raise JobFailedError if the job failed.

        Raises:
            JobFailedError: The job failed, and `check` is True.
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            TimeoutError: The job hasn't finished in time.
        """
        async with asyncio.timeout(timeout):
            status = await self._status(await self._ended(await self._found(job), self._outage()))
        if check and not status.succeeded:
            raise JobFailedError(status)
        return status

    async def logs(self, job: JobOrName, *, replica: str | None = None, follow: bool = True) -> AsyncGenerator[str]:
        """Yield the lines of a replica's log, through restarts of the job, until the job has finished.

        Args:
            job: The job's name, or what `submit` returned.
            replica: Replica, such as `server-1`. Default: `worker-0`, in tuning `tuner-0`.
            follow: Wait for further lines. If False, only the lines so far.

        Raises:
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            LogIncompleteError: The last lines could not be received. It is raised after all others.
            ValueError: The job has no such replica.
        """
        found = await self._found(job)
        chosen = main_replica(found) if replica is None else replica.lower()
        if chosen not in (there := replicas(found)):
            raise ValueError(f"replica: the job has no {replica!r}: it has {', '.join(there)}")
        metadata = found["metadata"]
        if follow:
            lines = self._followed(found, chosen)
        else:
            lines = log_lines(self._connected, metadata["namespace"], pod_name(metadata["name"], chosen))
        async with contextlib.aclosing(lines):
            async for line in lines:
                yield line.rstrip("\r\n")

    async def result(self, job: JobOrName, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """Wait until a job has succeeded, and return its result.

        The result is what Worker 0 (in tuning, the Tuner) wrote to /dev/termination-log, up to 256 KiB: parsed if it
        is JSON, else text, or None.

        Args:
            job: The job's name, or what `submit` returned.
            timeout: Seconds to wait. Default: no limit.

        Raises:
            JobFailedError: The job failed.
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            ResultLostError: The result is longer than 4 KiB, and the pod whose log has it is gone.
            TimeoutError: The job hasn't finished in time.
        """
        status = await self.wait(job, timeout=timeout)
        if status.lost_result:
            raise ResultLostError(f"MXJob {status.namespace}/{status.name}: {status.lost_result}")
        return status.result

    async def metrics(self, job: JobOrName, *, replica: str | None = None) -> dict[str, Any]:
        """Return the metrics in a replica's log so far, each as a list with a value per epoch.

        `Epoch[3] Validation-accuracy=0.98` is in `validation_accuracy`, the Speedometer's speed in
        `samples_per_second`. `epochs` is the number of epochs so far, `accuracy` the last validation accuracy.

        Args:
            job: The job's name, or what `submit` returned.
            replica: Replica, such as `worker-1`. Default: `worker-0`, in tuning `tuner-0`.
        """
        training = TrainingLog()
        async for line in self.logs(job, replica=replica, follow=False):
            training.take(line)
        return training.history()

    async def delete(self, job: JobOrName, *, wait: bool = True) -> bool:
        """Delete a job with its pods, and return whether it existed.

        With `wait`, it waits until the pods are gone.
        """
        try:
            found = await self._found(job)
        except JobNotFoundError:
            return False
        deleted = await JobClient(self._connected).delete_job(JobRef.of(found))
        if deleted and wait:
            await until_gone(self._connected, found)
        return deleted

    @property
    def _connected(self) -> "Client":
        if self._client is None:
            raise RuntimeError("the client isn't open: use it in `async with`")
        return self._client

    def _outage(self) -> Outage:
        return Outage(self.retry_timeout, say=_LOG.warning)

    async def _created(self, manifest: dict[str, Any]) -> dict[str, Any]:
        metadata, token = manifest["metadata"], secrets.token_hex(16)
        own = {**(metadata.get("annotations") or {}), names.SUBMISSION_ANNOTATION: token}
        body = {**manifest, "metadata": {**metadata, "annotations": own}}
        namespace, name = metadata["namespace"], metadata["name"]
        path, client = MXJOBS.path(namespace), self._connected
        while True:
            try:
                return await Retries(self._outage()).until_answered(
                    lambda: client.create(path, body, {"fieldManager": "mxnet-client"})
                )
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                found = await self._stored(namespace, name)
                if found is None:
                    continue  # whose it was is gone
                if (found["metadata"].get("annotations") or {}).get(names.SUBMISSION_ANNOTATION) == token:
                    return found
                raise JobExistsError(f"MXJob {namespace}/{name} already exists; it was not changed") from error

    async def _found(self, job: JobOrName) -> dict[str, Any]:
        name, namespace, uid = (job, None, "") if isinstance(job, str) else (job.name, job.namespace, job.uid)
        namespace = namespace or self.namespace or self._connected.namespace
        found = await self._stored(namespace, name) if is_path_segment(name) else None
        if found is None:
            raise JobNotFoundError(f"there is no MXJob {namespace}/{name}")
        if uid and found["metadata"]["uid"] != uid:
            raise JobNotFoundError(f"MXJob {namespace}/{name} is gone, and another has its name")
        return {"apiVersion": names.API_VERSION, "kind": names.KIND, **found}

    async def _stored(self, namespace: str, name: str) -> dict[str, Any] | None:
        ref = JobRef(name=name, namespace=namespace)
        return await Retries(self._outage()).until_answered(lambda: JobClient(self._connected).get_job(ref))

    async def _status(self, job: dict[str, Any]) -> JobStatus:
        return status_of(await with_whole_result(self._connected, job, outage=self._outage()))

    async def _ended(self, job: dict[str, Any], outage: Outage) -> dict[str, Any]:
        try:
            return await until_finished(self._connected, job, outage=outage)
        except DeletedError as error:
            raise JobNotFoundError(f"{JobRef.of(job).title} was deleted before it had finished") from error

    async def _followed(self, job: dict[str, Any], replica: str) -> AsyncGenerator[str]:
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        outage = self._outage()
        follower = LogFollower(self._connected, job, replica, lines.put_nowait, outage=outage)

        async def to_the_end() -> None:
            ended, following = asyncio.create_task(self._ended(job, outage)), follower.start()
            try:
                await asyncio.wait({ended, following}, return_when=asyncio.FIRST_COMPLETED)
                await (ended if ended.done() else following)  # which ends by an error only
                if not await follower.finish():
                    raise LogIncompleteError(
                        f"the end of the log of {replica} of {JobRef.of(job).title} was not received; "
                        "read it again with follow=False"
                    )
            finally:
                ended.cancel()
                with contextlib.suppress(Exception):
                    await follower.cancel()
                lines.put_nowait(_END)

        task = asyncio.create_task(to_the_end())
        try:
            while (line := await lines.get()) is not _END:
                yield line
            await task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def _read(manifest: Manifest) -> dict[str, Any]:
    """Copy a manifest into a dict of our own, in v1's words.

    Raises:
        InvalidJobError: it can't be read.
        DescriptionError: it has mistakes, in the words of its own API version.
    """
    try:
        if isinstance(manifest, Path):
            manifest = manifest.read_text(encoding="utf-8")
        content = load(manifest) if isinstance(manifest, str) else jsonable(plain(manifest))
    except ManifestError as error:
        raise InvalidJobError([FieldError("", "FieldValueInvalid", f"the manifest can't be read: {error}")]) from error
    if not isinstance(content, dict):
        what = type(content).__name__
        raise InvalidJobError([FieldError("", "FieldValueTypeInvalid", f"the manifest must be one MXJob, is a {what}")])
    return in_v1(content)
