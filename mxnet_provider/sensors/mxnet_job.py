"""The Airflow task that waits for an MXJob which something else created."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    BaseSensorOperator,
    conf,
)

from mxnet_operator.api.conditions import FAILED, SUCCEEDED
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_provider import airflow_versions
from mxnet_provider.cluster import ClusterAccessMixin, connection_of
from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobUnreachableError,
    MXNetPermissionError,
)
from mxnet_provider.job.sensor_state import SensorEvent, settled
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.links.mxnet_job import MXNetJobLink, MXNetLogsLink
from mxnet_provider.options import WaitOptions, is_given, require_states

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mxnet_provider.triggers.mxnet_job_state import MXNetJobStateTrigger

_SILENT: Final = frozenset({"failed", "missing", "error"})
"""What `silent_fail` bears, as Airflow has it: all but errors with which Airflow fails a task for good."""


class MXNetJobSensor(ClusterAccessMixin, BaseSensorOperator):
    """Wait until an MXJob is in one of some states; by default until it has succeeded.

    The sensor doesn't own the job: killing or clearing it never touches the job. Its log says within five seconds what
    the job waits for, with `mode="reschedule"` at each poke.

    Args:
        job_name: Name of the job. (templated)
        namespace: Namespace of the job; unset, the connection's, else the one that Airflow runs in, else
            `default`. (templated)
        target_states: States that end the wait: Created, Running, Restarting, Suspended, Succeeded, Failed. A
            Succeeded job counts as Created and Running, too.
        fail_states: States in which the sensor fails.
        missing_ok: If True, a job that doesn't exist is waited for; if False, the sensor fails.
        deferrable: Wait in the triggerer instead of a worker; unset, `[operators] default_deferrable`.
        api_outage_tolerance: Time for which the API server may be unreachable before the sensor fails; two minutes
            with `mode="reschedule"`.
        kwargs: As for every sensor. With `soft_fail` or `never_fail` the task is skipped wherever it would
            fail; with `silent_fail` it waits until `timeout`.
    """

    template_fields: Sequence[str] = ("job_name", "namespace", *ClusterAccessMixin.template_fields)
    operator_extra_links = (MXNetJobLink(), MXNetLogsLink())
    ui_color = "#cfe2f3"

    def __init__(
        self,
        *,
        job_name: str,
        namespace: str | None = None,
        target_states: Sequence[str] = (SUCCEEDED,),
        fail_states: Sequence[str] = (FAILED,),
        missing_ok: bool = False,
        deferrable: bool | None = None,
        api_outage_tolerance: timedelta | float = WaitOptions.api_outage_tolerance,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_states("target_states", target_states)
        require_states("fail_states", fail_states)
        self.job_name = job_name
        self.namespace = namespace
        self.target_states = target_states
        self.fail_states = fail_states
        self.missing_ok = missing_ok
        self.deferrable = (
            conf.getboolean("operators", "default_deferrable", fallback=False) if deferrable is None else deferrable
        )
        self.api_outage_tolerance: Any = api_outage_tolerance
        _ = self._outage_tolerance  # a mistake is raised where the DAG is parsed
        self.job_ref: JobRef | None = None
        self.job_page = ""
        self._state_log: StateLog | None = None

    def execute(self, context: "Context") -> Any:
        """Wait for the job.

        Raises:
            MXNetJobFailedError: the job is in one of `fail_states`.
            MXNetJobDeletedError: there is no such job.
            MXNetPermissionError: the API server rejects it for want of a right, which it names.
            MXNetJobUnreachableError: the API server was away for too long.
            MXNetJobError: the job's name is empty: what it was to come from has not run.
            AirflowSensorTimeout: `timeout` is over.
        """
        tolerance = self._outage_tolerance
        if self.silent_fail:
            tolerance = max(tolerance, float(self.timeout))
        if not is_given(self.job_name):
            self._fail(MXNetJobError(f"job_name ({self.job_name!r}) must say which job."))
        if self.mode == "reschedule" and not self.deferrable:
            try:
                return super().execute(context)
            except AirflowSensorTimeout as e:  # of itself, Airflow asks for soft_fail alone
                self._fail(e)
        decision = self._read()
        if decision is not None and decision.status == "error":
            self.log.warning("The API server doesn't answer; waiting for it: %s", decision.message)
        elif decision is not None and not (self.silent_fail and decision.status in _SILENT):
            self._conclude(decision)
            return None
        trigger = self._trigger(tolerance)
        if not self.deferrable:
            self._conclude(self._wait(trigger))
            return None
        # Airflow 2.11 takes nothing else than a timedelta, though it makes a number of the sensor's own.
        return self.defer(
            trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=float(self.timeout))
        )

    def _trigger(self, tolerance: float) -> "MXNetJobStateTrigger":
        """Return the trigger, whose wait this process can do, too; with silent_fail only the timeout ends it."""
        from mxnet_provider.triggers.mxnet_job_state import MXNetJobStateTrigger  # noqa: PLC0415 - as for the hook

        ref = self._ref()
        return MXNetJobStateTrigger(
            name=ref.name,
            namespace=ref.namespace,
            target_states=list(self.target_states),
            fail_states=[] if self.silent_fail else list(self.fail_states),
            missing_ok=self.missing_ok or self.silent_fail,
            poll_interval=float(self.poke_interval),
            api_outage_tolerance=tolerance,
            **connection_of(self),
        )

    def _wait(self, trigger: "MXNetJobStateTrigger") -> SensorEvent:
        from mxnet_provider.watch import run_in_thread  # noqa: PLC0415 - not where a DAG is parsed

        async def wait() -> SensorEvent:
            async with self.hook.job_client() as client, asyncio.timeout(float(self.timeout)):
                return await trigger.watch(client, self.log)

        try:
            return run_in_thread(wait())
        except TimeoutError:
            said = f"{self._ref().title} is in none of {', '.join(self.target_states)} after {self.timeout} s."
            self._fail(AirflowSensorTimeout(said))
        except (Exception, AirflowTaskTimeout) as e:
            self._fail(e)

    def poke(self, context: "Context") -> bool:  # noqa: ARG002
        """Read the job once, as `mode="reschedule"` does."""
        decision = self._read()
        return decision is not None and self._conclude(decision)

    def _read(self) -> SensorEvent | None:
        """Read the job, and return what it means for the sensor; None to wait."""
        try:
            job = self.hook.get_job(self._ref())
        except OF_THE_SERVER as e:
            return SensorEvent.of_error(e)
        decision = settled(
            job, target_states=self.target_states, fail_states=self.fail_states, missing_ok=self.missing_ok
        )
        if decision is None and job is not None:
            self._state_log = self._state_log or StateLog(self._ref())
            self._state_log.report(job, self.log)
        return decision

    def execute_complete(self, context: "Context", event: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002
        """Go on where the trigger ended; the arguments are Airflow's."""
        try:
            decision = msgspec.convert(event, SensorEvent)
        except msgspec.ValidationError as e:
            unknown = MXNetJobError(f"The trigger sent an event that this release does not know: {event!r}")
            unknown.__cause__ = e
            self._fail(unknown)
        self._conclude(decision)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: "Context") -> Any:
        """Resume as every sensor does, but fail or skip alike in every release of Airflow.

        Before 3.1 none asks for `never_fail` here, 3.0 asks for neither option where the time is over, and 2 has no
        error of its own for that.
        """
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSkipException:
            raise
        except (AirflowException, *airflow_versions.DEFERRAL_ERRORS) as e:
            self._fail(AirflowSensorTimeout(*e.args) if airflow_versions.is_deferral_timeout(e) else e)

    def _conclude(self, decision: SensorEvent) -> bool:
        ref = self._ref()
        self.job_ref = msgspec.structs.replace(ref, uid=decision.uid)
        self.job_page = decision.page
        if decision.status == "reached":
            self.log.info("%s is %s.", ref.title, decision.state)
            return True
        error = _error(ref, decision)
        if self.silent_fail and decision.status in _SILENT:
            raise error  # Airflow logs it, and the sensor goes on
        return self._fail(error)

    def _fail(self, error: BaseException) -> NoReturn:
        """Fail with an error, or skip: of itself, Airflow asks for that in some places only."""
        for option in ("soft_fail", "never_fail"):
            if getattr(self, option):
                raise AirflowSkipException(f"{error} (skipped, as {option} says)") from error
        raise error

    @property
    def _outage_tolerance(self) -> float:
        """The attribute, checked: a cluster policy may have changed it since the DAG's author set it."""
        return WaitOptions(api_outage_tolerance=self.api_outage_tolerance).api_outage_tolerance

    def _ref(self) -> JobRef:
        stated = self.namespace if is_given(self.namespace) else None
        return JobRef(name=self.job_name, namespace=stated or self.hook.default_namespace())


def _error(ref: JobRef, decision: SensorEvent) -> Exception:
    match decision.status:
        case "failed":
            return MXNetJobFailedError(f"{ref.title} is {decision.state}: {decision.message}")
        case "missing":
            return MXNetJobDeletedError(f"There is no {ref.title}; to wait for it to come, set missing_ok.")
        case "refused":
            return MXNetPermissionError(f"The API server rejected the request to read {ref.title}: {decision.message}")
    return MXNetJobUnreachableError(f"The API server was away for too long: {decision.message}")
