"""The hold of a try on its job: its token and lease, written into the job that it creates or takes over."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import holder, kill
from mxnet_provider.job.job_ref import JobRef

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook


@dataclass
class JobHold:
    """Hold of one try on its job."""

    hook: "MXNetJobHook"
    log: "Logger"
    token: str
    lease: holder.Lease | None
    """What the job carries; None for none."""
    renewer: holder.LeaseRenewer | None = None
    """What renews the lease for this process; None for a job that has no token or has finished."""

    def write(self, manifest: dict[str, Any], ref: JobRef) -> None:
        """Make the job this try's from its creation on, if the account has the right that it takes to hold it."""
        if not self.hook.may_patch(ref):
            self.log.warning(
                "The account may not patch %s.%s in namespace %s: the job gets no lease, and would run on if nothing "
                "were left of this task. See docs/airflow.md, Rights.",
                ref.plural,
                ref.group,
                ref.namespace,
            )
            return
        metadata = manifest["metadata"]
        own = holder.annotations(self.token, self.lease, datetime.now(UTC))
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **own}

    def take_over(self, job: Mapping[str, Any], ref: JobRef, *, resume: bool = False) -> dict[str, Any]:
        """Write this try's token into a job that an earlier one held, and undo our own suspension."""
        for _ in range(kill.ATTEMPTS):
            found = holder.holder_of(job)
            if holder.is_newer(found, self.token):
                raise MXNetJobError(
                    f"{ref.title} is left alone: {holder.title_of(found)} waits for it now, and this is an earlier one."
                )
            is_held = bool(found) and job_state(job) not in TERMINAL
            if is_held:
                self.renewer = holder.LeaseRenewer(self.token, self.token, self.lease, is_written=True)
            patch: dict[str, Any] = kill.resumption(job) if resume else {}
            if is_held and found != self.token:
                claim = holder.claim(job, self.token, self.lease, datetime.now(UTC))
                given = (patch.get("metadata") or {}).get("annotations") or {}
                claim["metadata"]["annotations"] |= given
                patch = {**patch, **claim}
            if not patch or self.hook.patch_job(ref, patch):
                if resume:
                    self.log.info("%s was suspended when the task was killed; resumed.", ref.title)
                return dict(job)
            changed = self.hook.get_job(ref)
            if changed is None or changed["metadata"]["uid"] != ref.uid:
                return dict(job)  # the waiting will find that, and say it
            job = changed
        raise MXNetJobError(f"{ref.title} could not be taken over: it kept changing.")
