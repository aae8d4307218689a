"""The documents' CIFAR-10 run on real MXNet: `mxjob run` turns its log into progress, and the report into curves."""

import json
import re

import pytest
from cluster_fixtures import EXAMPLES
from jobs import example_job

from mxnet_operator.readers.log_figures import SPEED, read_line

EXAMPLE = "image-classification"
SHORT = ("--num-examples", "192", "--num-epochs", "2", "--disp-batches", "2")


@pytest.fixture(scope="module")
def cluster(local_cluster):
    """The cluster with the image of examples/image-classification."""
    added = local_cluster.mxjob("local", "image", "add", f"mxjob/{EXAMPLE}:1.0", str(EXAMPLES / EXAMPLE))
    assert added.returncode == 0, added.stderr
    return local_cluster


@pytest.mark.exhaustive
@pytest.mark.parametrize("store", ["dist_sync", "dist_device_sync"])
def test_a_distributed_training_is_told_by_epoch_with_its_speed_and_metrics_and_drawn(cluster, tmp_path, store):
    name, page = f"cifar-{store.replace('_', '-')}", tmp_path / "report.html"
    manifest = tmp_path / "job.json"
    manifest.write_text(json.dumps(example_job(EXAMPLE, name, *SHORT, "--kv-store", store)))

    done = cluster.mxjob("run", "-f", str(manifest), "--no-logs", "--report", str(page))

    assert done.returncode == 0, done.stderr
    figures = r"[\d.e+]+ samples/s  Train-accuracy [\d.]+  Train-cross-entropy [\d.]+  Validation-accuracy ([\d.]+)"
    told = [re.match(rf"epoch (\d) of 2  {figures}", line) for line in done.stderr.splitlines()]
    epochs = [match.groups() for match in told if match]
    assert [epoch for epoch, _ in epochs] == ["0", "1"]
    log = cluster.log(f"{name}-worker-0").splitlines()
    found = [each for line in log if (each := read_line(line))]
    batches = [each for each in found if each.batch is not None]
    assert {(each.number, each.batch) for each in batches} == {(0, 2), (1, 2)}
    assert all(set(each.values) == {SPEED, "accuracy", "cross-entropy"} for each in batches)
    validated = [each.values["Validation-accuracy"] for each in found if "Validation-accuracy" in each.values]
    assert [f"{value:.4g}" for value in validated] == [accuracy for _, accuracy in epochs]
    report = page.read_text()
    assert "Validation accuracy goes from" in report
    assert "The worker trained on" in report
    for replica in ("scheduler-0", "server-0", "worker-0", "worker-1"):
        assert f"{name}-{replica}" in report
