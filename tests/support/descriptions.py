"""One table of descriptions for every door to MXJobs: what each means, and what none of them takes."""

from datetime import timedelta
from typing import Any, Final

from kubernetes import client as k8s

from mxnet_operator.description import Role

COMMON: Final = {"image": "mxjob/digits:1.0", "command": ["python", "train.py"]}
SECRET: Final = {"secretKeyRef": {"name": "s3", "key": "password"}}
CLAIM: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "images"}}
AFFINITY: Final = {
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}
}
ANTI_AFFINITY: Final = k8s.V1Affinity(
    pod_anti_affinity=k8s.V1PodAntiAffinity(
        required_during_scheduling_ignored_during_execution=[
            k8s.V1PodAffinityTerm(topology_key="kubernetes.io/hostname")
        ]
    )
)
GPU_TAINT: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
EVERYWHERE: Final = ("Scheduler", "Server", "Worker")


def pod(field: str, value: Any) -> dict[str, Any]:
    """What every pod of a job of two workers has then."""
    return {f"spec.mxReplicaSpecs.{each}.template.spec.{field}": value for each in EVERYWHERE}


def container(field: str, value: Any) -> dict[str, Any]:
    """What every container of a job of two workers has then."""
    return pod(f"containers.0.{field}", value)


def counts(**replicas: int) -> dict[str, Any]:
    """How many replicas there are of each type; None for a type that isn't there."""
    return {f"spec.mxReplicaSpecs.{each}.replicas": replicas.get(each) for each in EVERYWHERE}


LIMITS: Final = "spec.mxReplicaSpecs.{}.template.spec.containers.0.resources.limits"

