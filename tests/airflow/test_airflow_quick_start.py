"""The first example of docs/airflow.md, as it stands, by `airflow dags test` on a local cluster with real MXNet."""

import re
from pathlib import Path

import pytest

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.exhaustive

PAGE = Path(__file__).resolve().parents[2] / "docs" / "airflow.md"


def test_the_first_example_of_the_page_trains(airflow, local_cluster, tmp_path):
    block = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "train.py").write_text(block[1])
    code, output = airflow.run(
        "dags",
        "test",
        "train",
        AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path),
        KUBECONFIG=str(local_cluster.kubeconfig),
    )
    assert code == 0, output
    [job] = local_cluster.find("mxjobs", labels="dag_id=train")
    assert job_state(job) == "Succeeded"
    assert {name: spec["replicas"] for name, spec in job["spec"]["mxReplicaSpecs"].items()} == {
        "Scheduler": 1,
        "Server": 2,
        "Worker": 2,
    }
    assert re.search(r"Worker of rank [01] of 2, kv-store dist_sync", output), output  # ps-lite numbers them by address
