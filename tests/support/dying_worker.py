"""A worker of Airflow's as far as its signals go: it waits for its job, and calls `on_kill` at SIGTERM.

`python -m dying_worker KUBECONFIG ARGUMENTS`, the operator's arguments as JSON.
"""

import json
import signal
import sys
from typing import Any

import airflow_home  # noqa: F401 - before anything imports Airflow
from airflow.sdk.bases.operator import ExecutorSafeguard
from provider_fixtures import Store, Try

from mxnet_provider.operators.mxnet_job import MXNetJobOperator


def main() -> None:
    kubeconfig, arguments = sys.argv[1:]
    operator = MXNetJobOperator(
        task_id="train",
        image="mxjob/mxnet:1.9.1",
        command=["true"],
        config_file=kubeconfig,
        deferrable=False,
        get_logs=False,
        **json.loads(arguments),
    )
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    ExecutorSafeguard.tracker.set(operator)
    context: Any = {"ti": Try(), "task_state_store": Store()}
    operator.execute(context)


if __name__ == "__main__":
    main()