MEANT: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "nothing said": ({}, {**counts(Worker=1), "spec.mxReplicaSpecs.Worker.restartPolicy": "ExitCode"}),
    "two workers": ({"workers": 2}, counts(Scheduler=1, Server=2, Worker=2)),
    "two workers that train alone": ({"workers": 2, "servers": 0}, counts(Worker=2)),
    "one server": ({"workers": 4, "servers": 1}, counts(Scheduler=1, Server=1, Worker=4)),
    "variables by name": (
        {"workers": 2, "env": {"LR": "0.1", "PASSWORD": SECRET}},
        container("env", [{"name": "LR", "value": "0.1"}, {"name": "PASSWORD", "valueFrom": SECRET}]),
    ),
    "variables as Kubernetes has them": (
        {"workers": 2, "env": [{"name": "LR", "value": "0.1"}]},
        container("env", [{"name": "LR", "value": "0.1"}]),
    ),
    "variables as models": (
        {
            "workers": 2,
            "env": [
                k8s.V1EnvVar(
                    name="PASSWORD",
                    value_from=k8s.V1EnvVarSource(secret_key_ref=k8s.V1SecretKeySelector(name="s3", key="password")),
                )
            ],
        },
        container("env", [{"name": "PASSWORD", "valueFrom": SECRET}]),
    ),
    "secrets, config maps and more": (
        {"workers": 2, "secrets": ["s3"], "config_maps": ["paths"], "env_from": [{"prefix": "X_"}]},
        container("envFrom", [{"secretRef": {"name": "s3"}}, {"configMapRef": {"name": "paths"}}, {"prefix": "X_"}]),
    ),
    "GPUs of workers": (
        {"workers": 2, "gpus_per_worker": 4},
        {LIMITS.format("Worker"): {"nvidia.com/gpu": 4}, LIMITS.format("Server"): None},
    ),
    "GPUs of another maker beside other resources": (
        {
            "workers": 2,
            "gpus_per_worker": 1,
            "gpu_resource": "amd.com/gpu",
            "container_resources": {"limits": {"cpu": 2}},
        },
        {LIMITS.format("Worker"): {"cpu": 2, "amd.com/gpu": 1}},
    ),
    "GPUs of a role by the job's name for them": (
        {"workers": Role(replicas=2, gpus=2), "gpu_resource": "amd.com/gpu", "gpus_per_worker": 1},
        {LIMITS.format("Worker"): {"amd.com/gpu": 2}, LIMITS.format("Server"): None},
    ),
    "a role's own name for GPUs": (
        {"workers": Role(replicas=2, gpu_resource="amd.com/gpu"), "gpus_per_worker": 1},
        {LIMITS.format("Worker"): {"amd.com/gpu": 1}},
    ),
    "a role without GPUs": (
        {"workers": Role(replicas=2, gpus=0), "gpus_per_worker": 1},
        {LIMITS.format("Worker"): None},
    ),
    "resources as a model": (
        {"container_resources": k8s.V1ResourceRequirements(limits={"cpu": "2"})},
        {LIMITS.format("Worker"): {"cpu": "2"}},
    ),
    "a volume": (
        {
            "workers": 2,
            "volumes": [CLAIM],
            "volume_mounts": [k8s.V1VolumeMount(name="data", mount_path="/data", read_only=True)],
        },
        {
            **pod("volumes", [CLAIM]),
            **container("volumeMounts", [{"name": "data", "mountPath": "/data", "readOnly": True}]),
        },
    ),
    "a pool of nodes": (
        {"workers": 2, "node_selector": {"pool": "gpus"}, "tolerations": [GPU_TAINT], "affinity": ANTI_AFFINITY},
        {**pod("nodeSelector", {"pool": "gpus"}), **pod("tolerations", [GPU_TAINT]), **pod("affinity", AFFINITY)},
    ),
    "a registry": (
        {"workers": 2, "image_pull_secrets": ["registry"], "image_pull_policy": "IfNotPresent"},
        {**pod("imagePullSecrets", [{"name": "registry"}]), **container("imagePullPolicy", "IfNotPresent")},
    ),
    "a registry as a model": (
        {"workers": 2, "image_pull_secrets": [k8s.V1LocalObjectReference(name="registry")]},
        pod("imagePullSecrets", [{"name": "registry"}]),
    ),
    "who it is": (
        {
            "workers": 2,
            "service_account_name": "trainer",
            "security_context": {"runAsUser": 1000},
            "container_security_context": {"allowPrivilegeEscalation": False},
        },
        {
            **pod("serviceAccountName", "trainer"),
            **pod("securityContext", {"runAsUser": 1000}),
            **container("securityContext", {"allowPrivilegeEscalation": False}),
        },
    ),
    "how it is placed": (
        {"workers": 2, "priority_class_name": "high", "scheduler_name": "volcano", "runtime_class_name": "nvidia"},
        {**pod("priorityClassName", "high"), **pod("schedulerName", "volcano"), **pod("runtimeClassName", "nvidia")},
    ),
    "few nodes": ({"workers": 2, "placement": "Pack"}, {"spec.runPolicy.placement": "Pack"}),
    "an init container": (
        {"workers": 2, "init_containers": [{"name": "fetch", "image": "busybox"}]},
        pod("initContainers", [{"name": "fetch", "image": "busybox"}]),
    ),
    "labels of pods": (
        {"pod_labels": {"team": "vision"}, "pod_annotations": {"sidecar.istio.io/inject": "false"}},
        {
            "spec.mxReplicaSpecs.Worker.template.metadata.labels.team": "vision",
            "spec.mxReplicaSpecs.Worker.template.metadata.annotations": {"sidecar.istio.io/inject": "false"},
        },
    ),
    "labels of the job": (
        {"labels": {"team": "vision"}, "annotations": {"cost": "42"}},
        {"metadata.labels.team": "vision", "metadata.annotations.cost": "42"},
    ),
    "its ends": (
        {
            "clean_pod_policy": "Running",
            "ttl_seconds_after_finished": timedelta(hours=1),
            "active_deadline_seconds": 7200,
            "progress_deadline_seconds": timedelta(minutes=10),
            "backoff_limit": 2,
            "restart_scope": "Replica",
            "restart_policy": "Never",
            "success_policy": "AllWorkers",
            "run_policy": {"failFast": False},
        },
        {
            "spec.runPolicy": {
                "failFast": False,
                "cleanPodPolicy": "Running",
                "ttlSecondsAfterFinished": 3600,
                "activeDeadlineSeconds": 7200,
                "progressDeadlineSeconds": 600,
                "backoffLimit": 2,
                "restartScope": "Replica",
            },
            "spec.successPolicy": "AllWorkers",
            "spec.mxReplicaSpecs.Worker.restartPolicy": "Never",
        },
    ),
    "a role of its own": (
        {
            "workers": 2,
            "env": {"A": "1"},
            "servers": Role(
                replicas=3, node_selector={"pool": "cpus"}, env={"B": "2"}, container_resources={"limits": {"cpu": 8}}
            ),
        },
        {
            **counts(Scheduler=1, Server=3, Worker=2),
            "spec.mxReplicaSpecs.Server.template.spec.nodeSelector": {"pool": "cpus"},
            "spec.mxReplicaSpecs.Worker.template.spec.nodeSelector": None,
            "spec.mxReplicaSpecs.Server.template.spec.containers.0.env": [
                {"name": "A", "value": "1"},
                {"name": "B", "value": "2"},
            ],
            LIMITS.format("Server"): {"cpu": 8},
        },
    ),
    "a role as a mapping": (
        {"workers": {"replicas": 2, "gpus": 1, "image": "mxjob/digits:gpu"}},
        {
            **counts(Scheduler=1, Server=2, Worker=2),
            LIMITS.format("Worker"): {"nvidia.com/gpu": 1},
            "spec.mxReplicaSpecs.Worker.template.spec.containers.0.image": "mxjob/digits:gpu",
            "spec.mxReplicaSpecs.Server.template.spec.containers.0.image": "mxjob/digits:1.0",
        },
    ),
    "a ReplicaSpec that is merged": (
        {"workers": {"replicas": 2, "template": {"spec": {"hostNetwork": True}}}},
        {
            "spec.mxReplicaSpecs.Worker.template.spec.hostNetwork": True,
            "spec.mxReplicaSpecs.Worker.template.spec.containers.0.command": COMMON["command"],
        },
    ),
    "a whole ReplicaSpec": (
        {"servers": {"replicas": 1, "template": {"spec": {"containers": [{"name": "mxnet", "image": "bare"}]}}}},
        {"spec.mxReplicaSpecs.Server.template.spec.containers": [{"name": "mxnet", "image": "bare"}]},
    ),
}
"""What is given beside COMMON, and what is at some paths of the manifest then (None: nothing)."""

