"""Of generated jobs of every format: what is converted means the same, and no status is lost in a format's words.

Hypothesis prints the example that fails, and a blob by which it is found again (`@reproduce_failure`).
"""

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from builders import NOW, plan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxnet_operator.api import conditions, job_formats
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.types import Condition, MXJobStatus, ReplicaStatus
from mxnet_operator.api.validation import decode, unknown_fields, validate
from mxnet_operator.builders.pods import build_pod
from mxnet_operator.plan import Observed

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


thorough = settings(max_examples=25, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
every_format = pytest.mark.parametrize("name", JOBS)


def planned(manifest, metadata):
    """What is done first for a manifest that was stored with this metadata: actions, events, and the pods built."""
    job = decode(job_formats.to_v1({**manifest, "metadata": metadata}))
    first = plan(job, Observed((), ()), NOW)
    pods = [
        build_pod(with_defaults(job), action.type, action.index, action.attempt)
        for action in first.actions
        if hasattr(action, "attempt")
    ]
    return first, pods


@every_format
@thorough
@given(data=st.data())
def test_a_job_is_valid_in_its_format_and_in_v1(name, data):
    manifest = data.draw(JOBS[name])
    assert job_formats.errors(manifest) == []
    assert unknown_fields(manifest) == []
    meant = job_formats.to_v1(manifest)
    assert validate(meant) == []
    assert unknown_fields(meant) == []


@every_format
@thorough
@given(data=st.data())
def test_a_format_is_known_again_when_the_server_gives_it_back_in_the_stored_version(name, data):
    manifest = data.draw(JOBS[name])
    job_format = job_formats.format_of(manifest)
    assert job_format.name == name or (
        name == "flat-v1" and job_format.name in {"v1", "v1beta1"}
    )  # written with few fields
    back = {**manifest, "apiVersion": job_format.kind.api_version}
    if job_format.name == "v1beta1":  # its definition's default
        back["spec"] = {"cleanPodPolicy": "All", **manifest["spec"]}
    assert job_formats.format_of(back) is job_format
    assert decode(job_formats.to_v1(back)) == decode(job_formats.to_v1(manifest))


@every_format
@thorough
@given(data=st.data())
def test_what_is_converted_plans_the_same_pods(name, data):
    manifest = data.draw(JOBS[name])
    conversion = convert(manifest)
    converted = manifest if conversion is None else conversion.manifest
    assert planned(converted, manifest["metadata"]) == planned(manifest, manifest["metadata"])


@every_format
@thorough
@given(data=st.data())
def test_converting_twice_changes_nothing_and_converting_changes_no_input(name, data):
    manifest = data.draw(JOBS[name])
    written = copy.deepcopy(manifest)
    conversion = convert(manifest)
    meant = job_formats.to_v1(manifest)
    assert manifest == written
    assert job_formats.to_v1(meant) == meant
    if conversion is not None:
        assert convert(conversion.manifest) is None
        assert job_formats.to_v1(conversion.manifest) == conversion.manifest


@every_format
@thorough
@given(data=st.data())
def test_every_remark_names_a_field_of_what_was_converted(name, data):
    conversion = convert(data.draw(JOBS[name]))
    for remark in conversion.remarks if conversion else ():
        node = conversion.manifest
        for key in remark.path:
            node = node[int(key)] if isinstance(node, list) else node[key]


@pytest.mark.parametrize("job_format", FORMATS, ids=lambda job_format: job_format.name)
@thorough
@given(status=statuses(), pods_left=st.booleans())
def test_a_status_comes_back_as_it_was_written(job_format, status, pods_left):
    wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": "7f3a"}}, status, pods_left=pods_left)
    stored = msgspec.json.decode(msgspec.json.encode(wire))
    assert job_formats.status_from_wire(job_format, stored) == status
