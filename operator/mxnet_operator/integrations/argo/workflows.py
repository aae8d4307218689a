"""Argo Workflows that own jobs, read one by one: the rights to read them may be narrow."""

import logging
from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.policy import READ_INTERVAL, goes_with_workflow
from mxnet_operator.integrations.integration import ReaderContext
from mxnet_operator.kube.answers import Metadata, Shape
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import WORKFLOWS
from mxnet_operator.plan.actions import Event
from mxnet_operator.readers.argo_workflow import has_ended, owner, why_over

READ_INTERVAL_WHERE_FORBIDDEN: Final = timedelta(minutes=10)

log = logging.getLogger(__name__)


class _Spec(Shape, frozen=True):
    shutdown: str | None = None


class _Status(Shape, frozen=True):
    phase: str | None = None


class _Workflow(Shape, frozen=True):
    metadata: Metadata
    spec: _Spec
    status: _Status | None = None


class _Asked(msgspec.Struct, frozen=True):
    uid: str
    """UID of the job."""
    again: float
    """When it may be read again, on the reader's clock."""


class Workflows:
    """Reader of workflows that limits its rate, since a job is reconciled far more often."""

    def __init__(self, context: ReaderContext) -> None:
        self._client, self._record, self._clock = context.client, context.record, context.clock
        self._asked: dict[str, _Asked] = {}

    def forget(self, key: str) -> None:
        self._asked.pop(key, None)

    async def why_over(self, key: str, job: MXJob, raw: bytes) -> str:
        """Return why the workflow of a job that is deleted with it is over; empty where that is not known.

        One that isn't found is not known to be over: a server that has just started says so of all custom resources,
        and if the workflow is deleted Kubernetes' own garbage collection deletes its job. A lack of rights is reported
        to the user.
        """
        if not goes_with_workflow(job):
            return ""
        asked = self._asked.get(key)
        if asked is not None and asked.uid == job.metadata.uid and self._clock() < asked.again:
            return ""
        manifest = msgspec.json.decode(raw)
        name = owner(manifest)
        if name is None:
            return ""
        wait = READ_INTERVAL / 2
        try:
            workflow = await self._client.get(WORKFLOWS.path(job.metadata.namespace, name), shape=_Workflow)
            if why := why_over(workflow, manifest):
                return f"{name} {why}"
        except KubeError as error:
            log.debug("the workflow %s: %s", name, error, extra={"job": key})
            if isinstance(error, ApiError) and error.code == 403:
                wait = READ_INTERVAL_WHERE_FORBIDDEN
                await self._record(job.metadata, _forbidden(name, error))
        self._asked[key] = _Asked(job.metadata.uid, self._clock() + wait.total_seconds())
        return ""

    async def is_over(self, namespace: str, name: str) -> bool:
        """Return whether a workflow has ended.

        Raises:
            KubeError: it can't be read, or isn't there.
        """
        return has_ended(await self._client.get(WORKFLOWS.path(namespace, name), shape=_Workflow))


def _forbidden(name: str, error: ApiError) -> Event:
    return Event(
        "Warning",
        "WorkflowForbidden",
        f"The job can't go with its workflow {name}, as {names.DELETE_WITH_WORKFLOW_ANNOTATION} asks: {error.message}."
        " Give the controller's role `get` on workflows of argoproj.io, as operator/manifests/base/rbac.yaml does",
    )
