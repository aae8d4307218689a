"""`@task.mxnet_cmd`: a function that returns the command of an MXJob, as `@task.kubernetes_cmd` has it for a pod."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    DecoratedOperator,
    context_merge,
    determine_kwargs,
    task_decorator_factory,
)

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import TaskDecorator
    from airflow.sdk import Context


class MXNetCmdDecoratedOperator(DecoratedOperator, MXNetJobOperator):
    """Run the command that a function returns, a list of strings, as an MXJob; templates in it are rendered."""

    custom_operator_name = "@task.mxnet_cmd"
    template_fields: Sequence[str] = ("op_args", "op_kwargs", *MXNetJobOperator.template_fields)

    def __init__(self, *, python_callable: Callable[..., Any], **kwargs: Any) -> None:
        if given := {"command", "args"} & kwargs.keys():
            raise TypeError(
                f"{' and '.join(sorted(given))}: {self.custom_operator_name} runs what its function returns"
            )
        super().__init__(python_callable=python_callable, **kwargs)

    def execute(self, context: "Context") -> dict[str, Any]:
        """Call the function in the worker, and run what it returns as `MXNetJobOperator` does.

        Raises:
            TypeError: it returns no list of strings, or an empty one.
        """
        context_merge(context, self.op_kwargs)
        kwargs = determine_kwargs(self.python_callable, self.op_args, context)
        command = self.python_callable(*self.op_args, **kwargs)
        if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
            name = self.python_callable.__name__
            raise TypeError(f"{name} must return the command as a list of strings, not {command!r}")
        self.command = command
        self.render_template_fields(context)
        return MXNetJobOperator.execute(self, context)


def mxnet_cmd_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> "TaskDecorator":
    """Make a task of a function that returns the command of an MXJob.

    Args:
        python_callable: The function.
        kwargs: As for `MXNetJobOperator`, but for `command` and `args`.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=MXNetCmdDecoratedOperator, **kwargs
    )
