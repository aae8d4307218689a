"""Train with several learning rates at once, as many as there is room for, and keep the best.

`gpus` is a pool that counts deferred tasks: a task that waits for its job holds its slot, so that there are never more
jobs than slots, although no worker waits for any of them. Make it once, with as many slots as there are GPUs:

    airflow pools set gpus 2 "MXJobs at a time" --include-deferred

Without `--include-deferred` a task gives its slot back the moment it is deferred, and all jobs start at once.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

RATES = (0.0005, 0.004, 0.03)

with DAG(
    dag_id="sweep_digits",
    description="A hyper-parameter sweep: one MXJob for each learning rate, two at a time.",
    schedule=None,
    catchup=False,
    params={"epochs": 5},
    tags=["mxnet", "example"],
):
    # `expand` makes one task for each element, with a job of its own. `env`, `command` and `args` are templated.
    train = MXNetJobOperator.partial(
        task_id="train",
        image="mxjob/digits:1.0",
        command=["python", "train.py"],
        workers=1,
        pool="gpus",
        deferrable=True,
        execution_timeout=timedelta(minutes=20),
    ).expand(
        args=[
            [
                *("--learning-rate", str(rate)),
                *("--epochs", "{{ params.epochs }}"),
                *("--result", "/dev/termination-log"),
            ]
            for rate in RATES
        ]
    )

    @task
    def choose(jobs: list[dict[str, Any]]) -> dict[str, Any]:
        """The learning rate whose network reads most of the test digits."""
        found = dict(zip(RATES, (job["result"]["accuracy"] for job in jobs), strict=True))
        best = max(found, key=found.__getitem__)
        for rate, accuracy in found.items():
            print(f"Learning rate {rate}: {accuracy:.2%}{' (the best)' if rate == best else ''}")
        return {"rate": best, "accuracy": found[best]}

    choose(train.output)
