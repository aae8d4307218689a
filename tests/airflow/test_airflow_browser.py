"""What a user sees in Airflow's web page while a task is deferred: the link to its job, the job's page, the log."""

import contextlib
import os

import pytest
from chromium import NoChromiumError, browser_page

pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow, pytest.mark.alone]


@pytest.fixture(scope="module")
def page():
    with contextlib.ExitStack() as held:
        try:
            yield held.enter_context(browser_page())
        except NoChromiumError as error:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))


def test_a_deferred_task_links_to_its_job_and_shows_its_log(page, world):
    run = world.begin("deferred")
    uid = run.in_progress()
    name = run.jobs()[uid]["metadata"]["name"]
    task = f"{world.airflow.url}/dags/deferred/runs/{run.dag_run.run_id}/tasks/train"
    page.goto(f"{world.airflow.url}/auth/token/login?next=/")

    page.goto(f"{task}/details")
    link = page.locator("a", has_text="MXJob").first
    link.wait_for()
    address = link.get_attribute("href")
    assert address == world.job_pages.format(name=name, namespace="default", uid=uid)

    page.goto(task)
    page.get_by_text("[worker-0] Epoch[0] Validation-accuracy=0.5").first.wait_for()
    assert run.train.look().state == "deferred"

    page.goto(address)
    assert page.locator(".state").inner_text() == "Running"
    page.locator("#log", has_text="Epoch[0] Validation-accuracy=0.5").wait_for()
    run.succeed()
    page.locator(".state", has_text="Succeeded").wait_for()  # the page is live
    page.locator("#charts", has_text="from 50% after epoch 1 to 90% after epoch 2").wait_for()
