"""Jobs whose one pod waits until a file says with which code to end: the test decides when a job is over, and how."""

from datetime import timedelta
from typing import Any

from airflow.configuration import conf
from airflow.providers.common.compat.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

SCRIPT = """
echo "Epoch[0] Validation-accuracy=0.5"
until [ -s "$GATE" ]; do sleep 0.2; done
echo "Epoch[1] Validation-accuracy=0.9"
printf '{"accuracy": 0.9}' >/dev/termination-log
exit "$(cat "$GATE")"
"""
GATE = {"GATE": "{{ dag_run.conf['gate'] }}"}
COMMAND = ["sh", "-c", SCRIPT]
CONNECTION = "{{ dag_run.conf['connection'] }}"
IMAGE = "mxjob/mxnet:1.9.1"
COMMON: dict[str, Any] = {
    "kubernetes_conn_id": CONNECTION,
    "poll_interval": 2,
    "retry_delay": timedelta(seconds=3),
}
JOB: dict[str, Any] = {"image": IMAGE, "command": COMMAND, "env": GATE, **COMMON}


def manifest(**run_policy: Any) -> dict[str, Any]:
    container = {"name": "mxnet", "image": IMAGE, "command": COMMAND, "env": [{"name": "GATE", "value": GATE["GATE"]}]}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "ends-soon"},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": run_policy,
            "mxReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {"containers": [container]}}}},
        },
    }


for mode in ("deferred", "waiting"):
    deferrable = mode == "deferred"
    with DAG(mode, schedule=None):
        MXNetJobOperator(task_id="train", deferrable=deferrable, retries=2, **JOB)
    with DAG(f"{mode}_timed", schedule=None):
        MXNetJobOperator(
            task_id="train", deferrable=deferrable, retries=0, execution_timeout=timedelta(seconds=30), **JOB
        )
    with DAG(f"{mode}_limited", schedule=None, dagrun_timeout=timedelta(hours=1)):
        MXNetJobOperator(task_id="train", deferrable=deferrable, retries=2, **JOB)
    with DAG(f"{mode}_lone", schedule=None):
        MXNetJobOperator(task_id="train", deferrable=deferrable, retries=0, **JOB)
    with DAG(f"{mode}_leased", schedule=None):
        MXNetJobOperator(task_id="train", deferrable=deferrable, retries=0, lease=15, api_outage_tolerance=60, **JOB)
    late: dict[str, Any] = {"task_id": "train", "deferrable": deferrable, "retries": 0, "startup_timeout": 5, **COMMON}
    # The first event comes so long after the deferral: a task that comes back before the scheduler has read that its
    # executor let go of it is failed by Airflow, and on a busy machine that takes seconds.
    late |= {"command": ["true"], "poll_interval": 10}
    with DAG(f"{mode}_imageless", schedule=None):
        MXNetJobOperator(image="no/such:image", **late)
    with DAG(f"{mode}_crowded", schedule=None):
        MXNetJobOperator(image=IMAGE, container_resources={"requests": {"cpu": "1000"}}, **late)

if "KubernetesExecutor" in conf.get("core", "executor"):
    for dag_id, deferrable in {"deferred_by_pod": True, "waiting_in_pod": False}.items():
        with DAG(dag_id, schedule=None):
            MXNetJobOperator(task_id="train", deferrable=deferrable, retries=2, executor="KubernetesExecutor", **JOB)

with DAG("deferred_impatient", schedule=None):
    MXNetJobOperator(task_id="train", deferrable=True, retries=1, api_outage_tolerance=3, **{**JOB, "poll_interval": 5})

for dag_id in ("deferred_paused", "deferred_deleted"):  # their tests change the DAG itself
    with DAG(dag_id, schedule=None):
        MXNetJobOperator(task_id="train", deferrable=True, retries=2, **JOB)

with DAG("deferred_ttl", schedule=None):
    MXNetJobOperator(
        task_id="train", deferrable=True, retries=2, manifest=manifest(ttlSecondsAfterFinished=5), **COMMON
    )

with DAG("deferred_removed", schedule=None):
    MXNetJobOperator(task_id="train", deferrable=True, retries=2, on_finish_action="delete", **JOB)

with DAG("deferred_mapped", schedule=None, max_active_runs=4):
    MXNetJobOperator.partial(
        task_id="train", deferrable=True, retries=2, image=IMAGE, command=COMMAND, **COMMON
    ).expand(env=[{**GATE, "N": str(n)} for n in range(2)])

with DAG("detached", schedule=None):
    train = MXNetJobOperator(task_id="train", wait_for_completion=False, deferrable=True, **JOB)
    sense = MXNetJobSensor(
        task_id="sense",
        job_name="{{ ti.xcom_pull('train', key='job_name') }}",
        namespace="{{ ti.xcom_pull('train', key='job_namespace') }}",
        kubernetes_conn_id=CONNECTION,
        deferrable=True,
        poke_interval=COMMON["poll_interval"],
        timeout=600,
    )
    delete = MXNetJobDeleteOperator(
        task_id="delete",
        job_name="{{ ti.xcom_pull('train', key='job_name') }}",
        job_uid="{{ ti.xcom_pull('train', key='job_uid') }}",
        namespace="{{ ti.xcom_pull('train', key='job_namespace') }}",
        kubernetes_conn_id=CONNECTION,
    )
    train >> sense >> delete