REFUSED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a string for a list": (
        {"command": "python train.py"},
        'command: must be a list of strings, is the string \'python train.py\': write ["python", "train.py"]',
    ),
    "words of a shell": (
        {"args": "--name 'a b'"},
        'args: must be a list of strings, is the string "--name \'a b\'": write ["--name", "a b"]',
    ),
    "a number among arguments": (
        {"args": ["--epochs", 20]},
        'args[1]: must be a string, is the number 20: write "20"',
    ),
    "a number as a variable": ({"env": {"N": 3}}, 'env.N: must be a string, is the number 3: write "3"'),
    "None as a variable": ({"env": {"N": None}}, 'env.N: must be a string, is None: leave it out, or write ""'),
    "a boolean as a variable": (
        {"env": {"N": True}},
        'env.N: must be a string, is the boolean True: write "true" or "1"',
    ),
    "a number in an EnvVar": (
        {"env": [{"name": "N", "value": 3}]},
        'env[0].value: must be a string, is the number 3: write "3"',
    ),
    "an argument that is no UTF-8": ({"args": ["caf\udce9"]}, "args[0]: isn't UTF-8: 'caf\\udce9'"),
    "a variable's name that is no UTF-8": ({"env": {"\udce9": "1"}}, "env: isn't UTF-8: '\\udce9'"),
    "text for variables": (
        {"env": "A=1"},
        "env: must map names to values, or be a list of EnvVars, is the string 'A=1'",
    ),
    "a number of a selector": (
        {"node_selector": {"zone": 1}},
        'node_selector.zone: must be a string, is the number 1: write "1"',
    ),
    "one volume for a list": (
        {"volumes": CLAIM},
        "volumes: must be a list of mappings, is the mapping: put it in [ ]",
    ),
    "two volumes of a name": (
        {"volumes": [CLAIM, {"name": "other", "emptyDir": {}}, {"name": CLAIM["name"], "emptyDir": {}}]},
        f"volumes[2].name: is {CLAIM['name']!r}, as is that of volumes[0]",
    ),
    "two mounts at a path": (
        {"volume_mounts": [{"name": "a", "mountPath": "/x", "readOnly": True}, {"name": "b", "mountPath": "/x"}]},
        "volume_mounts[1].mountPath: is '/x', as is that of volume_mounts[0]",
    ),
    "two init containers of a name in a role": (
        {"workers": {"init_containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]}},
        "workers.init_containers[1].name: is 'a', as is that of workers.init_containers[0]",
    ),
    "one secret for a list": (
        {"secrets": "s3"},
        "secrets: must be a list of strings, is the string 's3': write [\"s3\"]",
    ),
    "text for a number": (
        {"workers": "two"},
        "workers: must be a whole number from 0 on, a Role or a ReplicaSpec, is the string 'two'",
    ),
    "fewer than none": (
        {"servers": -1},
        "servers: must be a whole number from 0 on, a Role or a ReplicaSpec, is the number -1",
    ),
    "half a GPU": (
        {"gpus_per_worker": 0.5},
        "gpus_per_worker: must be a whole number from 0 on, is the number 0.5",
    ),
    "a misspelt policy": (
        {"restart_policy": "exitcode"},
        "restart_policy: must be one of Never, OnFailure, Always, ExitCode, is the string 'exitcode': did you mean"
        " ExitCode?",
    ),
    "a wish for nodes that there isn't": (
        {"placement": "pack"},
        "placement: must be one of Pack, Exclusive, is the string 'pack': did you mean Pack?",
    ),
    "a misspelt field of a role": (
        {"servers": {"replica": 2}},
        "servers: there is no 'replica': did you mean replicas?",
    ),
    "a mistake within a role": (
        {"servers": {"command": "sh"}},
        "servers.command: must be a list of strings, is the string 'sh': write [\"sh\"]",
    ),
    "text for seconds": (
        {"active_deadline_seconds": "2h"},
        "active_deadline_seconds: must be a whole number of seconds, or a timedelta, is the string '2h'",
    ),
    "GPUs of a role said twice": (
        {"workers": Role(gpus=2, container_resources={"limits": {"nvidia.com/gpu": 1}})},
        "workers.gpus: is 2, but workers.container_resources.limits[nvidia.com/gpu] is 1: give one of them",
    ),
    "GPUs said twice": (
        {"gpus_per_worker": 2, "container_resources": {"limits": {"nvidia.com/gpu": 1}}},
        "gpus_per_worker: is 2, but container_resources.limits[nvidia.com/gpu] is 1: give one of them",
    ),
    "GPUs requested beside their number": (
        {"gpus_per_worker": 2, "container_resources": {"requests": {"nvidia.com/gpu": 1}}},
        "gpus_per_worker: is 2, but container_resources.requests[nvidia.com/gpu] is 1: give one of them",
    ),
}
"""What is given beside COMMON, and the refusal's one sentence."""


def at(manifest: Any, path: str) -> Any:
    """What is at a path of a manifest; None where nothing is."""
    for part in path.split("."):
        if isinstance(manifest, list):
            manifest = manifest[int(part)] if int(part) < len(manifest) else None
        else:
            manifest = (manifest or {}).get(part)
    return manifest
