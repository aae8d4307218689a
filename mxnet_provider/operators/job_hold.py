"""The hold of a try on its jobs: token and lease in the job that is waited for, and the end of jobs of its own."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.client.job_client import ATTEMPTS, Decide, JobRef
from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.hooks import api_errors
from mxnet_provider.job import holder, kill
from mxnet_provider.job.task_state import UNANSWERED
from mxnet_provider.options import EndOptions

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

_DID: Final = {"delete": "Deleted", "suspend": "Suspended"}
_STATE_SECONDS: Final = 4.0
"""Of the five seconds that a worker has between SIGTERM and SIGKILL; the rest is for the API server."""


@dataclass
class JobHold:
    """Hold of one try on its jobs."""

    hook: "MXNetJobHook"
    log: "Logger"
    token: str
    """The try's."""
    lease: holder.Lease | None
    """What the job that is waited for carries; None for none."""
    ends: EndOptions
    renewer: holder.LeaseRenewer | None = None
    """What renews the lease for this process; None for a job that has no token or has finished."""

    def write(self, manifest: dict[str, Any], ref: JobRef) -> None:
        """Make the job this try's from its creation on, if the account has the right that it takes to hold it."""
        if not self.hook.may_patch(ref):
            self.log.warning(
                "The account may not patch %s.%s in namespace %s: the job gets no lease, and would run on if nothing "
                "were left of this task. See docs/airflow.md, Rights.",
                ref.plural,
                ref.resource.group,
                ref.namespace,
            )
            return
        metadata = manifest["metadata"]
        own = holder.annotations(self.token, self.lease, datetime.now(UTC))
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **own}

    def take_over(self, job: Mapping[str, Any], ref: JobRef, *, resume: bool = False) -> dict[str, Any]:
        """Write this try's token into a job that an earlier one held, and undo our own suspension."""
        for _ in range(ATTEMPTS):
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

    def kill(self, ref: JobRef, why: str, *, is_cleared: bool = False) -> bool:
        """Delete or suspend an unfinished job; return whether the API server answered.

        One that has the job's name by now is left alone. Where the API server is away, the job's lease ends it.
        """
        action = self.ends.on_kill_action
        holds = holder.held_by_try(self.token)
        decide = partial(kill.request, uid=ref.uid, action=action, holds=holds, is_cleared=is_cleared)
        self.log.info("%s is to be %s: %s.", ref.title, _DID[action].lower(), why)
        try:
            self._end(ref, decide, f"{_DID[action]} {ref.title}: {why}.", f"{ref.title} is left alone")
        except OF_THE_SERVER as e:
            seconds = None if self.lease is None else self.lease.seconds
            told = kill.not_ended(ref.title, api_errors.message(e), seconds, ref.namespace)
            self.log.error("%s", told)  # noqa: TRY400
            return False
        return True

    def replace(self, job: Mapping[str, Any]) -> None:
        """End what the task had before it was cleared, unless that has finished or is to be kept."""
        ref, found = JobRef.of(job), holder.holder_of(job)
        if holder.is_newer(found, self.token):
            raise MXNetJobError(f"{ref.title} is left alone: {holder.title_of(found)} waits for it now.")
        action: kill.Action = "keep" if self.ends.on_kill_action == "keep" else "delete"
        holds = holder.held_by_try(holder.try_of(found))
        decide = partial(kill.request, uid=ref.uid, action=action, holds=holds, is_cleared=True)
        left = f"{ref.title}, which the task had before it was cleared, is left alone"
        self._end(ref, decide, f"Deleted {ref.title}, because the task was cleared.", left)

    def remove_old(self, job: Mapping[str, Any]) -> None:
        """Do as `remove` with the finished job of an earlier try that died before it could."""
        self.remove(JobRef.of(job), job_state(job), holder.held_exactly_by(holder.holder_of(job)))

    def remove(self, ref: JobRef, state: str | None, holds: holder.Holds | None = None) -> None:
        """Delete a finished job if `on_finish_action` says so. A failure is logged: the job's result is not lost."""
        if state not in TERMINAL or self.ends.on_finish_action not in ("delete", f"delete_{state.lower()}"):
            return
        decide = partial(kill.removal, uid=ref.uid, holds=holds or holder.held_by_try(self.token))
        left = f"{ref.title}, which has finished, is not deleted"
        try:
            self._end(ref, decide, f"Deleted {ref.title}, which has finished.", left)
        except OF_THE_SERVER as e:
            self.log.warning("%s, which has finished, could not be deleted: %s", ref.title, api_errors.message(e))

    def _end(self, ref: JobRef, decide: Decide, done: str, left: str) -> None:
        """End a job as `decide` says, and log that it is `done`, or why it was `left`."""
        ended = self.hook.end_job(ref, decide, propagation_policy=self.ends.propagation_policy)
        if ended.done:
            self.log.info("%s", done)
        elif ended.why:
            self.log.warning("%s: %s.", left, ended.why)


def task_state(ti: Any) -> tuple[str | None, str]:
    """Return the state in which Airflow has the task, or UNANSWERED, and why it is not answered.

    Asked in a thread: the signal that ends a worker may have come in the middle of another question, which holds the
    lock on them.
    """
    answer: list[tuple[str | None, str]] = []

    def ask() -> None:
        try:
            answer.append((airflow_versions.state_of_task(ti), ""))
        except Exception as e:
            answer.append((UNANSWERED, f"{type(e).__name__}: {e}"))

    asking = threading.Thread(target=ask, name="how the task stands", daemon=True)
    asking.start()
    asking.join(_STATE_SECONDS)
    return answer[0] if answer else (UNANSWERED, f"no answer within {_STATE_SECONDS} s")
