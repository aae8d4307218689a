"""The Airflow task that is one MXJob: it creates it, shows its log, waits for it, and returns its result."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import msgspec
from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from mxnet_operator.api.conditions import SUCCEEDED, TERMINAL, job_state
from mxnet_operator.api.storable import storable
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.volumes import NOTHING_KEPT
from mxnet_provider import airflow_versions
from mxnet_provider.callbacks import call_back
from mxnet_provider.cluster import connection_of
from mxnet_provider.exceptions import MXNetJobError, MXNetJobUnreachableError, failure
from mxnet_provider.hooks import api_errors
from mxnet_provider.job import event as events
from mxnet_provider.job import replicas
from mxnet_provider.job.event import Event, completion_of
from mxnet_provider.job.summary import summary
from mxnet_provider.links.mxnet_job import MXNetJobLink, MXNetLogsLink
from mxnet_provider.operators.conclusion import conclude
from mxnet_provider.operators.failure_logs import show_events, show_failed
from mxnet_provider.operators.final_manifest import FinalManifestMixin
from mxnet_provider.operators.task_job import TaskJob

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mxnet_operator.client.job_client import JobRef
    from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger


_OF_AN_ASSET: Final = ("name", "namespace", "uid", "result", "files")
"""Parts of the returned value that an asset's event has as its `extra`."""
_OUT_OF_TIME: Final = "the execution_timeout of its task is over"


