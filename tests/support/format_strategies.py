"""Hypothesis strategies for valid jobs of every format, and for statuses that the controller may write."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJobStatus, ReplicaStatus

Manifest = dict[str, Any]

NAMES = st.sampled_from(["a", "example-dist-job", "mx-cifar-gpu"])
RESTART_POLICIES = st.sampled_from(["Never", "OnFailure", "Always"])
CLEAN_POLICIES = st.sampled_from(["", "All", "Running", "None"])
PORTS = st.integers(1024, 65535)
FLAT = {
    "cleanPodPolicy": CLEAN_POLICIES,
    "ttlSecondsAfterFinished": st.integers(0, 10_000),
    "activeDeadlineSeconds": st.integers(0, 10_000),
    "backoffLimit": st.integers(0, 10),
    "suspend": st.booleans(),
    "schedulingPolicy": st.fixed_dictionaries({}, optional={"minAvailable": st.integers(0, 9), "queue": NAMES}),
}
TIMES = st.datetimes(
    min_value=datetime(2020, 1, 1),
    max_value=datetime(2030, 1, 1),
    timezones=st.just(UTC),
).map(lambda time: time.replace(microsecond=0))


def containers() -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries(
        {"name": st.just("mxnet"), "image": st.just("mxjob/mxnet:1.9.1")},
        optional={
            "command": st.just(["python", "train.py"]),
            "env": st.just([{"name": "PS_VERBOSE", "value": "2"}, {"name": "DMLC_ROLE", "value": "mine"}]),
            "resources": st.sampled_from([{}, {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}]),
            "ports": st.sampled_from([None, [], [{"name": "metrics", "containerPort": 8000}]]),
        },
    ).map(lambda container: {name: value for name, value in container.items() if value is not None})


@st.composite
def templates(draw: st.DrawFn, *, restart: bool, port: bool = True) -> Manifest:
    main = draw(containers())
    if port and draw(st.booleans()):
        named = {"name": "mxjob-port", "containerPort": draw(PORTS)}
        main = {**main, "ports": [*main.get("ports", ()), named]}
    sidecar = {"name": "sidecar", "image": "x"}
    spec: Manifest = {"containers": draw(st.sampled_from([[main], [main, sidecar], [sidecar, main]]))}
    if restart and draw(st.booleans()):
        spec["restartPolicy"] = draw(RESTART_POLICIES)
    if draw(st.booleans()):
        share = {"name": "myshare", "azureFile": {"secretName": "mxsecret", "shareName": "mxsn"}}
        spec["volumes"] = [share]
    metadata = draw(
        st.sampled_from(
            [
                None,
                {},
                {"creationTimestamp": None},
                {"labels": {"mine": "1"}, "annotations": {"tuner-server-key": "1080ti"}},
            ]
        )
    )
    return {"spec": spec} if metadata is None else {"metadata": metadata, "spec": spec}


def gangs(scheduler: str, server: str, worker: str) -> st.SearchStrategy[dict[str, int | None]]:
    """Numbers of replicas by type; None where the manifest says none."""
    few = st.sampled_from([None, 1, 2, 3])
    return st.one_of(
        st.fixed_dictionaries({scheduler: st.sampled_from([None, 1]), server: few, worker: few}),
        st.fixed_dictionaries({worker: few}),
    )


@st.composite
def maps(draw: st.DrawFn, types: dict[str, int | None], *, labels: bool = False) -> Manifest:
    specs: Manifest = {}
    for replica_type, count in types.items():
        replica: Manifest = {"template": draw(templates(restart=True))}
        if count is not None:
            replica["replicas"] = count
        if draw(st.booleans()):
            replica["restartPolicy"] = draw(st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"]))
        annotated = "tuner-server-key" in (replica["template"].get("metadata") or {}).get("annotations", {})
        if labels and not annotated and draw(st.booleans()):
            replica["label"] = draw(st.sampled_from(["2080ti", ""]))
        specs[replica_type] = replica
    return specs


@st.composite
def jobs_with_a_map(draw: st.DrawFn, job_format: str) -> Manifest:
    """Of v1, v1beta1 and mxnet-operator's own v1."""
    tuning = st.just({"TunerTracker": 1, "TunerServer": 2, "Tuner": None})
    types = draw(st.one_of(gangs("Scheduler", "Server", "Worker"), gangs("scheduler", "server", "worker"), tuning))
    spec: Manifest = {"jobMode": draw(st.sampled_from(["MXTrain", "MXTune"]))}
    if draw(st.booleans()):
        spec["successPolicy"] = draw(st.sampled_from(["", "AllWorkers"]))
    spec["mxReplicaSpecs"] = draw(maps(types, labels=job_format != "v1"))
    if job_format == "v1":
        spec |= draw(st.fixed_dictionaries({}, optional={"runPolicy": st.fixed_dictionaries({}, optional=FLAT)}))
    else:
        allowed = FLAT if job_format == "flat-v1" else dict(list(FLAT.items())[:2])
        spec |= draw(st.fixed_dictionaries({}, optional=allowed))
    version = "v1beta1" if job_format == "v1beta1" else "v1"
    return _manifest(f"kubeflow.org/{version}", "MXJob", draw(NAMES), spec)


