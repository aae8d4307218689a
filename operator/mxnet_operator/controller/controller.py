"""The MXJob controller: three caches feed one queue, and workers take jobs from it."""

import asyncio
import logging
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.controller.observe import (
    Child,
    JobRecord,
    owner_uid,
    project_job,
    project_pod,
    project_service,
)
from mxnet_operator.controller.own_writes import OwnWrites
from mxnet_operator.controller.reconcile import BY_OWNER, Reconciler, is_stale
from mxnet_operator.controller.resources import MXJOBS
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.queue import WorkQueue
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PODS, SERVICES
from mxnet_operator.plan import PodView, ServiceView

DEFAULT_WORKERS: Final = 8
"""Jobs looked at at a time. They share one CPU: more of them only wait for more replies at once."""
_PATIENCE: Final = 10.0
_OURS: Final = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME}"

log = logging.getLogger(__name__)


class Controller:
    """Runs the MXJobs of one namespace, or of all."""

    def __init__(self, client: Client, namespace: str | None = None, *, workers: int = DEFAULT_WORKERS) -> None:
        """`client` is open and stays the caller's; nothing is asked of the server before `run`."""
        self._workers = workers
        self._queue = WorkQueue()
        jobs: Indexer[JobRecord] = Indexer()
        pods: Indexer[Child[PodView]] = Indexer({BY_OWNER: owner_uid})
        services: Indexer[Child[ServiceView]] = Indexer({BY_OWNER: owner_uid})
        self._reflectors: tuple[Reflector[Any], ...] = (
            Reflector(client, MXJOBS, jobs, project_job, self._job_changed, namespace=namespace),
            Reflector(client, PODS, pods, project_pod, self._child_changed, namespace=namespace, label_selector=_OURS),
            Reflector(
                client,
                SERVICES,
                services,
                project_service,
                self._child_changed,
                namespace=namespace,
                label_selector=_OURS,
            ),
        )
        writes = OwnWrites({MXJOBS: jobs, PODS: pods, SERVICES: services})
        self._reconciler = Reconciler(client, jobs, pods, services, writes)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. An unreachable server is waited for."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run(), name=f"reflector {reflector.resource}")
            for reflector in self._reflectors:
                await _wait_for(reflector)
            self.synced.set()
            log.info("the caches are filled; running jobs")
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"worker {number}")

    def _job_changed(self, old: JobRecord | None, new: JobRecord | None) -> None:
        if job := new or old:
            self._queue.add(job.key)

    def _child_changed(self, old: Child[Any] | None, new: Child[Any] | None) -> None:
        if old is not None:
            self._queue.add(old.job)
        if new is not None:
            self._queue.add(new.job)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                again = await self._reconciler.reconcile(key)
            except KubeError as error:
                delay = self._queue.add_rate_limited(key)
                level = logging.DEBUG if is_stale(error) else logging.WARNING
                log.log(level, "%s; looking again in %.1f s", error, delay, extra={"job": key})
            except Exception:  # A bug met by one job must not stop all others.
                delay = self._queue.add_rate_limited(key)
                log.exception("looking at the job failed; again in %.1f s", delay, extra={"job": key})
            else:
                self._queue.forget(key)
                if again is not None:
                    self._queue.add_after(key, again.total_seconds())
            finally:
                self._queue.done(key)


async def _wait_for(reflector: Reflector[Any]) -> None:
    while True:
        try:
            async with asyncio.timeout(_PATIENCE):
                await reflector.synced.wait()
                return
        except TimeoutError:
            hint = (
                ": is its CRD installed? (mxnet-operator crd | kubectl apply -f -)"
                if reflector.resource == MXJOBS
                else ""
            )
            log.warning("still waiting for a list of %s%s", reflector.resource, hint)