class MXNetJobOperator(FinalManifestMixin):
    """Run an MXJob to its end, and return its result.

    The job is a `manifest`, or `image` and the other fields of a description (docs/description.md), which are merged
    over a manifest. Its name is the manifest's, `name` or the task's id, with a random suffix. A mistake in the job
    fails the task before anything is created, without retries.

    A retry continues the job of the try before. A task that is cleared gets a new job. The job is deleted when its task
    is cleared, marked as failed or succeeded, or takes longer than `execution_timeout`.

    The task returns JSON:

    - `name`, `namespace`, `uid`, `state`, `message`, `restarts`, `duration_s`;
    - `started_at` and `completed_at` in RFC 3339;
    - `result`: what worker 0 wrote to its `/dev/termination-log`, parsed if it is JSON;
    - `replicas`: a list of `pod`, `type`, `index`, `created_at`, `started_at`, `finished_at`, `exit_code`, `outcome`
      (`unfinished`, `succeeded`, `failed` or `stopped`), empty with `cleanPodPolicy: All`;
    - `files`: the volumes that outlive the pods, such as `claim models at /models`;
    - `training`: the job's `status.training`.

    XComs from the job's creation on are `job_name`, `job_namespace`, `job_uid` and `job_url`. At its end, `metrics` has
    `{"Validation-accuracy": [[3, 0.98]]}` of a line `Epoch[3] Validation-accuracy=0.98`.

    Args:
        kwargs: As for every operator.
    """

    template_fields: Sequence[str] = ("mxjob", *FinalManifestMixin.template_fields)
    template_fields_renderers: ClassVar = {**FinalManifestMixin.template_fields_renderers, "mxjob": "yaml"}
    overwrite_rtif_after_execution = True  # with `mxjob`
    operator_extra_links = (MXNetJobLink(), MXNetLogsLink())
    ui_color = "#cfe2f3"

    result_of: ClassVar[str] = replicas.RESULT_OF
    """The replica whose termination message is the result."""
    mxjob: str | None = None
    """The job as it was created, as YAML; known once a try is deferred or has ended."""

    _job: TaskJob | None = None
    _killed = False

    @property
    def job_ref(self) -> "JobRef | None":
        """The job of this try, once it is known: what the links lead to."""
        return None if self._job is None else self._job.known

    @property
    def job_page(self) -> str:
        """The address of its page that the job's status gives; empty where it gives none."""
        return "" if self._job is None else self._job.memory.page

    def execute(self, context: "Context") -> dict[str, Any]:
        """Create the job, or find the one of an earlier try, wait for it, and return its result.

        Raises:
            MXNetManifestError: the manifest has mistakes, or the API server rejects the job for good.
            MXNetPermissionError: the API server rejects it for want of a right, which it names.
            MXNetJobFailedError: the job failed; the message is that of its Failed condition.
            AirflowSkipException: it did with one of `skip_on_exit_code`.
            MXNetJobDeletedError: the job was deleted, or replaced, before it had finished.
            MXNetJobNameTakenError: the job's name belongs to something else.
            MXNetJobStartupTimeoutError: the job's pods did not run in time.
            MXNetJobUnreachableError: the API server was away for too long; the job may be running.
        """
        with self._one_try(context) as task_job:
            timeout = self.execution_timeout
            deadline = None if timeout is None else time.time() + timeout.total_seconds()
            job = task_job.begin(
                lambda token: self._with_objects_applied(self.manifest_to_create(context, token)),
                deadline,
                self._given_namespace,
            )
            if job is None:
                self.log.info("%s has succeeded in an earlier try; that is the result.", task_job.title)
                return self._return(context, task_job.outcome)
            call_back(self, "on_job_creation", context, job=job)
            if self.deferrable or not self.wait_for_completion:
                task_job.await_page(job)
            if not self.wait_for_completion:
                begun: dict[str, Any] = storable(summary(job, [], result_of=None))
                return begun
            if job_state(job) not in TERMINAL and self.deferrable:
                self._defer(task_job, self._trigger(task_job, deadline))
            trigger = self._trigger(task_job)  # Airflow itself keeps the execution_timeout, once
            try:
                ended = self._wait(task_job, trigger)
            except AirflowTaskTimeout:
                trigger.deadline = time.time()
                if not task_job.success_is_known():
                    raise
                self.log.info("execution_timeout is over, but %s has as good as succeeded.", task_job.title)
                ended = self._wait(task_job, trigger)
            return self._complete(context, task_job, ended)

    def execute_complete(self, context: "Context", event: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Go on where the trigger ended; the arguments are Airflow's."""
        with self._one_try(context) as task_job:
            task_job.recall()
            received, ref = events.read(event), task_job.ref
            call_back(self, "on_operator_resuming", context, event=received.payload())
            if (received.name, received.namespace, received.uid) != (ref.name, ref.namespace, ref.uid):
                raise MXNetJobError(f"The trigger sent an event about another job: {received!r}")
            if received.status in ("error", "refused"):
                self.log.warning("The trigger gave up on the API server: %s", received.message)
                return self._check_again(context, task_job, log_cursors=received.log_cursors)
            return self._complete(context, task_job, received)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: "Context"
    ) -> dict[str, Any]:
        """Resume as every operator does, but check a trigger that failed or ran out of time instead of believing it."""
        try:
            result: dict[str, Any] = super().resume_execution(next_method, next_kwargs, context)
            return result
        except airflow_versions.DEFERRAL_ERRORS as e:
            failure = e
        with self._one_try(context) as task_job:
            task_job.recall()
            self.log.warning("The trigger ended without an event: %s", failure)
            is_timeout = airflow_versions.is_deferral_timeout(failure)
            # How far the log was shown is lost: go on from now.
            return self._check_again(context, task_job, out_of_time=is_timeout, deferred_at=0.0)

    def on_kill(self) -> None:
        """Delete, suspend or keep the unfinished job of this try, if it was a user who ended its task."""
        self._killed = True
        if self._job is not None:
            self._job.worker_ends()

    # How a try waits

    @contextlib.contextmanager
    def _one_try(self, context: "Context") -> Iterator[TaskJob]:
        """Hold the job of this try while this process has it; a rejection fails the task in the server's words."""
        self._job = task_job = TaskJob(
            context,
            self.hook,
            log=self.log,
            durable=self.durable,
            ends=self._end_options,
            waits=self.wait_for_completion,
            lease=self._lease(context),
            retries=self.retries or 0,
            reuse_succeeded=self.reuse_succeeded_on_retry,
        )
        if self._killed:
            task_job.worker_ends()
        try:
            yield task_job
        except KeyboardInterrupt:  # `airflow dags test` calls no on_kill
            task_job.kill("its task was interrupted")
            raise
        except AirflowTaskTimeout:
            task_job.kill(_OUT_OF_TIME)
            raise
        except airflow_versions.REFUSALS:
            # A user may have cleared the task, and no heartbeat of this try will say so any more.
            task_job.worker_ends()
            raise
        except ApiError as e:
            raise failure(e, task_job.title) from e
        else:
            task_job.is_let_go = True
        finally:
            self.mxjob = task_job.memory.record.manifest if task_job.memory.record else None
            airflow_versions.show_rendered_fields(context["ti"], self.log)

    def _trigger(self, task_job: TaskJob, deadline: float | None = None, **seen: Any) -> "MXNetJobTrigger":
        """Return the trigger, whose wait this process can do, too; `seen` is what an earlier one has left."""
        from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger  # noqa: PLC0415 - not where a DAG is parsed

        logs, ends = self._log_options, self._end_options
        return MXNetJobTrigger(
            **msgspec.structs.asdict(task_job.ref),
            **asdict(self._wait_options),
            **connection_of(self),
            deadline=deadline,
            get_logs=logs.get_logs,
            log_replicas=list(logs.log_replicas),
            result_of=None if self.result_from is None else self.result_of,
            on_kill_action=ends.on_kill_action,
            propagation_policy=ends.propagation_policy,
            stats_tags={"dag_id": self.dag_id, "task_id": self.task_id},
            holder=task_job.token,
            lease=None if task_job.lease is None else task_job.lease.seconds,
            reattached_at=task_job.reattached_at,
            **seen,
        )

    def _wait(self, task_job: TaskJob, trigger: "MXNetJobTrigger") -> Event:
        from mxnet_provider.watch import StoppedError, run_in_thread  # noqa: PLC0415 - not where a DAG is parsed

        async def watch() -> Event:
            async with self.hook.job_client() as client:
                renewer, note_page = task_job.hold.renewer, task_job.note_page
                return await trigger.watch(client, self.log, renewer, in_worker=True, observe=note_page)

        try:
            return run_in_thread(watch(), task_job.killed)
        except StoppedError as e:
            raise MXNetJobError(f"{task_job.title} is no longer waited for, because the task was killed.") from e

    def _defer(self, task_job: TaskJob, trigger: "MXNetJobTrigger") -> NoReturn:
        now, limit = time.time(), None
        if trigger.deadline is not None:  # the scheduler's, should the trigger itself be stuck
            limit = timedelta(seconds=max(trigger.deadline - now, 0) + max(60.0, 2 * trigger.poll_interval))
        trigger.deferred_at = now if trigger.deferred_at is None else trigger.deferred_at
        task_job.hand_over()
        self.defer(trigger=trigger, method_name="execute_complete", timeout=limit)

    def _check_again(
        self, context: "Context", task_job: TaskJob, *, out_of_time: bool = False, **seen: Any
    ) -> dict[str, Any]:
        """Read the job here after a trigger that ended without an event, and defer again if it just runs."""
        ref = task_job.ref
        try:
            job = self.hook.get_job(ref)
        except Exception as e:
            if not api_errors.is_transient(e):
                raise
            raise MXNetJobUnreachableError(
                f"The API server can't be reached, and {ref.title} may be running; another try will look for it: {e}"
            ) from e
        now, deadline = time.time(), task_job.deadline
        if out_of_time:
            deadline = min(deadline or now, now)
        found = completion_of(job, ref.uid, now=now, deadline=deadline)
        if found is not None:
            trigger = self._trigger(task_job, deadline, **seen)
            trigger.get_logs = False
            return self._complete(context, task_job, self._wait(task_job, trigger))
        task_job.redefer()
        return self._defer(task_job, self._trigger(task_job, task_job.deadline, **seen))

    # How the waiting ends

    def _complete(self, context: "Context", task_job: TaskJob, ended: Event) -> dict[str, Any]:
        """Conclude from the end of the waiting, for the job and for the task; every way of waiting comes here."""
        ref = task_job.ref
        task_job.memory.note_page(ref, ended.page)
        concluded = conclude(ended, ref.title, skip_on_exit_code=self.skip_on_exit_code)
        call_back(self, "on_job_completion", context, event=ended.payload())
        if concluded.error is None:
            returned = self._return(context, ended)
            task_job.finished(ended)
            return returned
        self._push_metrics(context, ended)
        if concluded.shows_logs and self._log_options.get_logs:
            show_failed(self.hook, ref, self.log, self._log_options.log_tail_on_failure, but=ended.logs_shown)
        if concluded.shows_events and self._log_options.log_events_on_failure:
            show_events(self.hook, ref, self.log)
        if concluded.ends_job:
            task_job.kill(_OUT_OF_TIME if ended.status == "timeout" else "it did not start within startup_timeout")
        task_job.finished(ended)
        raise concluded.error

    def _return(self, context: "Context", ended: Event) -> dict[str, Any]:
        if ended.summary is None or ended.summary["state"] != SUCCEEDED:
            raise MXNetJobError(f"{ended.name} was reported as succeeded, without its state: {ended!r}")
        self._push_metrics(context, ended)
        files = ended.summary.get("files")  # not in an event of an earlier release
        if files is not None:
            self.log.info("Files: %s.", ", ".join(files) or NOTHING_KEPT)
        returned: dict[str, Any] = storable(ended.summary)
        for outlet in self.outlets or ():  # who looks at an asset's event wants to know which job it is of
            about = {name: returned.get(name) for name in _OF_AN_ASSET}
            context["outlet_events"][outlet].extra.update(about)
        return returned

    def _push_metrics(self, context: "Context", ended: Event) -> None:
        if ended.metrics:
            context["ti"].xcom_push(key="metrics", value=storable(ended.metrics))
