"""Argo pods that poll for jobs: the controller completes the WorkflowTaskResult of a killed one, and adds progress.

Argo 4.0.0 to 4.1.2 starts no other poller before the killed one's WorkflowTaskResult says that it is complete, which
nothing of Argo's ever writes for a resource template (`docs/argo.md`, a killed poller). A pod that has ended can't
write to it any more, so any client that sees its end may. Argo 3.7 sleeps for up to 20 minutes after a poller's pod
has gone with its node, unless something of the workflow's changes.

Of a running one, only the field `progress` is written, which Argo's executor leaves to others in a resource template.
"""

import logging
from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api.conditions import is_terminal
from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.integrations.argo.workflows import Workflows
from mxnet_operator.integrations.integration import ReaderContext
from mxnet_operator.kube import answers
from mxnet_operator.kube.answers import AnyObject, Metadata, Shape
from mxnet_operator.kube.errors import ApiError, KubeError, WriteFencedError
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


class _Status(Shape, frozen=True):
    phase: str = ""


class _Pod(Shape, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def node(self) -> str:
        """ID of its node in the workflow, which is the name of its result; empty where it has none."""
        return (self.metadata.annotations or {}).get(NODE_ANNOTATION, "")


class _Pods(Shape, frozen=True):
    items: list[msgspec.Raw]


class _Checked(msgspec.Struct, frozen=True):
    """What is known of a workflow."""

    again: float
    """When it may be checked again, on the watchdog's clock."""
    pods: dict[str, _Pod]
    """Its pollers that were there, by their nodes."""


class Pollers:
    """Watchdog of the pollers of workflows with jobs, which reads each workflow no more often than needed."""

    def __init__(self, context: ReaderContext, workflows: Workflows) -> None:
        self._client, self._record, self._clock = context.client, context.record, context.clock
        self._workflows = workflows
        self._checked: dict[tuple[str, str], _Checked] = {}
        self._reported: dict[str, str] = {}
        """Progress by the key of its job."""

    def forget(self, key: str) -> None:
        self._reported.pop(key, None)

    async def check(self, job: MXJob) -> timedelta | None:
        """Complete the results of the dead pollers of the job's workflow; return when to check again, or None.

        No error here keeps the job from being reconciled: it is tried again. Progress waits for the next epoch.
        """
        name = (job.metadata.labels or {}).get(WORKFLOW_LABEL)
        if not name:
            return None
        key = (job.metadata.namespace, name)
        await self._report_progress(job, key)
        now = self._clock()
        last = self._checked.get(key, _Checked(now, {}))
        if now < last.again:
            return timedelta(seconds=last.again - now)
        forgotten = now - CHECK_INTERVAL_WHERE_FORBIDDEN.total_seconds()
        for other in [other for other, checked in self._checked.items() if checked.again < forgotten]:
            del self._checked[other]  # of a workflow that has no job any more
        pods = last.pods
        wait = CHECK_INTERVAL_OF_FINISHED_JOBS if is_terminal(job.status) else CHECK_INTERVAL
        try:
            if is_terminal(job.status) and await self._workflows.is_over(job.metadata.namespace, name):
                return None
            found = {pod.node: pod for pod in await self._pods(key)}
            dead = (pod for pod in found.values() if pod.status.phase == "Failed")
            gone = (pod for node, pod in last.pods.items() if node not in found)
            for pod in (*dead, *gone):
                await self._complete(job.metadata, pod)
            pods = found
        except WriteFencedError:
            raise
        except KubeError as error:
            log.debug("the pollers of workflow %s: %s", name, error)
            if isinstance(error, ApiError) and error.code in {403, 404}:
                wait = CHECK_INTERVAL_WHERE_FORBIDDEN
        self._checked[key] = _Checked(now + wait.total_seconds(), pods)
        return wait

    async def _report_progress(self, job: MXJob, workflow: tuple[str, str]) -> None:
        """Write the epochs of a running job that have ended, of all, into the result of its poller."""
        training = job.status.training
        if is_terminal(job.status) or training is None or not training.epochs or training.progress_percentage is None:
            return
        progress = f"{-(-training.progress_percentage * training.epochs // 100)}/{training.epochs}"
        if self._reported.get(job.metadata.key) == progress:
            return
        self._reported[job.metadata.key] = progress
        try:
            for pod in await self._pods(workflow, job.metadata.name):
                if pod.status.phase == "Running":
                    path = WORKFLOW_TASK_RESULTS.path(job.metadata.namespace, pod.node)
                    await self._client.patch(path, {"progress": progress})
        except WriteFencedError:
            raise
        except KubeError as error:
            log.debug("the progress of job %s: %s", job.metadata.key, error)

    async def _pods(self, workflow: tuple[str, str], job: str = "") -> list[_Pod]:
        """Return the pods of a workflow that Argo isn't done with, and that write no result besides that of `main`.

        Only those that have the job's name in their manifest poll for it.
        """
        namespace, name = workflow
        query = {"labelSelector": f"{WORKFLOW_LABEL}={name},{COMPLETED_LABEL}=false"}
        found = await self._client.get_as(PODS.path(namespace), _Pods, query)
        pods = [answers.decoded(each, _Pod) for each in found.items if job.encode() in bytes(each)]
        return [
            pod
            for pod in pods
            if pod.node and not _COMPLETES_BY_ITSELF & {each.name for each in pod.spec.containers or ()}
        ]

    async def _complete(self, job: ObjectMeta, pod: _Pod) -> None:
        """Complete the result of a dead poller, where it says that more is to come."""
        path = WORKFLOW_TASK_RESULTS.path(job.namespace, pod.node)
        try:
            result = await self._client.get_as(path, AnyObject)
            if (result.metadata.labels or {}).get(REPORTED_LABEL) != "false":
                return
            await self._client.patch(path, {"metadata": {"labels": {REPORTED_LABEL: "true"}}})
        except ApiError as error:
            if error.code == 404:
                return  # Argo deletes the results of a workflow that is over.
            if error.code == 403 and pod.status.phase == "Failed":  # One that is gone may have succeeded.
                await self._record(job, _forbidden(job, pod, error))
            raise
        await self._record(job, _completed(pod))


def _completed(pod: _Pod) -> Event:
    return Event(
        "Normal",
        "PollerReplaced",
        f"The pod {pod.metadata.name}, which waited for the job, has ended without a result: its WorkflowTaskResult was"
        " marked complete, so that Argo starts the next one",
    )


def _forbidden(job: ObjectMeta, pod: _Pod, error: ApiError) -> Event:
    return Event(
        "Warning",
        "PollerForbidden",
        f"The pod {pod.metadata.name}, which waited for the job, has ended without a result, and Argo 4 starts no other"
        f" before its WorkflowTaskResult is marked complete: {error.message}. Apply"
        " operator/manifests/components/argo/rbac.yaml (docs/argo.md, a killed poller), or do it once by hand: kubectl"
        f" label -n {job.namespace} workflowtaskresult {pod.node} {REPORTED_LABEL}=true --overwrite",
    )