@st.composite
def jobs_with_a_list(draw: st.DrawFn, job_format: str) -> Manifest:
    """Of kubeflow.org/v1alpha1, fioravanzo.org and mxnet.mlkube.io."""
    default = "SCHEDULER" if job_format == "fioravanzo" else "WORKER"
    port_field = "mxPort" if job_format == "fioravanzo" else "PsRootPort"
    local = job_format != "fioravanzo" and draw(st.booleans())
    few = st.sampled_from([None, 1, 2, 3])
    counts = (
        {"WORKER": draw(st.sampled_from([None, 1]))}
        if local
        else {
            "SCHEDULER": draw(st.sampled_from([None, 1])),
            "SERVER": draw(few),
            "WORKER": draw(few),
        }
    )
    entries = []
    for replica_type, count in counts.items():
        with_field = draw(st.booleans())
        entry: Manifest = {"template": draw(templates(restart=True, port=not with_field))}
        if replica_type != default or draw(st.booleans()):
            entry["mxReplicaType"] = replica_type
        if count is not None:
            entry["replicas"] = count
        if with_field:
            entry[port_field] = draw(PORTS)
        entries.append(entry)
    spec: Manifest = {"replicaSpecs": draw(st.permutations(entries))}
    if job_format != "fioravanzo":
        spec["jobMode"] = "local" if local else "dist"
    optional = {} if job_format == "mlkube" else {"schedulerName": NAMES, "mxImage": NAMES}
    if job_format == "v1alpha1":
        optional["cleanupPodPolicy"] = CLEAN_POLICIES
    spec |= draw(st.fixed_dictionaries({}, optional={**optional, "RuntimeId": st.just("aycw")}))
    if job_format != "mlkube" and draw(st.booleans()):
        chief = draw(
            st.sampled_from([{"replicaName": "WORKER"}, *([] if local else [{}, {"replicaName": "SCHEDULER"}])])
        )
        spec["terminationPolicy"] = {"chief": {**chief, "replicaIndex": 0}}
    header = {
        "v1alpha1": ("kubeflow.org/v1alpha1", "MXJob"),
        "fioravanzo": ("fioravanzo.org/v1alpha1", "MXJob"),
        "mlkube": ("mxnet.mlkube.io/v1beta1", "MxJob"),
    }
    return _manifest(*header[job_format], draw(NAMES), spec)


@st.composite
def mxnetjobs(draw: st.DrawFn) -> Manifest:
    types = draw(gangs("scheduler", "server", "worker"))
    return _manifest("kubeflow.org/v1alpha1", "MXNetJob", draw(NAMES), {"replicaSpecs": draw(maps(types))})


JOBS = {
    "v1": jobs_with_a_map("v1"),
    "flat-v1": jobs_with_a_map("flat-v1"),
    "v1beta1": jobs_with_a_map("v1beta1"),
    "v1alpha1": jobs_with_a_list("v1alpha1"),
    "fioravanzo": jobs_with_a_list("fioravanzo"),
    "mlkube": jobs_with_a_list("mlkube"),
    "mxnetjob": mxnetjobs(),
}


@st.composite
def statuses(draw: st.DrawFn) -> MXJobStatus:
    """Statuses as the controller writes them: the state is the conditions'."""
    words = st.sampled_from(
        [
            conditions.CREATED,
            conditions.RUNNING,
            conditions.RESTARTING,
            conditions.SUSPENDED,
            conditions.SUCCEEDED,
            conditions.FAILED,
            conditions.PODS_SCHEDULED,
        ]
    )
    current = tuple(
        Condition(
            type=word,
            status=draw(st.sampled_from(["True", "False"])),
            reason=conditions.reason(word),
            message=draw(st.text(max_size=20)),
            last_update_time=draw(st.none() | TIMES),
            last_transition_time=draw(TIMES),
        )
        for word in draw(st.lists(words, unique=True))
    )
    count = st.integers(0, 5)
    counts = st.builds(ReplicaStatus, active=count, succeeded=count, failed=count)
    types = st.sampled_from(["Scheduler", "Server", "Worker", "TunerTracker", "TunerServer", "Tuner"])
    return MXJobStatus(
        state=conditions.state_of(current),
        ready=draw(st.sampled_from(["", "3/4"])),
        duration=draw(st.sampled_from(["", "1h5m"])),
        conditions=current,
        replica_statuses=draw(st.dictionaries(types, counts)),
        completed_indexes=draw(st.dictionaries(types, st.sampled_from(["0", "0-2,5"]))),
        restarts=draw(count),
        restarts_count_towards_max=draw(count),
        restarting_pods=tuple(draw(st.lists(st.sampled_from(["u", "v"]), unique=True))),
        first_attempt=draw(count),
        start_time=draw(st.none() | TIMES),
        completion_time=draw(st.none() | TIMES),
    )


def _manifest(api_version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": "default", "uid": "7f3a01c2-0000-4000-8000-000000000000"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
