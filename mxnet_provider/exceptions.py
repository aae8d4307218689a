"""The ways in which an MXJob task fails, each a type of its own."""

from airflow.sdk.exceptions import AirflowException, AirflowFailException


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
