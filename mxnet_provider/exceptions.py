"""The ways in which an MXJob task fails, each a type of its own."""

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from mxnet_operator.kube.errors import ApiError
from mxnet_provider.hooks import api_errors


class MXNetJobError(AirflowException):
    """Any failure of an MXJob that another try of the task might cure."""


class MXNetJobFailedError(MXNetJobError):
    """The job's condition is Failed; the message is the condition's own."""


class MXNetJobDeletedError(MXNetJobError):
    """The job went away, or another took its name, before it had finished."""


class MXNetJobNameTakenError(MXNetJobError):
    """Something that this task did not create has the job's name; it is neither adopted nor deleted."""


class MXNetJobStartupTimeoutError(MXNetJobError):
    """The job's pods did not run within `startup_timeout`."""


class MXNetJobUnreachableError(MXNetJobError):
    """The API server did not answer for longer than `api_outage_tolerance`; the job may be running."""


class MXNetManifestError(AirflowFailException):
    """The manifest can't be right as it is; another try of the task would only fail again."""


class MXNetPermissionError(AirflowFailException):
    """The account that Airflow uses may not do what is needed; the message names the missing right."""


class MXNetSweepError(AirflowFailException):
    """No trial of a sweep reported the number that they are compared by; another try would read the same results."""


class AirflowUnreachableError(ConnectionError):
    """Airflow did not say whether there is such a connection: as transient as an outage of the API server."""


def failure(answer: ApiError, title: str) -> Exception:
    """Make the error of a task in the server's words: for good if the server would reject another try, too."""
    said = f"The API server rejected {title}: {answer.message}"
    if answer.code == 403 and not answer.is_quota:
        return MXNetPermissionError(said)
    if answer.code == 401:
        return MXNetPermissionError(f"{said} (the credentials were read anew, in vain)")
    return MXNetManifestError(said) if api_errors.is_permanent(answer) else MXNetJobError(said)
