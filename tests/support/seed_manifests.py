"""The manifests of the five documents, complete, as their users wrote or read them.

Indentation, which two of the documents lost on their way, is restored. In 003's second manifest the aliases came before
their anchors, which no YAML reader takes: the anchors stand at the first use here.
"""

from typing import Any

import yaml

SEED_000_MXNETJOB = """\
apiVersion: "kubeflow.org/v1alpha1"
kind: "MXNetJob"
metadata:
  name: "example"
spec:
  replicaSpecs:
    worker:
      replicas: 4
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: kubeflow/dog-food-for-mxnet:1.0
    server:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: kubeflow/dog-food-for-mxnet:1.0
    scheduler:
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: kubeflow/dog-food-for-mxnet:1.0
"""

SEED_001_STORED = """\
apiVersion: kubeflow.org/v1beta1
kind: MXJob
metadata:
  creationTimestamp: 2019-03-19T09:24:27Z
  generation: 1
  name: mxnet-job
  namespace: default
  resourceVersion: "3681685"
  selfLink: /apis/kubeflow.org/v1beta1/namespaces/default/mxjobs/mxnet-job
  uid: cb11013b-4a28-11e9-b7f4-704d7bb59f71
spec:
  cleanPodPolicy: All
  jobMode: MXTrain
  mxReplicaSpecs:
    Scheduler:
      replicas: 1
      restartPolicy: Never
      template:
        metadata:
          creationTimestamp: null
        spec:
          containers:
          - image: mxjob/mxnet:gpu
            name: mxnet
            ports:
            - containerPort: 9091
              name: mxjob-port
            resources: {}
    Server:
      replicas: 1
      restartPolicy: Never
      template:
        metadata:
          creationTimestamp: null
        spec:
          containers:
          - image: mxjob/mxnet:gpu
            name: mxnet
            ports:
            - containerPort: 9091
              name: mxjob-port
            resources: {}
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        metadata:
          creationTimestamp: null
        spec:
          containers:
          - args:
            - /incubator-mxnet/example/image-classification/train_mnist.py
            - --num-epochs
            - "10"
            - --num-layers
            - "2"
            - --kv-store
            - dist_device_sync
            - --gpus
            - "0"
            command:
            - python
            image: mxjob/mxnet:gpu
            name: mxnet
            ports:
            - containerPort: 9091
              name: mxjob-port
            resources:
              limits:
                nvidia.com/gpu: "1"
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
"""

SEED_003_LINEAR = """\
apiVersion: fioravanzo.org/v1alpha1
kind: MXJob
metadata:
  name: mx-test-dist
spec:
  replicaSpecs:
    - replicas: 1 # 1 scheduler
      mxReplicaType: SCHEDULER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-linear-dist:cpu
              name: mxnet
              imagePullPolicy: Always
          restartPolicy: OnFailure
    - replicas: 1 # 1 server
      mxReplicaType: SERVER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-linear-dist:cpu
              name: mxnet
              imagePullPolicy: Always
          restartPolicy: OnFailure
    - replicas: 1 # 1 worker
      mxReplicaType: WORKER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-linear-dist:cpu
              name: mxnet
              imagePullPolicy: Always
          restartPolicy: OnFailure
"""

SEED_003_GPU = """\
apiVersion: fioravanzo.org/v1alpha1
kind: MXJob
metadata:
  name: mx-cifar-gpu
spec:
  replicaSpecs:
    - replicas: 1 # 1 Scheduler
      mxReplicaType: SCHEDULER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-cifar10-dist:gpu
              name: mxnet
              imagePullPolicy: Always
              volumeMounts: &volmount
                - mountPath: /
                  name: myshare
          restartPolicy: OnFailure
          volumes: &cifarvol
            - name: myshare
              azureFile:
                secretName: mxsecret
                shareName: mxsn
                readOnly: false
    - replicas: 1 # 1 Server
      mxReplicaType: SERVER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-cifar10-dist:gpu
              name: mxnet
              imagePullPolicy: Always
              volumeMounts: *volmount
          restartPolicy: OnFailure
          volumes: *cifarvol
    - replicas: 1 # 1 Worker
      mxReplicaType: WORKER
      template:
        spec:
          containers:
            - image: stefanofioravanzo/mxnet-cifar10-dist:gpu
              name: mxnet
              imagePullPolicy: Always
              # Add GPU resource
              resources:
                limits:
                  alpha.kubernetes.io/nvidia-gpu: 1
              volumeMounts: *volmount
          restartPolicy: OnFailure
          volumes: *cifarvol
"""

SEED_004_DIST = """\
apiVersion: "kubeflow.org/v1alpha1"
kind: "MXJob"
metadata:
  name: "example-dist-job"
spec:
  jobMode: "dist"
  replicaSpecs:
    - replicas: 1
      mxReplicaType: SCHEDULER
      PsRootPort: 9000
      template:
        spec:
          containers:
            - image: jzp1025/mxnet:test
              name: mxnet
              command: ["python"]
              args: ["train_mnist.py"]
              workingDir: "/incubator-mxnet/example/image-classification"
          restartPolicy: OnFailure
    - replicas: 1
      mxReplicaType: SERVER
      template:
        spec:
          containers:
            - image: jzp1025/mxnet:test
              name: mxnet
              command: ["python"]
              args: ["train_mnist.py"]
              workingDir: "/incubator-mxnet/example/image-classification"
          restartPolicy: OnFailure
    - replicas: 1
      mxReplicaType: WORKER
      template:
        spec:
          containers:
            - image: jzp1025/mxnet:test
              name: mxnet
              command: ["python"]
              args: ["train_mnist.py","--num-epochs=10","--num-layers=2","--kv-store=dist_device_sync"]
              workingDir: "/incubator-mxnet/example/image-classification"
          restartPolicy: OnFailure
"""

