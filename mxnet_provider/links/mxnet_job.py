"""Links to a job and to its logs, rendered from templates in Airflow's configuration."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, conf

from mxnet_provider.job_ref import JobRef

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

SECTION = "mxnet"


def job_url(ref: JobRef | None, option: str = "job_url_template") -> str:
    """The address that a template of section `[mxnet]` gives a job; empty where there is no template or no job.

    A template has the fields `{name}`, `{namespace}` and `{uid}`. One that has others gives no address either: a
    link must never fail a task.
    """
    template = conf.get(SECTION, option, fallback="")
    if not template or ref is None:
        return ""
    try:
        return str(template).format(name=ref.name, namespace=ref.namespace, uid=ref.uid)
    except (LookupError, ValueError):
        return ""


class MXNetJobLink(BaseOperatorLink):
    """The job's page: `[mxnet] job_url_template`."""

    name = "MXJob"

    def get_link(self, operator: "BaseOperator", *, ti_key: Any) -> str:  # noqa: ARG002
        """The address of the job that this try of the task waits for."""
        return job_url(getattr(operator, "job_ref", None))


class MXNetLogsLink(BaseOperatorLink):
    """Where a cluster's logs are kept: `[mxnet] logs_url_template`."""

    name = "MXJob logs"

    def get_link(self, operator: "BaseOperator", *, ti_key: Any) -> str:  # noqa: ARG002
        """The address of the logs of the job that this try of the task waits for."""
        return job_url(getattr(operator, "job_ref", None), "logs_url_template")
