"""Functions of a DAG's author that are called as a job goes on, as KubernetesPodOperator has them for a pod."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mxnet_provider.operators.mxnet_job import MXNetJobOperator


class MXNetJobCallback:
    """Base class of callbacks, which run in the worker, never in the triggerer.

    An exception in `on_manifest_created` fails the task, and no job is created. An exception in another callback is
    logged. An override takes `**kwargs`, because later releases may pass more.
    """

    @staticmethod
    def on_manifest_created(
        *, manifest: dict[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Change the manifest before the job is validated and created."""

    @staticmethod
    def on_job_creation(
        *, job: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Handle a job that was created, or found again; called once for each try."""

    @staticmethod
    def on_operator_resuming(
        *, event: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Handle a deferred task that resumes in a worker, with the event of its trigger."""

    @staticmethod
    def on_job_completion(
        *, event: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Handle the end of the wait, before `on_finish_action` and `on_kill_action`.

        The event has `status` (succeeded, failed, deleted, timeout or startup_timeout), `summary` (what the task
        returns; None if the job isn't over), `failed_replicas`, and `message`.
        """


def callbacks_of(given: Any) -> tuple[type[MXNetJobCallback], ...]:
    """Return the callbacks as a tuple of classes; raise TypeError where one is none."""
    several = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    for each in several:
        if not (isinstance(each, type) and issubclass(each, MXNetJobCallback)):
            raise TypeError(f"callbacks must be classes derived from MXNetJobCallback, not {each!r}")
    return several


def call_back(operator: "MXNetJobOperator", name: str, context: "Context", **what: Any) -> None:
    """Call one function of each callback. A mistake in it is logged: the job goes on, and so does its task."""
    for callback in callbacks_of(operator.callbacks):
        try:
            getattr(callback, name)(**what, operator=operator, context=context)
        except Exception:
            operator.log.exception("%s.%s failed; the task goes on", callback.__name__, name)
