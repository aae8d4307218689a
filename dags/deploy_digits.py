"""Tune a program for the machines that will run it, train the network, and deploy both together.

Two kinds of MXJob in one DAG: a tuning (MXTune, with TVM) and a training (MXTrain, with MXNet). Each needs its image:

    mxjob local up --detach
    mxjob local image add mxjob/tune:1.0 examples/tune --base mxjob/tvm:0.27
    mxjob local image add mxjob/digits:1.0 examples/digits
    KUBECONFIG=$(mxjob local kubeconfig) airflow dags test deploy_digits
"""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator

TUNE = Path(__file__).resolve().parent.parent / "examples" / "tune"

with DAG(
    dag_id="deploy_digits",
    description="Tune with TVM, then train with MXNet, then write what a deployment needs.",
    schedule=None,
    catchup=False,
    template_searchpath=str(TUNE),
    params={"trials": 16, "database": "", "epochs": 20, "required_accuracy": 0.95},
    tags=["mxnet", "example"],
):
    # `trials` and `database_uri` reach the script as MXTUNE_TRIALS and MXTUNE_DATABASE_URI. What a run has measured
    # helps the next one where `database` names a folder that outlives the job: a volume that all runs mount.
    tune = MXNetTuneOperator(
        task_id="tune",
        manifest="mxjob.yaml",
        trials="{{ params.trials }}",
        database_uri="{{ params.database }}",
        deferrable=True,
        poll_interval=1,
        execution_timeout=timedelta(minutes=20),
    )

    train = MXNetJobOperator(
        task_id="train",
        image="mxjob/digits:1.0",
        command=["python", "train.py"],
        args=["--epochs", "{{ params.epochs }}", "--result", "/dev/termination-log"],
        deferrable=True,
        poll_interval=1,
        execution_timeout=timedelta(minutes=20),
    )

    @task
    def deploy(tuned: dict[str, Any], trained: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        """Write release.json, in the place of your own deployment: push to a model registry, roll out a service.

        The example tunes one matrix multiplication and not this network's layers, so the two only meet in this file. A
        network that isn't good enough is not deployed, and to train again would not make it so.
        """
        accuracy = trained["result"]["accuracy"]
        if accuracy < params["required_accuracy"]:
            raise AirflowFailException(f"Not deployed: the accuracy is {accuracy:.2%}.")
        release = {
            "model": {"job": trained["name"], "uid": trained["uid"], "accuracy": accuracy},
            "program": {
                "job": tuned["name"],
                "uid": tuned["uid"],
                "latency_ms": tuned["best_latency_ms"],
                "untuned_ms": tuned["result"]["untuned_ms"],
                "trials": tuned["trials"],
                "artifact_uri": tuned["artifact_uri"],
            },
        }
        path = Path(os.environ.get("MXNET_RELEASE", "release.json")).resolve()
        path.write_text(json.dumps(release, indent=2) + "\n", encoding="utf-8")
        print(f"Deployed: {path}")
        return release

    tune >> train
    deploy(tune.output, train.output)
