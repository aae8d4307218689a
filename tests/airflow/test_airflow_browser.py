"""What a user sees in Airflow's web page while a task is deferred: the link to its job, the job's page, the log."""

import pytest
from browser import browser_page

pytestmark = [pytest.mark.whole_airflow, pytest.mark.alone]


@pytest.fixture(scope="module")
def page():
    with browser_page() as page:
        yield page


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
    page.locator("#worker-0", has_text="Epoch[0] Validation-accuracy=0.5").wait_for()
    run.succeed()
    page.locator(".state", has_text="Succeeded").wait_for()  # the page loads itself anew
    assert "After epoch 1: Validation-accuracy 0.9" in page.inner_text("figcaption")
