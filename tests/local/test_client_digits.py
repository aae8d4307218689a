"""The Python client with real MXNet on a local cluster: what a notebook does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_fixtures import DIGITS_IMAGE
from waiting import SECONDS

from mxnet_operator.client import JobFailedError, JobNotFoundError, MXJobClient
from mxnet_operator.description import MXJobDescription

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
ARGS = ["--epochs", "3", "--kv-store", "dist_sync", "--result", "/dev/termination-log"]


def without_figures(text):
    """Two workers add up in another order each time."""
    return re.sub(r"0\.\d+", "0.n", text)


@pytest.fixture
def client(local_cluster):
    with MXJobClient(kubeconfig=local_cluster.kubeconfig) as made:
        yield made


@pytest.mark.exhaustive
def test_a_description_trains_and_tells_its_log_figures_and_result(client):
    job = client.submit(MXJobDescription(image=DIGITS_IMAGE, command=["python", "train.py"], args=ARGS, workers=2))
    lines = list(client.logs(job))
    result = client.result(job)
    assert any("Epoch[2] Validation-accuracy=" in line for line in lines)
    assert result["accuracy"] > 0.9
    assert client.metrics(job)["validation_accuracy"][-1] == pytest.approx(result["accuracy"], abs=1e-4)
    status = client.get(job)
    assert status.succeeded
    assert status.duration_s > 0
    assert client.delete(job)
    with pytest.raises(JobNotFoundError):
        client.get(job)


@pytest.mark.exhaustive
def test_the_program_of_the_page_prints_what_the_page_shows(local_cluster, tmp_path):
    block, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL).groups()
    (tmp_path / "page.py").write_text(block)
    command = [sys.executable, str(tmp_path / "page.py")]
    done = subprocess.run(
        command, env=local_cluster.environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert without_figures(done.stdout) == without_figures(shown)


def test_a_script_that_fails_is_told_in_its_own_words(client):
    job = client.submit(MXJobDescription(image=DIGITS_IMAGE, command=["python", "-c", "raise ValueError('no data')"]))
    with pytest.raises(JobFailedError, match=r"(?s)worker-0 exited with code 1:.*ValueError: no data"):
        client.wait(job)
