"""The MXJob of one try of a task, from before it is created until its task has ended: found again, or made and held."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mxnet_operator.api.conditions import SUCCEEDED, job_state
from mxnet_operator.api.job_url import job_page
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_operator.kube.errors import ApiError
from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import MXNetJobError, MXNetJobNameTakenError, MXNetJobUnreachableError
from mxnet_provider.job import event, holder, reattach, task_labels
from mxnet_provider.job.event import Event, success_is_known
from mxnet_provider.job.task_memory import Record, TaskMemory
from mxnet_provider.job.task_state import CLEARED, ENDED_BY_A_USER
from mxnet_provider.links.mxnet_job import job_url
from mxnet_provider.operators.job_hold import JobHold, task_state
from mxnet_provider.operators.rendered_job import as_created
from mxnet_provider.options import EndOptions

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

Make = Callable[[str], dict[str, Any]]
"""Returns the manifest to create, for a token; called for nothing but what is created."""

_REDEFERRALS: Final = 3
_GOES_ON: Final = (
    "%s goes on: Airflow had failed its task, and no user ended it. For a new job, clear the task while it runs."
)
_LOOK_SECONDS: Final = 10.0
_PAGE_SECONDS: Final = 2.0
"""How long a worker that is about to leave its job waits for the controller to reconcile it."""
_PAGE_PAUSE: Final = 0.1
"""Seconds before the first look, and twice as long before each further one."""


@dataclass
class TaskJob:
    """Job of a try. It begins with `begin`, or after a deferral with `recall`; from there on there is a `ref`."""

    context: "Context"
    hook: "MXNetJobHook"
    _: KW_ONLY
    log: "Logger"
    durable: bool
    """Whether an earlier try's job is looked for, and this one's remembered."""
    ends: EndOptions
    waits: bool
    """Whether the try waits for the job, and so holds it."""
    lease: holder.Lease | None
    """What a job that it holds carries; None for none."""
    retries: int
    """The task's, as its DAG says now."""
    reuse_succeeded: bool
    """Whether a job that has succeeded does for a retry."""

    def __post_init__(self) -> None:
        self._ti = ti = self.context["ti"]
        generation = task_labels.generation(ti)
        self._begins = reattach.Try(number=ti.try_number, generation=generation, retries=self.retries)
        self.token = holder.token_of_try(ti.try_number, airflow_versions.id_of_try(ti))
        self.memory = TaskMemory(ti, self.context.get("task_state_store") if self.durable else None)
        self.hold = JobHold(self.hook, self.log, self.token, self.lease, self.ends)
        self.known: JobRef | None = None
        self.killed = threading.Event()
        self.is_let_go = False
        """Whether this process is done with the job: a signal to the worker is then no user's kill."""

    @property
    def ref(self) -> JobRef:
        if self.known is None:
            raise RuntimeError("there is no job yet")
        return self.known

    @property
    def title(self) -> str:
        """Name in messages of the job, which may be no more than intended."""
        record = self.memory.record
        ref = self.known or (record.ref if record else None)
        return ref.title if ref else "the MXJob"

    @property
    def deadline(self) -> float | None:
        """Time at which the try runs out of time, in seconds since the epoch."""
        return self.memory.record.deadline if self.memory.record else None

    @property
    def reattached_at(self) -> float | None:
        """Time at which the try found the job, in seconds since the epoch; None where it created it."""
        return self.memory.record.reattached_at if self.memory.record else None

    @property
    def outcome(self) -> Event:
        return event.read(self.memory.written.outcome)

    def begin(self, make: Make, deadline: float | None, namespace: Callable[[], str]) -> dict[str, Any] | None:
        """Return the job to wait for, created or found; None where an earlier try's outcome does.

        Jobs of earlier tries are looked for by their labels in `namespace`. This try runs out of time at `deadline`,
        in seconds since the epoch.
        """
        if not self.durable:
            job: dict[str, Any] | None = self._create_new(make, deadline)
        elif self.memory.outlives_tries:
            job = self._begin_by_record(make, deadline)
        else:
            job = self._begin_by_labels(make, deadline, namespace())
        self._stop_if_killed()
        self.memory.publish(self.ref)
        if job is not None:
            self.note_page(job)
        return job

    def recall(self) -> None:
        self.known = self.memory.recall(self._begins.generation)
        self._stop_if_killed()

    def await_page(self, job: Mapping[str, Any]) -> None:
        """Wait, for a moment, until the job's first status names its page: links are written after this.

        Where Airflow's configuration has a template for it, there is nothing to wait for.
        """
        until, pause = time.monotonic() + _PAGE_SECONDS, _PAGE_PAUSE
        while not (job_state(job) or job_url(self.ref)) and time.monotonic() < until:
            self.killed.wait(pause)
            self._stop_if_killed()
            pause *= 2
            found = self._look(_PAGE_SECONDS)
            if found is None:
                return  # who waits for the job will meet that, and say it
            job = found
        self.note_page(job)

    def note_page(self, job: Mapping[str, Any]) -> None:
        self.memory.note_page(self.ref, job_page(job))

    def hand_over(self) -> None:
        """Note that a trigger waits for the job from here on."""
        self.memory.remember(waits_in="trigger")
        self.is_let_go = True

    def redefer(self) -> None:
        """Count another deferral of this try, after a trigger that ended without an event; three are allowed."""
        before = self.memory.record.redeferrals if self.memory.record else _REDEFERRALS
        if before >= _REDEFERRALS:
            raise MXNetJobUnreachableError(
                f"The trigger ended without an event {before + 1} times. {self.ref.title} is left running; "
                "another try will go on waiting for it."
            )
        self.memory.remember(redeferrals=before + 1)

    def finished(self, ended: Event) -> None:
        """Remember the end before anything is deleted, so that a retry doesn't ask a job that is gone."""
        suspended = ended.status in ("timeout", "startup_timeout") and self.ends.on_kill_action != "delete"
        if not suspended:
            self.memory.remember(phase="finished", outcome=ended.payload())
        self.hold.remove(self.ref, (ended.summary or {}).get("state"))

    def worker_ends(self) -> None:
        """Do as `kill` where a user ended or cleared the task; else the job stays, and the next try goes on with it.

        Airflow ends a worker as well when its scheduler crashed and the task was reset, and a node when it is drained.
        """
        self.killed.set()
        if self.known is None or self.is_let_go or self.ends.on_kill_action == "keep":
            return
        state, unsaid = task_state(self._ti)
        if state in ENDED_BY_A_USER:
            was = "cleared" if state == CLEARED else "ended"
            self.kill(f"its task was {was} by a user", is_cleared=state == CLEARED)
            return
        has = f"Airflow does not say how the task stands: {unsaid}" if unsaid else f"Airflow has the task as {state}"
        self.log.warning("%s goes on, for the next try or until its lease runs out: %s.", self.title, has)

    def kill(self, why: str, *, is_cleared: bool = False) -> None:
        """Delete, suspend or keep the unfinished job, as `on_kill_action` says."""
        self.killed.set()
        if self.known is None or self.is_let_go or self.ends.on_kill_action == "keep":
            return
        self.is_let_go = self.hold.kill(self.known, why, is_cleared=is_cleared)

    def success_is_known(self) -> bool:
        """Whether the job has succeeded, or will once its Scheduler is stopped; False where the API server is away."""
        job = self._look(_LOOK_SECONDS)
        return job is not None and (job_state(job) == SUCCEEDED or success_is_known(job))

    # How a try finds its job, or creates it

    def _begin_by_record(self, make: Make, deadline: float | None) -> dict[str, Any] | None:
        """Begin from what an earlier try has left in a store that outlives tries (Airflow 3.3)."""
        record = self.memory.stored()
        found = self.hook.get_job(record.ref) if record is not None else None
        decision = reattach.decide(record, self._begins, found, reuse_succeeded=self.reuse_succeeded)
        if record is None or decision == "create":
            if record is not None and found is not None and reattach.is_ours(found, record):
                self.hold.remove_old(found)
            return self._create_new(make, deadline)
        if decision == "replace" and found is not None:
            self.hold.replace(found)
            return self._create_new(make, deadline)
        if record.generation != self._begins.generation:
            self.log.info(_GOES_ON, record.ref.title)
        self.known = record.ref
        self.memory.record = self._new_record(record.ref, record.token, deadline, of=record)
        if decision == "reuse":
            self.memory.remember()
            return None
        if decision == "create_same":
            self.log.info("An earlier try (%d) was about to create %s.", record.try_number, record.ref.title)
            return self._submit(make(record.token))
        if found is None:
            raise RuntimeError(f"nothing to do for decision {decision!r}")
        return self._reattach(found, record.try_number, record.retries, resume=decision == "resume")

    def _begin_by_labels(self, make: Make, deadline: float | None, namespace: str) -> dict[str, Any]:
        """Begin from what the jobs themselves say, where no store outlives tries."""
        jobs = self.hook.list_jobs(namespace, task_labels.selector(self._ti))
        decided = reattach.decide_by_labels(jobs, self._begins, reuse_succeeded=self.reuse_succeeded)
        for job in decided.replaced:
            self.hold.replace(job)
        for job in decided.finished:
            self.hold.remove_old(job)
        found = decided.job
        if found is None:
            return self._create_new(make, deadline)
        ref = JobRef.of(found)
        if task_labels.generation_of(found) != self._begins.generation:
            self.log.info(_GOES_ON, ref.title)
        self.memory.record = self._new_record(ref, task_labels.token_of(found), deadline)
        by, retries = task_labels.try_that_made(found) or "?", task_labels.retries_of(found)
        return self._reattach(found, by, retries, resume=decided.decision == "resume")

    def _reattach(
        self, found: Mapping[str, Any], by: int | str, retries: int | None, *, resume: bool
    ) -> dict[str, Any]:
        """Hold the job that an earlier try created, when the task's `retries` may have been others."""
        self.known = JobRef.of(found)  # an intent has no uid yet
        self.memory.remember(ref=self.known, phase="submitted", manifest=as_created(found), reattached_at=time.time())
        self.log.info("%s, which try %s created, is waited for again.", self.ref.title, by)
        if retries not in (None, self._begins.retries):  # after an edit of `retries` nothing tells a Clear from a retry
            self.log.warning(
                "The task's retries were %d when %s was waited for before, and are %d now. If the task was cleared to "
                "run with other arguments, clear it once more: this job has the old ones.",
                retries,
                self.ref.title,
                self._begins.retries,
            )
        return self.hold.take_over(found, self.ref, resume=resume)

    def _create_new(self, make: Make, deadline: float | None) -> dict[str, Any]:
        token = task_labels.new_token()
        manifest = make(token)
        self.memory.record = self._new_record(JobRef.of(manifest), token, deadline)
        self.memory.remember()
        return self._submit(manifest)

    def _new_record(self, ref: JobRef, token: str, deadline: float | None, of: Record | None = None) -> Record:
        """Return what is remembered of a job from this try on, after what another try remembered of it."""
        before = of or Record(ref=ref, token=token, generation=0, try_number=self._begins.number)
        return msgspec.structs.replace(
            before,
            generation=self._begins.generation,
            retries=self._begins.retries,
            last_try=self._begins.number,
            waits_in="worker",
            deadline=deadline,
            redeferrals=0,
        )

    def _submit(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create the job whose intent is stored; one that exists and has the intent's token is that job."""
        record = self.memory.written
        ref = record.ref
        self._stop_if_killed()
        if self.waits:
            self.hold.write(manifest, ref)
        try:
            job = self.hook.create_job(manifest)
        except ApiError as e:
            if e.reason != "AlreadyExists":
                raise
            there = self.hook.get_job(ref)
            if there is None or not reattach.is_ours(there, record):
                raise MXNetJobNameTakenError(f"{ref.title} exists and was not created by this task.") from e
            job = there
            self.log.info("%s had been created; the API server's reply was lost.", ref.title)
        else:
            self.log.info("Created %s.", ref.title)
        self.known = JobRef.of(job)
        self._stop_if_killed()
        self.memory.remember(ref=self.known, phase="submitted", manifest=as_created(job))
        return self.hold.take_over(job, self.ref)

    def _look(self, timeout: float) -> dict[str, Any] | None:
        """Return the job as it is now; None where it is gone, or the API server doesn't answer within `timeout` s."""
        try:
            found = self.hook.get_job_once(self.ref, timeout=timeout)
        except OF_THE_SERVER:
            return None
        return found if found is not None and found["metadata"]["uid"] == self.ref.uid else None

    def _stop_if_killed(self) -> None:
        """Stop a task that was killed by a signal before its job was known: it goes on after the signal."""
        if self.killed.is_set():
            self.worker_ends()
            raise MXNetJobError("The task was killed before it waited for its job.")
