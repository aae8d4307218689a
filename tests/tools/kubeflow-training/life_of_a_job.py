"""What a user's script does with the kubeflow-training SDK: make a job, follow it to its end, read its logs, delete it.

Runs in the SDK's own environment. Prints what it saw as JSON.
"""

import argparse
import json
import sys

from kubeflow.training import TrainingClient, models
from kubernetes import client

parser = argparse.ArgumentParser()
parser.add_argument("--namespace", default="default")
parser.add_argument("name")
parser.add_argument("image")
parser.add_argument("command", nargs=argparse.REMAINDER)
asked = parser.parse_args()
name = asked.name
training = TrainingClient(job_kind="MXJob", namespace=asked.namespace)


def replicas(count):
    container = models.V1Container(name="mxnet", image=asked.image, command=asked.command)
    template = models.V1PodTemplateSpec(spec=models.V1PodSpec(containers=[container]))
    return models.KubeflowOrgV1ReplicaSpec(replicas=count, restart_policy="Never", template=template)


specs = {"Scheduler": replicas(1), "Server": replicas(1), "Worker": replicas(2)}
job = models.KubeflowOrgV1MXJob(
    api_version="kubeflow.org/v1",
    kind="MXJob",
    metadata=models.V1ObjectMeta(name=name),
    spec=models.KubeflowOrgV1MXJobSpec(
        job_mode="MXTrain",
        run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
        mx_replica_specs=specs,
    ),
)
seen = {}
training.create_job(job)
running = training.wait_for_job_conditions(name, expected_conditions={"Running"}, wait_timeout=60, polling_interval=1)
seen["running"] = [condition.type for condition in running.status.conditions]
done = training.wait_for_job_conditions(name, wait_timeout=120, polling_interval=1)
seen["conditions"] = {each.type: each.status for each in training.get_job_conditions(name)}
seen["created"] = training.is_job_created(name)
seen["still running"] = training.is_job_running(name)
seen["restarting"] = training.is_job_restarting(name)
seen["succeeded"] = training.is_job_succeeded(name)
seen["failed"] = training.is_job_failed(name)
seen["replica statuses"] = {kind: each.succeeded for kind, each in done.status.replica_statuses.items()}
seen["took"] = (done.status.completion_time - done.status.start_time).total_seconds()
seen["workers asked for"] = training.get_job(name).spec.mx_replica_specs["Worker"].replicas
seen["listed"] = [each.metadata.name for each in training.list_jobs()]
seen["pods"] = sorted(training.get_job_pod_names(name))
seen["masters"] = training.get_job_pod_names(name, is_master=True)
seen["worker 1"] = training.get_job_pod_names(name, replica_type="worker", replica_index=1)
seen["logs"], seen["events"] = training.get_job_logs(name, is_master=False, replica_type="worker", verbose=True)
seen["followed"], _ = training.get_job_logs(name, is_master=False, replica_type="worker", replica_index=0, follow=True)
training.update_job(models.KubeflowOrgV1MXJob(metadata=models.V1ObjectMeta(labels={"team": "vision"})), name)
seen["labels"] = training.get_job(name).metadata.labels
training.delete_job(name, delete_options=client.V1DeleteOptions(propagation_policy="Foreground"))
json.dump(seen, sys.stdout)
