"""The link to a job's page: Airflow's own template first, else what the job's status says, else none."""

from types import SimpleNamespace
from typing import Any

import pytest

from mxnet_operator.client.job_client import JobRef
from mxnet_provider import airflow_versions
from mxnet_provider.links.mxnet_job import MXNetJobLink, MXNetLogsLink

REF = JobRef(name="digits", namespace="team-a", uid="u")
PAGE = "https://jobs.example.com/team-a/digits"

pytestmark = pytest.mark.skipif(airflow_versions.IS_AIRFLOW_2, reason="there, links are made of XComs")


def link(page: str, ref: JobRef | None = REF, of: type[Any] = MXNetJobLink) -> Any:
    return of().get_link(SimpleNamespace(job_ref=ref, job_page=page), ti_key=None)


def test_without_a_template_it_is_the_page_that_the_job_names() -> None:
    assert link(PAGE) == PAGE


def test_a_template_of_airflow_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__MXNET__JOB_URL_TEMPLATE", "http://mine/{namespace}/{name}/{uid}")
    assert link(PAGE) == "http://mine/team-a/digits/u"


@pytest.mark.parametrize("page", ["", "javascript:alert(1)", "data:text/html,hello", "jobs/digits", "https://a@b/"])
def test_what_is_no_web_address_is_not_linked_to(page: str) -> None:
    assert link(page) == ""


def test_the_logs_and_an_operator_that_has_no_job_yet_have_no_link() -> None:
    assert link(PAGE, of=MXNetLogsLink) == link("", None) == ""
    assert MXNetJobLink().get_link(SimpleNamespace(), ti_key=None) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("template", ["https://x/{name[a]}", "https://x/{name.a}", "https://x/{other}", "https://x/{"])
def test_a_template_that_can_not_be_filled_in_gives_no_link_and_fails_no_task(
    monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    monkeypatch.setenv("AIRFLOW__MXNET__JOB_URL_TEMPLATE", template)
    assert link(PAGE) == PAGE
