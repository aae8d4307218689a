"""The example DAG, and what Ctrl-C does, by `airflow dags test` on a local cluster that trains with real MXNet."""

import re
import signal
from pathlib import Path

import pytest
from waiting import SECONDS, eventually

from mxnet_operator.api.conditions import job_state

ROOT = Path(__file__).resolve().parents[2]
OWN_DAGS = str(Path(__file__).parent / "dags")


def jobs_of(cluster, dag_id):
    """The MXJobs that a DAG's tasks have created and nobody has deleted, by task."""
    jobs = cluster.find("mxjobs", labels=f"dag_id={dag_id}")
    return {job["metadata"]["labels"]["task_id"]: job for job in jobs}


def test_the_example_dag_trains_checks_the_accuracy_and_writes_the_report(airflow, local_cluster, tmp_path):
    path = tmp_path / "report.html"
    code, output = airflow.run(
        "dags",
        "test",
        "train_digits",
        AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
        KUBECONFIG=str(local_cluster.kubeconfig),
        MXNET_REPORT=str(path),
    )
    assert code == 0, output

    job = jobs_of(local_cluster, "train_digits")["train"]
    assert job_state(job) == "Succeeded"

    lines = output.splitlines()
    for epoch in range(20):
        shown = [
            line for line in lines if line.startswith("[worker-0]") and f"Epoch[{epoch}] Validation-accuracy=" in line
        ]
        assert len(shown) == 1, output

    returned = airflow.returned("train_digits", "train")
    assert returned["name"] == job["metadata"]["name"]
    assert returned["result"]["accuracy"] >= 0.98
    assert [(each["type"], each["index"], each["exit_code"]) for each in returned["replicas"]] == [
        ("scheduler", 0, 0),
        ("server", 0, 0),
        ("server", 1, 0),
        ("worker", 0, 0),
        ("worker", 1, 0),
    ]
    assert airflow.returned("train_digits", "check_accuracy") == returned["result"]["accuracy"]

    page = path.read_text(encoding="utf-8")
    assert returned["name"] in page
    assert f"{returned['result']['accuracy']:.2%}" in page
    [curve] = re.findall(r"<h3>accuracy</h3>.*?<svg .*?</svg>", page, re.DOTALL)
    assert curve.count("<circle") >= 20, curve
    assert all(each["pod"] in page for each in returned["replicas"])
    assert f"Report: {path}" in output


@pytest.mark.exhaustive
def test_an_interrupted_dags_test_deletes_its_job(airflow, local_cluster):
    """Of a task that waits, and of one whose trigger does; both at once, since each takes long to start."""
    environment = {"AIRFLOW__CORE__DAGS_FOLDER": OWN_DAGS, "KUBECONFIG": str(local_cluster.kubeconfig)}
    processes = {dag: airflow.start("dags", "test", dag, **environment) for dag in ("long_job", "long_deferred_job")}
    try:
        for dag, process in processes.items():
            assert any("[worker-0] working" in line for line in process.stdout), dag  # else it ended, and said why
            process.send_signal(signal.SIGINT)
        for dag, process in processes.items():
            output, _ = process.communicate(timeout=SECONDS)
            assert process.returncode != 0, output
            eventually(lambda: jobs_of(local_cluster, dag) == {})  # noqa: B023 - it goes after its pods
    finally:
        for process in processes.values():
            process.kill()
