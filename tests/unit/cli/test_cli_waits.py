"""Whatever a job waits for is shown by every command."""

import io
from typing import Any

import pytest
from rich.console import Console
from waiting_jobs import WORDS, waiting_job

from mxnet_operator.cli.output.progress import LiveProgress, Progress
from mxnet_operator.cli.verbs.describe import write_description
from mxnet_operator.cli.verbs.get import table
from mxnet_operator.dashboard import job_page
from mxnet_operator.dashboard.job_feed import JobFeed
from mxnet_operator.readers.waiting import WAITING


def told(console_of: type[Any], job: dict[str, Any], times: int = 1, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=200, **options)
    shown = console_of(console, show_log=False)
    for _ in range(times):
        shown.job(job)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize("condition_type", WAITING)
class TestEveryWait:
    def test_by_run_and_wait_in_a_pipe_once(self, condition_type: str) -> None:
        text = told(Progress, waiting_job(condition_type), times=3)
        assert text.count(f"waiting: {WORDS} {condition_type}") == 1

    def test_by_run_and_wait_on_a_terminal(self, condition_type: str) -> None:
        text = told(LiveProgress, waiting_job(condition_type), times=3, force_terminal=True)
        assert text.count(f"waiting: {WORDS} {condition_type}") == 1

    def test_by_get_wide(self, condition_type: str) -> None:
        heading, (row,) = table([waiting_job(condition_type)], {}, wide=True, with_namespace=False)
        assert row[heading.index("MESSAGE")].startswith(f"{WORDS} {condition_type}")

    def test_by_describe(self, condition_type: str, capsys: pytest.CaptureFixture[str]) -> None:
        write_description(waiting_job(condition_type))
        assert f"{WORDS} {condition_type}" in capsys.readouterr().out

    def test_by_the_page_of_a_job(self, condition_type: str) -> None:
        feed = JobFeed(None, waiting_job(condition_type), "")  # type: ignore[arg-type]  # it reads nothing yet
        assert f"{WORDS} {condition_type}" in job_page.parts(feed)["head"]


def test_a_wait_that_comes_back_is_told_again() -> None:
    console = Console(file=io.StringIO(), width=200)
    shown = Progress(console, show_log=False)
    job, other = waiting_job("PodsScheduled"), waiting_job("PodsStarted")
    for each in (job, other, job):
        shown.job(each)
    assert console.file.getvalue().count(f"waiting: {WORDS} PodsScheduled") == 2  # type: ignore[attr-defined]
