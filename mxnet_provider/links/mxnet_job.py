"""Links to a job and to its logs: what the job's status says, unless Airflow's configuration has a template."""

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperatorLink, conf

from mxnet_operator.api.job_url import is_web_address
from mxnet_operator.client.job_client import JobRef
from mxnet_provider import airflow_versions

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

SECTION = "mxnet"


def job_url(ref: JobRef | None, option: str = "job_url_template") -> str:
    """Return the address that a template of section `[mxnet]` gives a job; empty where there is no template or no job.

    A template has the fields `{name}`, `{namespace}` and `{uid}`. One that has others gives no address either: a
    link must never fail a task.
    """
    template = conf.get(SECTION, option, fallback="")
    if not template or ref is None:
        return ""
    try:
        return str(template).format(name=ref.name, namespace=ref.namespace, uid=ref.uid)
    except (LookupError, ValueError, AttributeError, TypeError):
        return ""


class MXNetJobLink(BaseOperatorLink):
    """The job's page: by `[mxnet] job_url_template`, or as the job's status says it."""

    name = "MXJob"

    def get_link(self, operator: "BaseOperator", *, ti_key: Any) -> str:
        if url := job_url(_job_of(operator, ti_key)):
            return url
        page = _xcom(ti_key, "job_url") if airflow_versions.IS_AIRFLOW_2 else getattr(operator, "job_page", "")
        return page if isinstance(page, str) and is_web_address(page) else ""


class MXNetLogsLink(BaseOperatorLink):
    """Link to a job's logs where the cluster keeps them: `[mxnet] logs_url_template`."""

    name = "MXJob logs"

    def get_link(self, operator: "BaseOperator", *, ti_key: Any) -> str:
        return job_url(_job_of(operator, ti_key), "logs_url_template")


def _job_of(operator: "BaseOperator", ti_key: Any) -> JobRef | None:
    """Find the job of a try: Airflow 3 asks for links in the worker, which knows it, Airflow 2 in the web server."""
    if not airflow_versions.IS_AIRFLOW_2:
        known: JobRef | None = getattr(operator, "job_ref", None)
        return known
    name, namespace, uid = (_xcom(ti_key, f"job_{part}") for part in ("name", "namespace", "uid"))
    return JobRef(name=name, namespace=namespace, uid=uid or "") if name and namespace else None


def _xcom(ti_key: Any, key: str) -> Any:
    from airflow.providers.common.compat.sdk import XCom  # noqa: PLC0415 - not where a DAG is parsed

    return XCom.get_value(ti_key=ti_key, key=key)