SEED_004_STORED = """\
apiVersion: kubeflow.org/v1alpha1
kind: MXJob
metadata:
  clusterName: ""
  creationTimestamp: 2018-08-10T07:13:39Z
  generation: 1
  name: example-dist-job
  namespace: default
  resourceVersion: "491499"
  selfLink: /apis/kubeflow.org/v1alpha1/namespaces/default/mxjobs/example-dist-job
  uid: e800b1ed-9c6c-11e8-962f-704d7b2c0a63
spec:
  RuntimeId: aycw
  jobMode: dist
  mxImage: jzp1025/mxnet:test
  replicaSpecs:
  - PsRootPort: 9000
    mxReplicaType: SCHEDULER
    replicas: 1
    template:
      metadata:
        creationTimestamp: null
      spec:
        containers:
        - args:
          - train_mnist.py
          command:
          - python
          image: jzp1025/mxnet:test
          name: mxnet
          resources: {}
          workingDir: /incubator-mxnet/example/image-classification
        restartPolicy: OnFailure
  - PsRootPort: 9091
    mxReplicaType: SERVER
    replicas: 1
    template:
      metadata:
        creationTimestamp: null
      spec:
        containers:
        - args:
          - train_mnist.py
          command:
          - python
          image: jzp1025/mxnet:test
          name: mxnet
          resources: {}
          workingDir: /incubator-mxnet/example/image-classification
        restartPolicy: OnFailure
  - PsRootPort: 9091
    mxReplicaType: WORKER
    replicas: 1
    template:
      metadata:
        creationTimestamp: null
      spec:
        containers:
        - args:
          - train_mnist.py
          - --num-epochs=10
          - --num-layers=2
          - --kv-store=dist_device_sync
          command:
          - python
          image: jzp1025/mxnet:test
          name: mxnet
          resources: {}
          workingDir: /incubator-mxnet/example/image-classification
        restartPolicy: OnFailure
  terminationPolicy:
    chief:
      replicaIndex: 0
      replicaName: SCHEDULER
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
"""

DEEPINSIGHT_LOCAL = """\
apiVersion: "mxnet.mlkube.io/v1beta1"
kind: "MxJob"
metadata:
  name: "example-local-job"
spec:
  jobMode: "local"
  replicaSpecs:
    - replicas: 1
      mxReplicaType: WORKER
      template:
        spec:
          containers:
            - image: mxnet-cpu-local
              name: mxnet
              command: ["python"]
              args: ["train_cifar10.py","--num-epochs=10","--model-prefix=./wltest","--num-layers=2"]
              workingDir: "/mxnet/example/image-classification"
          restartPolicy: OnFailure
"""
"""Document 002 names its manifests, `examples/mx_job_local.yaml` and `mx_job_dist.yaml`, without quoting them."""

DEEPINSIGHT_DIST = """\
apiVersion: "mxnet.mlkube.io/v1beta1"
kind: "MxJob"
metadata:
  name: "example-dist-job"
spec:
  jobMode: "dist"
  replicaSpecs:
    - replicas: 1
      mxReplicaType: SCHEDULER
      PsRootPort: 9091
      template:
        spec:
          containers:
            - image: mxnet-cpu-dist
              name: mxnet
              command: ["python"]
              args: ["train_cifar10.py"]
              workingDir: "/mxnet/example/image-classification"
          restartPolicy: OnFailure
    - replicas: 2
      mxReplicaType: SERVER
      template:
        spec:
          containers:
            - image: mxnet-cpu-dist
              name: mxnet
              command: ["python"]
              args: ["train_cifar10.py"]
              workingDir: "/mxnet/example/image-classification"
          restartPolicy: OnFailure
    - replicas: 3
      mxReplicaType: WORKER
      template:
        spec:
          containers:
            - image: mxnet-cpu-dist
              name: mxnet
              command: ["python"]
              args: ["train_cifar10.py","--num-epochs=10","--num-layers=2","--kv-store=dist_device_sync"]
              workingDir: "/mxnet/example/image-classification"
          restartPolicy: OnFailure
"""

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

V1BETA1_TUNE = """\
apiVersion: kubeflow.org/v1beta1
kind: MXJob
metadata:
  name: auto-tuning-job
spec:
  jobMode: MXTune
  mxReplicaSpecs:
    TunerTracker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: mxjob/auto-tuning:gpu
              command: ["python3"]
              args: ["/home/scripts/start-job.py"]
    TunerServer:
      replicas: 1
      label: 2080ti
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: mxjob/auto-tuning:gpu
              command: ["python3"]
              args: ["/home/scripts/start-job.py"]
    Tuner:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: mxnet
              image: mxjob/auto-tuning:gpu
              command: ["python3"]
              args: ["/home/scripts/start-job.py"]
"""
"""In the way of the example that document 001 names, `examples/v1beta1/tune/mx_job_tune_gpu.yaml`."""

ALL = {
    "seed 000": SEED_000_MXNETJOB,
    "seed 001, stored": SEED_001_STORED,
    "seed 001, tuning": V1BETA1_TUNE,
    "seed 002, local": DEEPINSIGHT_LOCAL,
    "seed 002, distributed": DEEPINSIGHT_DIST,
    "seed 003, linear": SEED_003_LINEAR,
    "seed 003, GPU": SEED_003_GPU,
    "seed 004": SEED_004_DIST,
    "seed 004, stored": SEED_004_STORED,
    "mxnet-operator's v1": MXNET_OPERATOR_V1,
}


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
