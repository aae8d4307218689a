"""Feed of one job for its page: the job, its pods, events, the figures of its log, and the log of one replica."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, Self

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.client.job_events import job_events
from mxnet_operator.client.jobs import (
    DeletedError,
    collections,
    images_of,
    job_versions,
    main_replica,
    pod_selector,
    pods_of,
)
from mxnet_operator.client.outage import Outage, Retries
from mxnet_operator.client.pod_log import LogFollower
from mxnet_operator.client.training import compare_workers, epochs_wanted
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.readers.training_log import TrainingLog

LAST_LINES: Final = 2000
"""Lines of a log that a page begins with."""
_EVENTS_SECONDS: Final = 10.0
_WORKERS_SECONDS: Final = 30.0
_MOST_CHARACTERS: Final = 8 * 1024 * 1024
"""Characters of a log that are searched for figures."""


class LocalFiles(Protocol):
    """Reader of what only the local cluster knows of a job."""

    async def written(self, job: dict[str, Any], pods: Iterable[dict[str, Any]]) -> list[str]:
        """List what the replicas wrote outside of volumes, a line each."""

    async def versions(self, images: Iterable[str]) -> dict[str, str]:
        """Return the versions in each image, as far as they are known."""


class JobFeed:
    """Feed of a job while its page is open; an async context manager.

    Args:
        client: Client to read with.
        job: The job, in the words of v1.
        replica: The replica whose log is followed; none if empty.
        local: Reader of files and versions on the local cluster.
    """

    def __init__(self, client: Client, job: dict[str, Any], replica: str, local: LocalFiles | None = None) -> None:
        self.job = job
        self.pods: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.written: list[str] = []
        """What the replicas wrote outside of volumes, a line each."""
        self.versions: dict[str, str] = {}
        """Versions in the job's images."""
        self.training = TrainingLog(time.monotonic)
        self.training.epochs_wanted = epochs_wanted(job)
        self.is_cut = False
        """Whether the log is too long to be searched for figures as a whole."""
        self.is_deleted = False
        self.is_complete = False
        """Whether pods, events and files have been read once."""
        self.is_new = True
        """Whether there is something that hasn't been shown; set to False by who shows it."""
        self.lines: list[str] = []
        """Pieces of the log that haven't been shown; emptied by who shows them."""
        self.changed = asyncio.Event()
        """Set with each change; cleared by who waits for it."""
        self._client = client
        self._replica = replica
        self._local = local
        self._outage = Outage()
        self._characters = 0
        self._pods_listed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        work = [self._watch_job(), self._watch_pods(), self._watch_events()]
        work += [self._follow(main_replica(self.job), self._take_figures, None)]
        work += [self._follow(self._replica, self._take_line, LAST_LINES)] if self._replica else []
        work += [self._compare_workers()]
        self._tasks = [asyncio.create_task(each) for each in work]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait(self, seconds: float) -> None:
        """Wait for a change, or so many seconds.

        Raises:
            ApiError, ApiUnavailable: the job can't be watched any more.
        """
        waiting = asyncio.create_task(self.changed.wait())
        try:
            await asyncio.wait({waiting, *self._tasks[:3]}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        self.changed.clear()
        for task in self._tasks[:3]:
            if task.done() and not self.is_deleted:
                task.result()

    async def read(self) -> None:
        """Read pods and events once, for a page that isn't live yet."""
        found, self.events = await asyncio.gather(
            self._client.list(PODS.path(self.job["metadata"]["namespace"]), pod_selector(self.job)),
            job_events(self._client, self.job),
        )
        self.pods = pods_of(self.job, found["items"])
        await self._read_files()

    async def _read_files(self) -> None:
        if self._local is not None:
            self.written = await self._local.written(self.job, self.pods)
            if not self.versions:
                self.versions = await self._local.versions(images_of(self.job))

    def _touch(self) -> None:
        self.is_new = True
        self.changed.set()

    async def _watch_job(self) -> None:
        try:
            async with contextlib.aclosing(job_versions(self._client, self.job, outage=self._outage)) as changes:
                async for job in changes:
                    self.job = job
                    self._touch()
        except DeletedError:
            self.is_deleted = True
            self._touch()

    async def _watch_pods(self) -> None:
        path = PODS.path(self.job["metadata"]["namespace"])
        versions = collections(self._client, path, pod_selector(self.job), outage=self._outage)
        async with contextlib.aclosing(versions) as changes:
            async for found in changes:
                self.pods = pods_of(self.job, found.values())
                self._pods_listed.set()
                self._touch()

    async def _watch_events(self) -> None:
        retries, was_over = Retries(self._outage), False
        await self._pods_listed.wait()
        while True:
            found = await retries.until_answered(lambda: job_events(self._client, self.job))
            before, self.events = (self.events, self.written), found
            await self._read_files()
            if not self.is_complete or before != (self.events, self.written):
                self.is_complete = True
                self._touch()
            if was_over:
                await asyncio.Event().wait()
            was_over = job_state(self.job) in TERMINAL  # its last events come after its status: read them once more
            await asyncio.sleep(_EVENTS_SECONDS)

    async def _compare_workers(self) -> None:
        while True:
            await compare_workers(self._client, self.job, self.training)
            self._touch()
            if job_state(self.job) in TERMINAL:
                return
            await asyncio.sleep(_WORKERS_SECONDS)

    async def _follow(self, replica: str, take: Callable[[str], None], tail: int | None) -> None:
        """Hand the log of a replica's pods to `take`, one after the other."""
        follower = LogFollower(self._client, self.job, replica, take, tail=tail, outage=self._outage)
        try:
            await follower.start()
        except KubeError as error:
            self._take_line(f"The log of {replica} can't be read: {error}\n")
        finally:
            with contextlib.suppress(KubeError):
                await follower.cancel()

    def _take_figures(self, line: str) -> None:
        self._characters += len(line)
        if self._characters > _MOST_CHARACTERS:
            if not self.is_cut:
                self.is_cut = True
                self._touch()
        elif self.training.take(line):
            self._touch()

    def _take_line(self, line: str) -> None:
        self.lines.append(line.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        self.changed.set()
