"""Argo Workflows: a job may be deleted with its workflow, and a killed poller of a job's step is replaced."""

from datetime import timedelta

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.policy import ArgoPolicy, WorkflowOver
from mxnet_operator.integrations.argo.pollers import Pollers
from mxnet_operator.integrations.argo.workflows import Workflows
from mxnet_operator.integrations.integration import Integration, JobReader, ReaderContext
from mxnet_operator.plan import Observed


class WorkflowReader(JobReader):
    """Reader of the workflows that own jobs, and watchdog of their pollers."""

    def __init__(self, context: ReaderContext) -> None:
        self._workflows = Workflows(context)
        self._pollers = Pollers(context, self._workflows)

    async def observe(self, job: MXJob, manifest: bytes, observed: Observed) -> Observed:
        why = await self._workflows.why_over(job.metadata.key, job, manifest)
        return observed.with_fact(WorkflowOver(why)) if why else observed

    async def after(self, job: MXJob) -> timedelta | None:
        return await self._pollers.check(job)

    def forget(self, key: str) -> None:
        self._workflows.forget(key)
        self._pollers.forget(key)


class Argo(Integration):
    """Integration of Argo Workflows, of which nothing is watched."""

    name = "argo"
    policy = ArgoPolicy()

    def reader(self, context: ReaderContext) -> JobReader:
        return WorkflowReader(context)
