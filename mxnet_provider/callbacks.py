"""Functions of a DAG's author that are called as a job goes on, as KubernetesPodOperator has them for a pod."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mxnet_provider.operators.mxnet_job import MXNetJobOperator


class MXNetJobCallback:
    """Base of callbacks: override what is wanted. They run in the worker, never in the triggerer.

    An exception of `on_manifest_created` fails the task before there is a job. One of the others is logged, and changes
    nothing: the job runs, or has ended. An override takes `**kwargs`, for what later releases add.
    """

    @staticmethod
    def on_manifest_created(
        *, manifest: dict[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Before the job is validated and created; what is changed in the manifest is created."""

    @staticmethod
    def on_job_creation(
        *, job: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Once for each try: its job was created, or that of an earlier try was found."""

    @staticmethod
    def on_operator_resuming(
        *, event: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Handle a deferred task that is in a worker again, with the event of its trigger."""

    @staticmethod
    def on_job_completion(
        *, event: Mapping[str, Any], operator: "MXNetJobOperator", context: "Context", **kwargs: Any
    ) -> None:
        """Handle the end of the waiting, with the job still as it ended.

        The event's `status` is succeeded, failed, deleted, timeout or startup_timeout; its `summary` is what the task
        returns (None where the job isn't over), `failed_replicas` says which replicas failed, `message` why.
        """


def callbacks_of(given: Any) -> tuple[type[MXNetJobCallback], ...]:
    """Return the callbacks as a tuple of classes.

    Raises:
        TypeError: one is none.
    """
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


__all__ = ["MXNetJobCallback"]
