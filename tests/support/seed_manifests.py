"""The manifests of the five documents: those of examples/seeds, and what their API servers gave back."""

from pathlib import Path
from typing import Any

import yaml
from cluster_fixtures import EXAMPLES

SEEDS = EXAMPLES / "seeds"
SEED_000_MXNETJOB = (SEEDS / "000-mxnetjob-proposal" / "mxnetjob.yaml").read_text()
V1BETA1_TUNE = (SEEDS / "001-kubeflow-mxnet-operator" / "mx_job_tune_gpu.yaml").read_text()
DEEPINSIGHT_LOCAL = (SEEDS / "002-deepinsight" / "mx_job_local.yaml").read_text()
DEEPINSIGHT_DIST = (SEEDS / "002-deepinsight" / "mx_job_dist.yaml").read_text()
SEED_003_LINEAR = (SEEDS / "003-fioravanzo" / "mxjob-linear-dist.yml").read_text()
SEED_003_GPU = (SEEDS / "003-fioravanzo" / "mxjob-cifar-gpu.yml").read_text()
SEED_004_DIST = (SEEDS / "004-jzp1025" / "mx_job_dist.yaml").read_text()


def manifest(text: str) -> dict[str, Any]:
    """The object in one of these texts; times stay text, as in JSON."""
    loaded: dict[str, Any] = yaml.load(text, Loader=_JsonLoader)
    return loaded


class _JsonLoader(yaml.SafeLoader):
    pass


_JsonLoader.yaml_implicit_resolvers = {
    letter: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _stored(file: Path, more: str, **spec: Any) -> str:
    """What an API server gave back of a manifest: with its metadata and status, and what it had filled in."""
    stored = manifest(file.read_text()) | manifest(more)
    stored["spec"] |= spec
    replicas = stored["spec"].get("mxReplicaSpecs") or stored["spec"]["replicaSpecs"]
    for replica in replicas if isinstance(replicas, list) else replicas.values():
        replica["template"]["metadata"] = {"creationTimestamp": None}
        replica["template"]["spec"]["containers"][0].setdefault("resources", {})
        if "mxReplicaType" in replica:
            replica.setdefault("PsRootPort", 9091)
    return yaml.safe_dump(stored, sort_keys=False)


SEED_001_STORED = _stored(
    SEEDS / "001-kubeflow-mxnet-operator" / "mx_job_dist_gpu.yaml",
    """\
metadata:
  creationTimestamp: 2019-03-19T09:24:27Z
  generation: 1
  name: mxnet-job
  namespace: default
  resourceVersion: "3681685"
  selfLink: /apis/kubeflow.org/v1beta1/namespaces/default/mxjobs/mxnet-job
  uid: cb11013b-4a28-11e9-b7f4-704d7bb59f71
status:
  completionTime: 2019-03-19T09:25:11Z
  conditions:
  - lastTransitionTime: 2019-03-19T09:24:27Z
    lastUpdateTime: 2019-03-19T09:24:27Z
    message: MXJob mxnet-job is created.
    reason: MXJobCreated
    status: "True"
    type: Created
  - lastTransitionTime: 2019-03-19T09:24:27Z
    lastUpdateTime: 2019-03-19T09:24:29Z
    message: MXJob mxnet-job is running.
    reason: MXJobRunning
    status: "False"
    type: Running
  - lastTransitionTime: 2019-03-19T09:24:27Z
    lastUpdateTime: 2019-03-19T09:25:11Z
    message: MXJob mxnet-job is successfully completed.
    reason: MXJobSucceeded
    status: "True"
    type: Succeeded
  mxReplicaStatuses:
    Scheduler: {}
    Server: {}
    Worker: {}
  startTime: 2019-03-19T09:24:29Z
""",
)
SEED_004_STORED = _stored(
    SEEDS / "004-jzp1025" / "mx_job_dist.yaml",
    """\
metadata:
  clusterName: ""
  creationTimestamp: 2018-08-10T07:13:39Z
  generation: 1
  name: example-dist-job
  namespace: default
  resourceVersion: "491499"
  selfLink: /apis/kubeflow.org/v1alpha1/namespaces/default/mxjobs/example-dist-job
  uid: e800b1ed-9c6c-11e8-962f-704d7b2c0a63
status:
  phase: Running
  reason: ""
  replicaStatuses:
  - ReplicasStates:
      Running: 1
    mx_replica_type: SCHEDULER
    state: Running
  - ReplicasStates:
      Running: 1
    mx_replica_type: SERVER
    state: Running
  - ReplicasStates:
      Running: 1
    mx_replica_type: WORKER
    state: Running
  state: Running
""",
    RuntimeId="aycw",
    mxImage="jzp1025/mxnet:test",
    terminationPolicy={"chief": {"replicaIndex": 0, "replicaName": "SCHEDULER"}},
)
MXNET_OPERATOR_V1 = """\
apiVersion: kubeflow.org/v1
kind: MXJob
metadata:
  name: byteps-mxnet-job
spec:
  cleanPodPolicy: Running
  backoffLimit: 2
  activeDeadlineSeconds: 3600
  successPolicy: AllWorkers
  jobMode: MXTrain
  mxReplicaSpecs:
    Scheduler:
      replicas: 1
      template:
        spec:
          containers:
            - name: mxnet
              image: bytepsimage/mxnet
              command: ["bpslaunch"]
    Server:
      replicas: 2
      template:
        spec:
          containers:
            - name: mxnet
              image: bytepsimage/mxnet
              command: ["bpslaunch"]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: mxnet
              image: bytepsimage/mxnet
              command: ["bpslaunch"]
"""
"""In the way of mxnet-operator's byteps example: its own v1, with the policies straight under spec."""

ALL = {
    "MXNetJob proposal": SEED_000_MXNETJOB,
    "kubeflow/mxnet-operator, stored": SEED_001_STORED,
    "kubeflow/mxnet-operator, tuning": V1BETA1_TUNE,
    "deepinsight, local": DEEPINSIGHT_LOCAL,
    "deepinsight, distributed": DEEPINSIGHT_DIST,
    "fioravanzo, linear": SEED_003_LINEAR,
    "fioravanzo, GPU": SEED_003_GPU,
    "jzp1025": SEED_004_DIST,
    "jzp1025, stored": SEED_004_STORED,
    "mxnet-operator's v1": MXNET_OPERATOR_V1,
}
