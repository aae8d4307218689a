"""Sweeps whose trials succeed, fail and report no number."""

from airflow.sdk import DAG, task

from mxnet_provider.operators.mxnet_sweep import MXNetSweep

REPORT = "open('/dev/termination-log', 'w').write('{}')"

with DAG(dag_id="sweeps", schedule=None):

    @task
    def trials():
        """Three that report, and one that fails."""
        scripts = [REPORT.format('{"loss": 0.5}'), REPORT.format('{"loss": 0.1}'), "raise SystemExit(3)"]
        return [{"command": ["python", "-c", each]} for each in [*scripts, REPORT.format('{"loss": NaN}')]]

    @task
    def told(best, results):
        """What a task downstream is given."""
        return [best["job"] == results[-1]["job"], [row["value"] for row in results]]

    found = MXNetSweep(
        "found",
        trials=trials(),
        metric="loss",
        direction="minimize",
        image="mxjob/mxnet:1.9.1",
        deferrable=True,
        poll_interval=1,
    )
    told(found.output, found.output["results"])

    MXNetSweep(
        "none",
        trials=[{"command": ["python", "-c", REPORT.format("diverged")]}, {"command": ["false"]}],
        metric="loss",
        image="mxjob/mxnet:1.9.1",
        poll_interval=1,
    )
    with_none = MXNetSweep("empty", trials=[], metric="loss", image="mxjob/mxnet:1.9.1")
