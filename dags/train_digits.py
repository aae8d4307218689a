"""Train a network to read handwritten digits with MXNet on a cluster, and accept it only if it reads them well.

Run it against a local cluster, without a scheduler or a web server:

    mxjob local up --detach
    KUBECONFIG=$(mxjob local kubeconfig) airflow dags test train_digits

Airflow reaches the cluster as kubectl does, because no connection `kubernetes_default` is defined. For another
cluster define that connection: in its extra, `kube_config_path` and `cluster_context`, or `in_cluster`.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from mxnet_operator import report
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"
REQUIRED_ACCURACY = 0.98

with DAG(
    dag_id="train_digits",
    description="Train with MXNet, then check the accuracy and write a report.",
    schedule=None,
    catchup=False,
    template_searchpath=str(DIGITS),
    tags=["mxnet", "example"],
):
    # One scheduler, two servers and two workers, as examples/digits/mxjob.yaml says. The task is deferred while they
    # train: no worker of Airflow's waits, and the log of worker 0 appears in this task's log all the same. What the
    # worker writes to /dev/termination-log comes back as `result`; it is JSON here, so it arrives parsed.
    train = MXNetJobOperator(
        task_id="train",
        manifest="mxjob.yaml",
        deferrable=True,
        poll_interval=1,
        execution_timeout=timedelta(minutes=10),
    )

    @task
    def check_accuracy(job: dict[str, Any]) -> float:
        """Write the report, then fail for good where the accuracy is too low: training again would not raise it."""
        path = Path(os.environ.get("MXNET_REPORT", "report.html")).resolve()
        path.write_text(report.html(job, threshold=REQUIRED_ACCURACY), encoding="utf-8")
        print(f"Report: {path}")

        accuracy: float = job["result"]["accuracy"]
        if accuracy < REQUIRED_ACCURACY:
            raise AirflowFailException(f"The accuracy is {accuracy:.2%}; {REQUIRED_ACCURACY:.0%} is required.")
        print(f"Accuracy: {accuracy:.2%} (at least {REQUIRED_ACCURACY:.0%} is required)")
        return accuracy

    check_accuracy(train.output)
