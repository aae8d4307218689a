"""What a Chromium makes of the report and of the dashboard's pages: axe's findings, widths, keys, many replicas."""

import contextlib
import os

import pytest
from builders import make_mxjob
from chromium import NoChromiumError, axe_violations, browser_page
from controller_fixtures import submitted

pytestmark = pytest.mark.exhaustive

IMAGE = "mxjob/mxnet:1.9.1"
SCHEMES = ("light", "dark")
WIDTHS = (360, 1400, 3840)


@pytest.fixture(scope="module")
def page(local_cluster):
    with contextlib.ExitStack() as held:
        try:
            page = held.enter_context(browser_page())
            axe_violations(page)
        except NoChromiumError as error:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
        page.goto(local_cluster.state.dashboard)  # with its token, which a cookie replaces
        yield page


@pytest.fixture(scope="module")
def running(local_cluster):
    """The address of a job whose two workers have a log each."""
    script = (
        "echo 'Epoch[0] Validation-accuracy=0.5'; echo 'Epoch[1] Train-cross-entropy=1.5'; echo $HOSTNAME; sleep 600"
    )
    builder = make_mxjob("browsed").worker(2, image=IMAGE, command=["sh", "-c", script])
    local_cluster.create(submitted(builder))
    yield local_cluster.wait_for("browsed", "Running")["status"]["url"]
    local_cluster.mxjob("delete", "browsed")


@pytest.fixture(scope="module")
def failed(local_cluster, tmp_path_factory):
    """The address of a failed job, and its report."""
    report = tmp_path_factory.mktemp("report") / "report.html"
    script = (
        "import os, sys; print('Epoch[0] Train-accuracy=0.5'); print('x' * 500); open('model', 'w').close(); "
        "sys.exit({}['w'])"
    )
    command = ["run", "--image", IMAGE, "--name", "mistaken", "--report", str(report), "--", "python", "-c", script]
    assert local_cluster.mxjob(*command).returncode == 1
    return local_cluster.wait_for("mistaken", "Failed")["status"]["url"], report.as_uri()


def test_axe_finds_nothing_and_no_page_is_wider_than_the_screen(page, local_cluster, running, failed):
    pages = {"list": local_cluster.state.dashboard, "running": running, "failed": failed[0], "report": failed[1]}
    for name, address in pages.items():
        page.goto(address)
        if name != "report":
            page.locator("#live", has_text="live").wait_for()
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                assert axe_violations(page) == [], (name, scheme, width)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)


def test_a_failure_is_hatched_and_its_page_tells_its_cause_files_and_program(page, failed):
    for address in failed:
        page.goto(address)
        page.locator("#files", has_text="worker-0 wrote model").wait_for()
        paint = "getComputedStyle(document.querySelector('.timeline rect[fill]:not(defs rect)')).fill"
        assert "#failed" in page.evaluate(paint), address
        assert page.locator("header .cause").inner_text() == "KeyError: 'w'"
        assert "Python 3.11, mxnet 1.9.1" in page.locator("#program").inner_text()


def test_a_job_is_stopped_and_rerun_from_its_page(page, local_cluster):
    builder = make_mxjob("stoppable").worker(1, image=IMAGE, command=["sh", "-c", "sleep 600"])
    local_cluster.create(submitted(builder))
    page.goto(local_cluster.wait_for("stoppable", "Running")["status"]["url"])
    page.get_by_text("Stop", exact=True).click()
    page.get_by_role("button", name="Stop the job").click()
    page.locator("h1", has_text="Failed").wait_for()
    page.get_by_text("Rerun", exact=True).click()
    page.get_by_role("button", name="Rerun the job").click()
    page.locator("h1", has_text="Running").wait_for()
    name = page.locator("h1").inner_text().split()[0]
    assert name.startswith("stoppable-")
    for each in ("stoppable", name):
        local_cluster.mxjob("delete", each)


def test_the_list_is_sorted_and_filtered_by_a_click(page, local_cluster, running, failed):
    page.goto(local_cluster.state.dashboard)
    names = page.locator("#jobs tbody th")
    page.get_by_role("link", name="Failed").click()
    page.locator("#live", has_text="live").wait_for()
    assert "browsed" not in names.all_inner_texts()
    assert "mistaken" in names.all_inner_texts()
    page.get_by_role("link", name="All").click()
    page.get_by_role("link", name="Name", exact=True).click()
    page.locator("#live", has_text="live").wait_for()
    shown = names.all_inner_texts()
    assert shown == sorted(shown)
    heights = page.locator("#jobs tbody tr").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert max(heights) < 60, "a row has more than one line"


def test_keys_reach_the_filter_a_job_and_its_logs(page, local_cluster, running):
    page.goto(local_cluster.state.dashboard)
    page.get_by_role("link", name="browsed").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("browsed running")
    page.locator("#jobs tbody tr").nth(1).wait_for(state="detached")
    while page.evaluate("document.activeElement.textContent") != "browsed":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#log", has_text="browsed-worker-0").wait_for()
    page.locator("#tab-worker-0").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#log", has_text="browsed-worker-1").wait_for()
    assert page.evaluate("document.activeElement.id") == "tab-worker-1"


def test_a_page_of_500_workers_can_be_filtered(page, local_cluster):
    """Their pods wait for a node: 500 processes are too many for a test."""
    builder = make_mxjob("huge").worker(500, image=IMAGE, command=["true"])
    local_cluster.create(submitted(builder.template("Worker", nodeSelector={"disk": "none"})))
    page.goto(local_cluster.wait_for("huge", "Created")["status"]["url"])
    page.locator("#replicas tbody tr").nth(499).wait_for()
    assert page.get_by_role("tab").count() == page.locator("#replicas tbody tr").count() == 500
    page.get_by_label("Filter replicas").fill("worker-499")
    page.get_by_role("tab", name="worker-499").click()
    assert page.get_by_role("tab", selected=True).inner_text() == "worker-499"
    assert page.locator("#replicas tbody tr:visible").count() == page.get_by_role("tab").count() == 1
    assert axe_violations(page) == []
    local_cluster.mxjob("delete", "huge")
