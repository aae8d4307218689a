"""Argo pods that poll for jobs: a killed one can't complete its WorkflowTaskResult, so the controller does.

Argo 4.0.0 to 4.1.2 starts no other poller before the killed one's WorkflowTaskResult says that it is complete, which
nothing of Argo's ever writes for a resource template (`docs/argo.md`, a killed poller). A pod that has ended can't
write to it any more, so any client that sees its end may.
"""

import logging
from datetime import timedelta
from typing import Final

from mxnet_operator.api.conditions import is_terminal
from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.integrations.argo.workflows import Workflows
from mxnet_operator.integrations.integration import Surroundings
from mxnet_operator.kube.answers import Metadata, Shape
from mxnet_operator.kube.client import ApiError
from mxnet_operator.kube.errors import KubeError, WriteFencedError
from mxnet_operator.kube.resources import PODS, WORKFLOW_TASK_RESULTS
from mxnet_operator.plan.actions import Event
from mxnet_operator.readers.argo_workflow import WORKFLOW_LABEL

COMPLETED_LABEL: Final = "workflows.argoproj.io/completed"
NODE_ANNOTATION: Final = "workflows.argoproj.io/node-id"
REPORTED_LABEL: Final = "workflows.argoproj.io/report-outputs-completed"
CHECK_INTERVAL: Final = timedelta(seconds=15)
CHECK_INTERVAL_OF_FINISHED_JOBS: Final = timedelta(minutes=1)
CHECK_INTERVAL_WHERE_FORBIDDEN: Final = timedelta(minutes=10)
_COMPLETES_BY_ITSELF: Final = frozenset({"wait", "supervisor"})
"""Containers of Argo's that outlive the main one, for whose pods Argo completes the result."""

log = logging.getLogger(__name__)


class _Container(Shape, frozen=True):
    name: str = ""


class _Spec(Shape, frozen=True):
    containers: list[_Container] | None = None


class _Pod(Shape, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()


class _Pods(Shape, frozen=True):
    items: list[_Pod]


class _TaskResult(Shape, frozen=True):
    metadata: Metadata


class Pollers:
    """Watchdog of the pollers of workflows with jobs, which reads each workflow no more often than needed."""

    def __init__(self, around: Surroundings, workflows: Workflows) -> None:
        """Create a watchdog that has checked nothing."""
        self._client, self._record, self._clock = around.client, around.record, around.clock
        self._workflows = workflows
        self._again: dict[tuple[str, str], float] = {}

    async def check(self, job: MXJob) -> timedelta | None:
        """Complete the results of the dead pollers of the job's workflow; return when to check again, or None.

        No error here keeps the job from being reconciled: it is tried again.
        """
        name = (job.metadata.labels or {}).get(WORKFLOW_LABEL)
        if not name:
            return None
        key = (job.metadata.namespace, name)
        now = self._clock()
        if (again := self._again.get(key)) is not None and now < again:
            return timedelta(seconds=again - now)
        forgotten = now - CHECK_INTERVAL_WHERE_FORBIDDEN.total_seconds()
        for other in [other for other, again in self._again.items() if again < forgotten]:
            del self._again[other]  # of a workflow that has no job any more
        wait = CHECK_INTERVAL_OF_FINISHED_JOBS if is_terminal(job.status) else CHECK_INTERVAL
        try:
            if is_terminal(job.status) and await self._workflows.is_over(job.metadata.namespace, name):
                return None
            for pod in await self._dead(key):
                await self._complete(job.metadata, pod)
        except WriteFencedError:
            raise
        except KubeError as error:
            log.debug("the pollers of workflow %s: %s", name, error)
            if isinstance(error, ApiError) and error.code in {403, 404}:
                wait = CHECK_INTERVAL_WHERE_FORBIDDEN
        self._again[key] = now + wait.total_seconds()
        return wait

    async def _dead(self, key: tuple[str, str]) -> list[_Pod]:
        """Return failed pods of a workflow that Argo isn't done with, without a container to report the failure."""
        namespace, name = key
        query = {
            "labelSelector": f"{WORKFLOW_LABEL}={name},{COMPLETED_LABEL}=false",
            "fieldSelector": "status.phase=Failed",
        }
        found = await self._client.get_as(PODS.path(namespace), _Pods, query)
        return [
            pod
            for pod in found.items
            if NODE_ANNOTATION in (pod.metadata.annotations or {})
            and not _COMPLETES_BY_ITSELF & {each.name for each in pod.spec.containers or ()}
        ]

    async def _complete(self, job: ObjectMeta, pod: _Pod) -> None:
        """Complete the result of a dead poller, where it says that more is to come."""
        node = (pod.metadata.annotations or {})[NODE_ANNOTATION]
        path = WORKFLOW_TASK_RESULTS.path(job.namespace, node)
        try:
            result = await self._client.get_as(path, _TaskResult)
            if (result.metadata.labels or {}).get(REPORTED_LABEL) != "false":
                return
            await self._client.patch(path, {"metadata": {"labels": {REPORTED_LABEL: "true"}}})
        except ApiError as error:
            if error.code == 404:
                return  # Argo deletes the results of a workflow that is over.
            if error.code == 403:
                await self._record(job, _forbidden(pod, error))
            raise
        await self._record(job, _completed(pod))


def _completed(pod: _Pod) -> Event:
    return Event(
        "Normal",
        "PollerReplaced",
        f"The pod {pod.metadata.name}, which waited for the job, has ended without a result: its WorkflowTaskResult was"
        " marked complete, so that Argo starts the next one",
    )


def _forbidden(pod: _Pod, error: ApiError) -> Event:
    return Event(
        "Warning",
        "PollerForbidden",
        f"The pod {pod.metadata.name}, which waited for the job, has ended without a result, and Argo 4 starts no other"
        f" before its WorkflowTaskResult is marked complete: {error.message}. Install"
        " operator/manifests/components/argo, or do it by hand (docs/argo.md, a killed poller)",
    )
