"""Templates of job pages, and what of a status may become a link."""

from typing import Any

import pytest

from mxnet_operator.api.job_url import job_page, job_url, template_mistake

GOOD = [
    "https://jobs.example.com/{namespace}/{name}",
    "http://127.0.0.1:8080/jobs/{namespace}/{name}/{uid}",
    "https://{namespace}.example.com/?job={uid}#pods",
    "http://[::1]:8080/{name}",
]


@pytest.mark.parametrize("template", GOOD)
def test_a_template_that_gives_a_web_address_is_taken(template: str) -> None:
    assert template_mistake(template) == ""


def test_the_placeholders_are_filled_in() -> None:
    given = job_url("https://a.example/{namespace}/{name}?uid={uid}", namespace="team-a", name="digits", uid="u-1")
    assert given == "https://a.example/team-a/digits?uid=u-1"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("https://jobs.example.com/{job}", "has the placeholder {job}, and may have {namespace}, {name}, {uid}"),
        ("https://jobs.example.com/{name!r}", "has the placeholder {name!r}"),
        ("https://jobs.example.com/{}", "has the placeholder {}"),
        ("https://jobs.example.com/{name", "has a brace too many or too few"),
        ("https://jobs.example.com/{{name}}", "has neither {name} nor {uid}"),
        ("https://jobs.example.com/{namespace}", "has neither {name} nor {uid}"),
        ("jobs.example.com/{name}", "is no http or https address"),
        ("javascript:alert('{name}')", "is no http or https address"),
        ("https://user:secret@jobs.example.com/{name}", "is no http or https address"),
        ("https:///{name}", "is no http or https address"),
        ("https://jobs.example.com:port/{name}", "is no http or https address"),
        ("https://jobs.example.com/a b/{name}", "is no http or https address"),
        ("https://jobs.example.com/" + "a" * 1024 + "{name}", "is longer than 1024 characters"),
    ],
)
def test_a_template_that_gives_none_is_rejected_with_the_reason(template: str, words: str) -> None:
    assert words in template_mistake(template)


@pytest.mark.parametrize("template", GOOD)
def test_an_address_of_a_status_is_linked_to(template: str) -> None:
    address = job_url(template, namespace="default", name="digits", uid="u")
    assert job_page({"status": {"url": address}}) == address


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"status": None},
        {"status": {"url": ""}},
        {"status": {"url": None}},
        {"status": {"url": 5}},
        {"status": {"url": "javascript:alert(1)"}},
        {"status": {"url": "//jobs.example.com/digits"}},
        {"status": {"url": " https://jobs.example.com/digits"}},
        {"status": {"url": "https://jobs.example.com/\n"}},
        {"status": {"url": "https://airflow.example.com@evil.example/"}},
        {"status": {"url": "https://[::1/"}},
        {"status": {"url": "https://j\u00f6bs.example.com/"}},
        {"status": {"url": "https://jobs.example.com/" + "a" * 2048}},
    ],
)
def test_anything_else_is_no_link(job: dict[str, Any]) -> None:
    assert job_page(job) == ""
