"""The MXJob of one try of a task: made or found again, remembered in Airflow's task state store, ended with the try."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mxnet_operator.api.conditions import SUCCEEDED, TERMINAL, job_state
from mxnet_operator.api.job_url import job_page
from mxnet_operator.api.storable import storable
from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import MXNetJobError, MXNetJobNameTakenError, MXNetJobUnreachableError
from mxnet_provider.hooks import api_errors
from mxnet_provider.job import event, holder, kill, reattach, task_labels
from mxnet_provider.job.completion import success_is_known
from mxnet_provider.job.event import Event
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import Decide, Ending
from mxnet_provider.job.reattach import Record
from mxnet_provider.job.task_state import CLEARED, ENDED_BY_A_USER, UNANSWERED, state_in
from mxnet_provider.links.mxnet_job import job_url
from mxnet_provider.options import EndOptions

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

_REDEFERRALS: Final = 3
_GOES_ON: Final = (
    "{title} goes on: Airflow had failed its task, and no user ended it. For a new job, clear the task while it runs."
)
_DID: Final = {"delete": "Deleted", "suspend": "Suspended"}
_STATE_SECONDS: Final = 4.0
"""Of the five seconds that a worker has between SIGTERM and SIGKILL; the rest is for the API server."""
_LOOK_SECONDS: Final = 10.0
_PAGE_SECONDS: Final = 2.0
"""How long a worker that is about to leave its job waits for the controller to reconcile it."""
_PAGE_PAUSE: Final = 0.1
"""Seconds before the first look, and twice as long before each further one."""
_XCOMS: Final = ("job_name", "job_namespace", "job_uid")
_URL_XCOM: Final = "job_url"


class XComStateStore:
    """Stand-in for Airflow's task state store (3.3) in the task's XComs: they outlive a deferral, and not the try.

    Args:
        ti: The task instance.
    """

    def __init__(self, ti: Any) -> None:
        self._ti = ti

    def get(self, key: str) -> Any:
        """Return what was set; None for nothing."""
        return _own_xcom(self._ti, key)

    def set(self, key: str, value: Any) -> None:
        """Remember a value, which is JSON."""
        self._ti.xcom_push(key=key, value=value)


def _own_xcom(ti: Any, key: str) -> Any:
    index = -1 if ti.map_index is None else ti.map_index
    return ti.xcom_pull(task_ids=ti.task_id, key=key, map_indexes=index)


class TaskJob:
    """Job of a try, from before it is created until it is over.

    A try begins with `begin`, or after a deferral with `recall`; from there on there is a `ref`.

    Args:
        context: Airflow's, of this try.
        hook: For the cluster.
        log: The task's.
        plural: The resource that a new job is one of.
        durable: Whether an earlier try's job is looked for, and this one's remembered.
        ends: What is done with jobs that are over, or whose task is.
        waits: Whether the try waits for the job, and so holds it.
        lease: What a job that it holds carries; None for none.
        retries: The task's, as its DAG says now.
    """

    def __init__(
        self,
        context: "Context",
        hook: "MXNetJobHook",
        *,
        log: "Logger",
        plural: str,
        durable: bool,
        ends: EndOptions,
        waits: bool,
        lease: holder.Lease | None,
        retries: int,
    ) -> None:
        self._ti = context["ti"]
        self._begins = reattach.Try(
            number=self._ti.try_number, generation=task_labels.generation(self._ti), retries=retries
        )
        self.token = holder.token_of_try(self._ti.try_number, airflow_versions.id_of_try(self._ti))
        self.lease = lease
        self._waits = waits
        self._holds = holder.held_by_try(self.token)
        self.renewer: holder.LeaseRenewer | None = None
        """What holds the job for this process, and renews its lease."""
        store = context.get("task_state_store") if durable else None
        self._outlives_tries = store is not None
        self._store: Any = XComStateStore(self._ti) if store is None else store
        self._hook = hook
        self._log = log
        self._plural = plural
        self._durable = durable
        self._ends = ends
        self.known: JobRef | None = None
        self._record: Record | None = None
        self.page = ""
        """Address of the job's page, once its status gave one."""
        self.killed = threading.Event()
        self.is_let_go = False
        """Whether this process is done with the job: a signal to the worker is then no user's kill."""

    @property
    def ref(self) -> JobRef:
        """The job, once it is known."""
        if self.known is None:
            raise RuntimeError("there is no job yet")
        return self.known

    @property
    def title(self) -> str:
        """Name in messages of the job, which may be no more than intended."""
        ref = self.known or (self._record.ref if self._record else None)
        return ref.title if ref else "the MXJob"

    @property
    def deadline(self) -> float | None:
        """Time at which the try runs out of time, in seconds since the epoch."""
        return self._record.deadline if self._record else None

    @property
    def reattached_at(self) -> float | None:
        """Time at which the try found the job, in seconds since the epoch; None where it created it."""
        return self._record.reattached_at if self._record else None

    @property
    def outcome(self) -> Event:
        """Outcome of an earlier try's wait."""
        return event.read(self._remembered.outcome)

    def begin(
        self,
        make: Callable[[str], dict[str, Any]],
        deadline: float | None,
        *,
        namespace: Callable[[], str],
        reuse_succeeded: bool,
    ) -> dict[str, Any] | None:
        """Return the job to wait for, created or found; None where an earlier try's outcome does.

        Args:
            make: The manifest to create, for a token: called for nothing but what is created.
            deadline: When this try runs out of time, in seconds since the epoch.
            namespace: Where jobs of earlier tries are looked for by their labels.
            reuse_succeeded: Whether a job that has succeeded does for a retry.
        """
        job = self._begin(make, deadline, namespace=namespace, reuse_succeeded=reuse_succeeded)
        self._stop_if_killed()
        self.page = self._record.page if self._record else ""
        self._push()
        if job is not None:
            self.note_page(job_page(job))
        return job

    def recall(self) -> None:
        """Know again, after a deferral, which job this try is about."""
        self._recall()
        self._stop_if_killed()

    def await_page(self, job: Mapping[str, Any]) -> None:
        """Wait, for a moment, until the controller has said where the job's page is: links are written after this.

        It says so with the first status. Where Airflow's configuration says it, there is nothing to wait for.
        """
        until, pause = time.monotonic() + _PAGE_SECONDS, _PAGE_PAUSE
        while not (job_state(job) or job_url(self.ref)) and time.monotonic() < until:
            self.killed.wait(pause)
            self._stop_if_killed()
            pause *= 2
            try:
                found = self._hook.get_job_once(self.ref, timeout=_PAGE_SECONDS)
            except Exception as e:
                if api_errors.refusal(e) is None and not api_errors.is_transient(e):
                    raise
                return  # who waits for the job will meet that, and say it
            if found is None or found["metadata"]["uid"] != self.ref.uid:
                return
            job = found
        self.note_page(job_page(job))

    def note_page(self, page: str) -> None:
        """Remember the address that the job's status gives its page, if it is new and Airflow has no template."""
        if not page or page == self.page or job_url(self.ref):
            return
        self.page = page
        self._remember(page=page)
        self._push_url()

    def hand_over(self) -> None:
        """Note that a trigger waits for the job from here on."""
        self._remember(waits_in="trigger")
        self.is_let_go = True

    def redefer(self) -> None:
        """Count another deferral of this try, after a trigger that ended without an event; three are allowed."""
        before = self._record.redeferrals if self._record else _REDEFERRALS
        if before >= _REDEFERRALS:
            raise MXNetJobUnreachableError(
                f"The trigger ended without an event {before + 1} times. {self.ref.title} is left running; "
                "another try will go on waiting for it."
            )
        self._remember(redeferrals=before + 1)

    def finished(self, ended: Event) -> None:
        """Remember the end before anything is deleted, so that a retry doesn't ask a job that is gone."""
        suspended = ended.status in ("timeout", "startup_timeout") and self._ends.on_kill_action != "delete"
        if not suspended:
            self._remember(phase="finished", outcome=ended.payload())
        self._remove_finished(self.ref, (ended.summary or {}).get("state"), self._holds)

    def worker_ends(self) -> None:
        """Do as `kill` where a user ended or cleared the task; else the job stays, and the next try goes on with it.

        Airflow ends a worker as well when its scheduler crashed and the task was reset, and a node when it is drained.
        """
        self.killed.set()
        if self.known is None or self.is_let_go or self._ends.on_kill_action == "keep":
            return
        state, unsaid = self._task_state()
        if state in ENDED_BY_A_USER:
            was = "cleared" if state == CLEARED else "ended"
            self.kill(f"its task was {was} by a user", is_cleared=state == CLEARED)
            return
        has = f"Airflow does not say how the task stands: {unsaid}" if unsaid else f"Airflow has the task as {state}"
        self._log.warning("%s goes on, for the next try or until its lease runs out: %s.", self.title, has)

    def kill(self, why: str, *, is_cleared: bool = False) -> None:
        """Delete, suspend or keep the unfinished job; another that has its name by now is left alone.

        Where the API server does not answer, the job's lease ends it.
        """
        self.killed.set()
        if self.known is None or self.is_let_go or self._ends.on_kill_action == "keep":
            return
        action, ref = self._ends.on_kill_action, self.known
        decide = partial(kill.request, uid=ref.uid, action=action, holds=self._holds, is_cleared=is_cleared)
        self._log.info("%s is to be %s: %s.", ref.title, _DID[action].lower(), why)
        try:
            ended = self._end(ref, decide)
        except Exception as e:
            if api_errors.refusal(e) is None and not api_errors.is_transient(e):
                raise
            lease = None if self.lease is None else self.lease.seconds
            self._log.error("%s", kill.not_ended(ref.title, api_errors.message(e), lease, ref.namespace))
            return
        self.is_let_go = True
        if ended.done:
            self._log.info("%s %s: %s.", _DID[action], ref.title, why)
        elif ended.why:
            self._log.warning("%s is left alone: %s.", ref.title, ended.why)

    def _task_state(self) -> tuple[str | None, str]:
        """Return the state in which Airflow has the task, or UNANSWERED, and why it is not answered.

        Asked in a thread: the signal that ends a worker may have come in the middle of another question, which holds
        the lock on them.
        """
        answer: list[tuple[str | None, str]] = []

        def ask() -> None:
            try:
                answer.append((state_in(airflow_versions.states_for_worker(self._ti), self._ti), ""))
            except Exception as e:
                answer.append((UNANSWERED, f"{type(e).__name__}: {e}"))

        asking = threading.Thread(target=ask, name="how the task stands", daemon=True)
        asking.start()
        asking.join(_STATE_SECONDS)
        return answer[0] if answer else (UNANSWERED, f"no answer within {_STATE_SECONDS} s")

    def success_is_known(self) -> bool:
        """Whether the job has succeeded, or will once its Scheduler is stopped; False where the API server is away."""
        try:
            job = self._hook.get_job_once(self.ref, timeout=_LOOK_SECONDS)
        except Exception as e:
            if api_errors.refusal(e) is None and not api_errors.is_transient(e):
                raise
            return False
        if job is None or job["metadata"]["uid"] != self.ref.uid:
            return False
        return job_state(job) == SUCCEEDED or success_is_known(job)

    def observe(self, job: Mapping[str, Any]) -> None:
        """Note where the job's page is, as it was just read."""
        self.note_page(job_page(job))

    def _begin(
        self,
        make: Callable[[str], dict[str, Any]],
        deadline: float | None,
        *,
        namespace: Callable[[], str],
        reuse_succeeded: bool,
    ) -> dict[str, Any] | None:
        if not self._durable:
            return self._create_new(make, deadline)
        if not self._outlives_tries:
            return self._begin_by_labels(make, deadline, namespace(), reuse_succeeded=reuse_succeeded)
        record = reattach.load(self._store.get(reattach.STORE_KEY))
        found = self._hook.get_job(record.ref) if record is not None else None
        decision = reattach.decide(record, self._begins, found, reuse_succeeded=reuse_succeeded)
        if record is None or decision == "create":
            if record is not None and found is not None and reattach.is_ours(found, record):
                self._remove_old(found, record.ref.plural)
            return self._create_new(make, deadline)
        if decision == "replace" and found is not None:
            self._replace(found, JobRef.of(found, record.ref.plural))
            return self._create_new(make, deadline)
        if record.generation != self._begins.generation:
            self._log.info("%s", _GOES_ON.format(title=record.ref.title))
        self._record = msgspec.structs.replace(
            record,
            deadline=deadline,
            redeferrals=0,
            generation=self._begins.generation,
            retries=self._begins.retries,
            last_try=self._begins.number,
            waits_in="worker",
        )
        self.known = record.ref
        if decision == "reuse":
            self._remember()
            return None
        if decision == "create_same":
            self._log.info("An earlier try (%d) was about to create %s.", record.try_number, record.ref.title)
            return self._submit(make(record.token))
        if found is None:
            raise RuntimeError(f"nothing to do for decision {decision!r}")
        self.known = JobRef.of(found, record.ref.plural)  # an intent has no uid yet
        self._remember(ref=self.known, phase="submitted", reattached_at=time.time())
        self._log.info("%s, which try %d created, is waited for again.", self.ref.title, record.try_number)
        self._warn_of_other_retries(record.retries)
        return self._take_over(found, resume=decision == "resume")

    def _recall(self) -> None:
        record = reattach.load(self._store.get(reattach.STORE_KEY))
        if record is not None and record.generation == self._begins.generation:
            self._record, self.known, self.page = record, record.ref, record.page
            self._remember(waits_in="worker")
            return
        name, namespace, uid = (_own_xcom(self._ti, key) for key in _XCOMS)
        if not (name and namespace and uid):
            raise MXNetJobError("Neither Airflow's task state store nor the task's XComs say which job this is.")
        self.known = JobRef(name=name, namespace=namespace, uid=uid, plural=self._plural)
        self.page = _own_xcom(self._ti, _URL_XCOM) or ""

    def _begin_by_labels(
        self,
        make: Callable[[str], dict[str, Any]],
        deadline: float | None,
        namespace: str,
        *,
        reuse_succeeded: bool,
    ) -> dict[str, Any]:
        """Begin as with a store that outlives tries, from what the jobs themselves say."""
        like = JobRef(name="", namespace=namespace, plural=self._plural)
        jobs = self._hook.list_jobs(like, task_labels.selector(self._ti))
        decided = reattach.decide_by_labels(jobs, self._begins, reuse_succeeded=reuse_succeeded)
        for job in decided.replaced:
            self._replace(job, JobRef.of(job, self._plural))
        for job in decided.finished:
            self._remove_old(job, self._plural)
        found = decided.job
        if found is None:
            return self._create_new(make, deadline)
        self.known = JobRef.of(found, self._plural)
        if task_labels.generation_of(found) != self._begins.generation:
            self._log.info("%s", _GOES_ON.format(title=self.ref.title))
        self._record = self._new_record(self.known, task_labels.token_of(found), deadline)
        self._remember(phase="submitted", reattached_at=time.time())
        by = task_labels.try_that_made(found) or "?"
        self._log.info("%s, which try %s created, is waited for again.", self.ref.title, by)
        self._warn_of_other_retries(task_labels.retries_of(found))
        return self._take_over(found, resume=decided.decision == "resume")

    def _warn_of_other_retries(self, before: int | None) -> None:
        """Say that the job may be that of a task which was cleared: after an edit of `retries` nothing tells that."""
        if before not in (None, self._begins.retries):
            self._log.warning(
                "The task's retries were %d when %s was waited for before, and are %d now. If the task was cleared to "
                "run with other arguments, clear it once more: this job has the old ones.",
                before,
                self.ref.title,
                self._begins.retries,
            )

    def _create_new(self, make: Callable[[str], dict[str, Any]], deadline: float | None) -> dict[str, Any]:
        token = task_labels.new_token()
        manifest = make(token)
        self._record = self._new_record(JobRef.of(manifest, self._plural), token, deadline)
        self._remember()
        return self._submit(manifest)

    def _new_record(self, ref: JobRef, token: str, deadline: float | None) -> Record:
        """Return what is remembered of a job from this try on: the intent to create it."""
        return Record(
            ref=ref,
            token=token,
            generation=self._begins.generation,
            retries=self._begins.retries,
            last_try=self._begins.number,
            try_number=self._begins.number,
            waits_in="worker",
            deadline=deadline,
        )

    def _submit(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create the job whose intent is stored; one that is there and has the intent's token is that job."""
        record, ref = self._remembered, self._remembered.ref
        self._stop_if_killed()
        self._write_token(manifest, ref)
        try:
            job = self._hook.create_job(manifest, ref.plural)
        except Exception as e:
            answer = api_errors.refusal(e)
            if answer is None or answer.reason != "AlreadyExists":
                raise
            there = self._hook.get_job(ref)
            if there is None or not reattach.is_ours(there, record):
                raise MXNetJobNameTakenError(f"{ref.title} exists and was not created by this task.") from e
            job = there
            self._log.info("%s had been created; the API server's reply was lost.", ref.title)
        else:
            self._log.info("Created %s.", ref.title)
        self.known = JobRef.of(job, ref.plural)
        self._stop_if_killed()
        self._remember(ref=self.known, phase="submitted")
        return self._take_over(job)

    def _write_token(self, manifest: dict[str, Any], ref: JobRef) -> None:
        """Make the job this try's from its creation on, if the account has the right that it takes to hold it."""
        if not self._waits:
            return
        if not self._hook.may_patch(ref):
            self._log.warning(
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

    def _take_over(self, job: Mapping[str, Any], *, resume: bool = False) -> dict[str, Any]:
        """Write this try's token into a job that an earlier one held, and undo our own suspension."""
        for _ in range(kill.ATTEMPTS):
            standing = holder.holder_of(job)
            if holder.is_newer(standing, self.token):
                raise MXNetJobError(
                    f"{self.ref.title} is left alone: {holder.title_of(standing)} waits for it now, and this is an "
                    "earlier one."
                )
            is_held = bool(standing) and job_state(job) not in TERMINAL
            if is_held:
                self.renewer = holder.LeaseRenewer(self.token, self.token, self.lease, is_written=True)
            patch: dict[str, Any] = kill.resumption(job) if resume else {}
            if is_held and standing != self.token:
                claim = holder.claim(job, self.token, self.lease, datetime.now(UTC))
                given = (patch.get("metadata") or {}).get("annotations") or {}
                claim["metadata"]["annotations"] |= given
                patch = {**patch, **claim}
            if not patch or self._hook.patch_job(self.ref, patch):
                if resume:
                    self._log.info("%s was suspended when the task was killed; resumed.", self.ref.title)
                return dict(job)
            found = self._hook.get_job(self.ref)
            if found is None or found["metadata"]["uid"] != self.ref.uid:
                return dict(job)  # the waiting will find that, and say it
            job = found
        raise MXNetJobError(f"{self.ref.title} could not be taken over: it kept changing.")

    def _stop_if_killed(self) -> None:
        """Stop a task that was killed by a signal before its job was known: it goes on after the signal."""
        if self.killed.is_set():
            self.worker_ends()
            raise MXNetJobError("The task was killed before it waited for its job.")

    def _replace(self, job: Mapping[str, Any], ref: JobRef) -> None:
        """Clear starts anew: what the task had before is ended, unless it has finished or is to be kept."""
        standing = holder.holder_of(job)
        if holder.is_newer(standing, self.token):
            raise MXNetJobError(f"{ref.title} is left alone: {holder.title_of(standing)} waits for it now.")
        action: kill.Action = "keep" if self._ends.on_kill_action == "keep" else "delete"
        holds = holder.held_by_try(holder.try_of(standing))
        ended = self._end(ref, partial(kill.request, uid=ref.uid, action=action, holds=holds, is_cleared=True))
        if ended.done:
            self._log.info("Deleted %s, because the task was cleared.", ref.title)
        elif ended.why:
            self._log.warning("%s, which the task had before it was cleared, is left alone: %s.", ref.title, ended.why)

    def _remove_old(self, job: Mapping[str, Any], plural: str) -> None:
        """Do with the finished job of an earlier try what that died before, as far as nobody has taken it since."""
        self._remove_finished(JobRef.of(job, plural), job_state(job), holder.held_exactly_by(holder.holder_of(job)))

    def _remove_finished(self, ref: JobRef, state: str | None, holds: holder.Holds) -> None:
        if state in TERMINAL and self._ends.on_finish_action in ("delete", f"delete_{state.lower()}"):
            try:
                ended = self._end(ref, partial(kill.removal, uid=ref.uid, holds=holds))
            except Exception as e:
                if api_errors.refusal(e) is None and not api_errors.is_transient(e):
                    raise
                # What became of the job is known by now, and is not lost over the cleaning up behind it.
                said = api_errors.message(e)
                self._log.warning("%s, which has finished, could not be deleted: %s", ref.title, said)
                return
            if ended.done:
                self._log.info("Deleted %s, which has finished.", ref.title)
            elif ended.why:
                self._log.info("%s, which has finished, is not deleted: %s.", ref.title, ended.why)

    def _end(self, ref: JobRef, decide: Decide) -> Ending:
        return self._hook.end_job(ref, decide, propagation_policy=self._ends.propagation_policy)

    def _remember(self, **changes: Any) -> None:
        if self._record is None:
            return
        self._record = msgspec.structs.replace(self._record, **changes)
        self._store.set(reattach.STORE_KEY, storable(msgspec.to_builtins(self._record)))

    def _push(self) -> None:
        """Tell tasks downstream, and the links of this one's page, which job it is."""
        ref = self.ref
        for key, value in zip(_XCOMS, (ref.name, ref.namespace, ref.uid), strict=True):
            self._ti.xcom_push(key=key, value=storable(value))
        self._push_url()

    def _push_url(self) -> None:
        url = job_url(self.ref) or self.page
        if url:
            self._ti.xcom_push(key=_URL_XCOM, value=storable(url))

    @property
    def _remembered(self) -> Record:
        if self._record is None:
            raise RuntimeError("there is no record yet")
        return self._record
