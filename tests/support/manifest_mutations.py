"""Mistakes in manifests of jobs, drawn at random: types swapped, nulls, huge numbers, odd texts, at any path.

After Acto (Gu et al., SOSP 2023), which finds bugs of operators by changing properties of a custom resource.
"""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from builders import make_mxjob
from fresh_seeds import drawn, first_fresh_seed

Object = dict[str, Any]
Path = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3.5,
    10**12,
    2**31,
    2**63 - 1,
    1e300,
    "",
    "x",
    "5",
    "two",
    "A=b",
    "no label!",
    "gr\u00fc\u00dfe\u2028\u0000\U0001f600",
    "a" * 300,
    "../..",
    [],
    [None],
    ["a"],
    [5],
    [{}],
    [{"name": 1}],
    {},
    {"FOO": "bar"},
    {"name": "mxjob-port"},
    {"a": None},
    {"": {}},
)
_RICH: Object = {
    "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"name": "mxjob-port", "containerPort": 9100, "protocol": "TCP"}],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": 1}},
    "command": ["python"],
    "args": ["train.py", "--epochs", "3"],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a"}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
    "securityContext": {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}},
    "terminationMessagePolicy": "File",
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
}
_POD: Object = {
    "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "c", "configMap": {"name": "c"}}],
    "nodeSelector": {"gpu": "yes"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
    "securityContext": {"fsGroup": 1000},
    "initContainers": [{"name": "fetch", "image": "busybox", "env": [{"name": "A", "value": "b"}]}],
    "terminationGracePeriodSeconds": 30,
    "imagePullSecrets": [{"name": "registry"}],
    "hostname": "x",
    "restartPolicy": "Never",
}


def seeds() -> list[Object]:
    """Manifests to begin from: from the plainest to one with most of what people write, and older formats."""
    plain = make_mxjob("job").worker(1)
    gang = make_mxjob("job").gang(1, 2)
    rich = make_mxjob("job").scheduler(**_RICH).server(1, **_RICH).worker(2, **_RICH)
    for kind in ("Scheduler", "Worker"):
        rich.template(kind, **_POD).template_metadata(kind, labels={"team": "a"}, annotations={"b": "c"})
    rich.restart("OnFailure").template("Server", volumes=_POD["volumes"]).run_policy(
        cleanPodPolicy="Running",
        ttlSecondsAfterFinished=60,
        activeDeadlineSeconds=3600,
        backoffLimit=3,
        suspend=False,
        schedulingPolicy={"minAvailable": 2, "queue": "q", "minResources": {"cpu": "1"}},
        restartScope="Job",
        exitCodes={"retryable": [3], "permanent": [4]},
        progressDeadlineSeconds=60,
        failFast=True,
    )
    tune = make_mxjob("job").replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1)
    tune.template_metadata("TunerServer", annotations={"tuner-server-key": "2080ti"})
    container = {"name": "mxnet", "image": "x", **{k: _RICH[k] for k in ("env", "ports", "resources", "command")}}
    container["volumeMounts"] = []
    entries = [
        {
            "mxReplicaType": kind,
            "replicas": 1,
            "template": {"spec": {"containers": [copy.deepcopy(container)], "restartPolicy": "Never"}},
        }
        for kind in ("SCHEDULER", "SERVER", "WORKER")
    ]
    listed = {"jobMode": "dist", "replicaSpecs": entries, "terminationPolicy": {"chief": {"replicaName": "WORKER"}}}
    flat = {**gang.manifest()["spec"], "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60}
    made = [plain.manifest(), gang.manifest(), rich.manifest(), rich.manifest(), tune.manifest()]
    made += [plain.manifest() | {"spec": copy.deepcopy(listed)}, plain.manifest() | {"spec": copy.deepcopy(flat)}]
    for manifest in made:
        del manifest["metadata"]["uid"]
    parted: list[Object] = json.loads(json.dumps(made))  # parts that they share would be changed together
    return parted


def mutate(rng: random.Random, manifest: Object) -> tuple[Object, str]:
    """A copy with one or two mistakes below spec, and where they are."""
    mutant = copy.deepcopy(manifest)
    said = [_mutate_once(rng, mutant) for _ in range(1 if rng.random() < 0.8 else 2)]
    return mutant, "; ".join(said)


def fresh_mutants(count: int, manifests: Sequence[Object]) -> Iterator[tuple[Object, str]]:
    """These manifests, and mutants as `mutate` makes them: others in each run, fewer where not all is run."""
    yield from ((copy.deepcopy(each), "as it is") for each in manifests)
    rng = random.Random(first_fresh_seed())
    for _ in range(drawn(count, count // 3)):
        yield mutate(rng, rng.choice(manifests))


def _mutate_once(rng: random.Random, mutant: Object) -> str:
    paths = [("spec", *path) for path in _paths(mutant["spec"])]
    path = rng.choice(paths)
    *way, last = path
    parent: Any = mutant
    for step in way:
        parent = parent[step]
    where = ".".join(map(str, path))
    match rng.choice(("swap", "swap", "swap", "wrap", "delete", "add", "twice", "rename")):
        case "wrap":
            parent[last] = rng.choice(([parent[last]], {"a": parent[last]}))
            return f"{where} = {parent[last]!r:.60}"
        case "delete":
            del parent[last]
            return f"del {where}"
        case "add" if isinstance(parent[last], dict):
            name, value = rng.choice(("bogus", "Name", "nam", "envs")), rng.choice(VALUES)
            parent[last][name] = value
            return f"{where}.{name} = {value!r:.60}"
        case "twice" if isinstance(parent[last], list) and parent[last]:
            parent[last].append(copy.deepcopy(parent[last][-1]))
            return f"{where} twice"
        case "rename" if isinstance(last, str):
            parent[rng.choice((last.upper(), last[:-1], f"{last}s"))] = parent.pop(last)
            return f"rename {where}"
    parent[last] = copy.deepcopy(rng.choice(VALUES))
    return f"{where} = {parent[last]!r:.60}"


def _paths(value: Any) -> list[Path]:
    """Every path below a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for name, child in children for each in ((name,), *((name, *path) for path in _paths(child)))]
