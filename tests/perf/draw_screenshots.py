"""Pictures of the report, the list of jobs and a job's page in docs/images, of a real training on a local cluster.

`make screenshots` runs it.
"""

import subprocess
import tempfile
from pathlib import Path

from chromium import browser_page
from cluster_fixtures import MXJOB, LocalCluster, new_home

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
TRAIN = ["train.py", "--workers", "2", "--", "--kv-store", "dist_sync", "--result", "/dev/termination-log"]


def main() -> None:
    with new_home() as cluster, tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.html")
        run(cluster, ROOT / "examples" / "digits", "--name", "digits", "--report", str(report), *TRAIN)
        Path(folder, "train.py").write_text("net = {}\nprint(net['fc1_weight'])\n")
        run(cluster, Path(folder), "--name", "typo", "train.py")
        with browser_page(scale=1.5) as page:
            page.set_viewport_size({"width": 1200, "height": 640})
            page.goto(report.as_uri())
            page.screenshot(path=IMAGES / "report.png")
            page.set_viewport_size({"width": 1200, "height": 700})
            page.goto(cluster.state.dashboard)
            link = page.get_by_role("link", name="digits")
            link.wait_for()
            page.screenshot(path=IMAGES / "dashboard.png")
            link.click()
            page.locator("#log", has_text="Epoch[19] Validation-accuracy").wait_for()
            page.set_viewport_size({"width": 1200, "height": 1500})
            page.screenshot(path=IMAGES / "dashboard-job.png")


def run(cluster: LocalCluster, folder: Path, *words: str) -> None:
    """Run a script of a folder, as a user would; its job may fail."""
    subprocess.run([*MXJOB, "run", *words], cwd=folder, env=cluster.environment, check=False)


if __name__ == "__main__":
    main()
