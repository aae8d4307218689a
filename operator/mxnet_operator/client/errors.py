"""Errors of work with a job: what is wrong with it, how it ended, or that the server doesn't answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxnet_operator.api.structural import FieldError

if TYPE_CHECKING:
    from mxnet_operator.client.job_status import JobStatus


class MXJobError(Exception):
    """Base of the errors that are about one job; what a server rejects or withholds is `ApiError`, `ApiUnavailable`."""


class InvalidJobError(MXJobError, ValueError):
    """The job can't run as it is; `problems` has every mistake, with its path."""

    def __init__(self, problems: Sequence[FieldError]) -> None:
        super().__init__("The MXJob is invalid:\n" + "\n".join(f"- {each.message}" for each in problems))
        self.problems = tuple(problems)


class JobExistsError(MXJobError):
    """A job of the name already exists; it was not changed."""


class JobNotFoundError(MXJobError):
    """Error: no such job, or another has its name by now."""


class JobFailedError(MXJobError):
    """The job failed. The message is that of its Failed condition; `status` is its JobStatus."""

    def __init__(self, status: "JobStatus") -> None:
        super().__init__(f"MXJob {status.namespace}/{status.name} failed: {status.message}")
        self.status = status


class ResultLostError(MXJobError):
    """The job has succeeded, but its result was too long for its status, and the log that had it is gone."""


class LogIncompleteError(MXJobError):
    """The job has finished, and the end of a replica's log was not received; the lines before it were."""
