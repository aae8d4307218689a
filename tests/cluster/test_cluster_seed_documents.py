"""What the five documents promise and no process is needed for, from their own manifests on a real Kubernetes.

Which sentence each test is for stands in the READMEs of examples/seeds.
"""

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from control_plane import control_plane
from control_plane_fixtures import real_api
from deployment import MANIFESTS, Administrator, rendered, started
from fake_nodes import EXIT_CODE, FATES, RUNS_FOR, fake_node, fake_nodes
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix
from seed_jobs import ALL, CIFAR, LINEAR, LOCAL, MNIST, NAMESPACES, PROPOSED, SHARE, TRAIN, TUNE
from tiers import asked_for

from mxnet_operator.api.job_formats import submission_errors

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="module")]

NODES = {"plain": {}, "with-gpus": {"nvidia.com/gpu": "99"}}
DECIDE = ("scheduler", "worker", "tuner")
TYPE = "training.kubeflow.org/replica-type"
PERMANENT, RETRYABLE = (1, 2, 126, 127, 128, 139), (130, 137, 138, 143)
CODES = {
    TRAIN: dict.fromkeys(PERMANENT, False) | dict.fromkeys(RETRYABLE, True),
    LINEAR: dict.fromkeys((1, 2, 126, 127), False) | dict.fromkeys((128, 130, 137, 139, 255), True),
    MNIST: dict.fromkeys(PERMANENT, False) | dict.fromkeys(RETRYABLE, True),
}
"""By document, which exit codes of the scheduler are tried again, as the document says."""
ROWS = {
    f"{job.namespace}-{replica_type}-{code}".lower(): (job, replica_type, code, retried)
    for job, codes in CODES.items()
    for replica_type, code, retried in (
        *(("Scheduler", code, retried) for code, retried in codes.items()),
        ("Server", 137, True),
        ("Worker", 137, True),
    )
}


@dataclass(frozen=True)
class Seen:
    """The server's administrator, and what was seen of each job while it ran and when it was over."""

    ask: Administrator
    running: dict
    pods: dict
    listed: dict
    over: dict


def replicas_of(manifest):
    """The replicas of a job by type, whether it has them as a map or as a list."""
    spec = manifest["spec"]
    if "mxReplicaSpecs" in spec:
        return spec["mxReplicaSpecs"]
    return {each["mxReplicaType"].capitalize(): each for each in spec["replicaSpecs"]}


def failing(name):
    """The document's job, one of whose replicas ends with the code at first, while all end well when tried again."""
    job, failed_type, code, _ = ROWS[name]
    manifest = json.loads(json.dumps(yaml.safe_load(job.file.read_text())))
    manifest["metadata"]["name"] = name
    for replica_type, replica in replicas_of(manifest).items():
        first = {"0.0": {"exitCode": code, "says": "it fails"}} if replica_type == failed_type else {}
        again = {} if replica_type == "Server" else {"0.1": {"exitCode": 0}}
        annotations = {FATES: json.dumps(first | again), RUNS_FOR: "500ms"}
        replica["template"]["metadata"] = {"annotations": annotations}
        if "restartPolicy" in replica:
            replica["restartPolicy"] = "ExitCode"
    return manifest


async def get(ask, *what):
    return json.loads(await ask("get", *what, "-o", "json"))


async def wait_for(ask, job, path, value):
    await ask.wait(f"jsonpath={{.status.{path}}}={value}", f"{job.type}/{job.name}", "-n", job.namespace)
    return await get(ask, f"{job.type}/{job.name}", "-n", job.namespace)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed():
    """A control plane on which the documents' commands, with our files, have installed CRDs and operator."""
    paths = programs_or_skip(CONTROL_PLANE)
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name, control_plane(paths, Path(name), []) as server:
        ask = Administrator(server)
        for file in ("crd", "rbac", "deployment"):
            await ask("create", "-f", MANIFESTS / "base" / f"{file}.yaml")
        first = await ask("get", "crd")
        await ask("apply", "-k", MANIFESTS / "overlays" / "legacy")
        kinds = {f"crd/{job.kind.plural}.{job.kind.group}" for job in ALL}
        await ask.wait("condition=Established", *kinds)
        with started(server, rendered("legacy"), Path(name)):
            async with real_api(server) as api:
                nodes = [fake_node(each, cpu="999", pods="999", **gpus) for each, gpus in NODES.items()]
                async with fake_nodes(api, *nodes):
                    yield ask, first


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(installed):
    """Every document's jobs from their creation to their end, all at once."""
    ask, _ = installed
    for namespace in NAMESPACES:
        await ask("create", "namespace", namespace)
        await ask.wait("create", "serviceaccount/default", "-n", namespace)
    for job in ALL:
        await ask("create", "-n", job.namespace, "-f", job.file)
    running, pods, listed, over = {}, {}, {}, {}
    for job in ALL:
        running[job] = await wait_for(ask, job, "state", "Running")
        own = f"training.kubeflow.org/job-name={job.name}"
        pods[job] = (await get(ask, "pods", "-n", job.namespace, "-l", own))["items"]
        listed[job] = await ask("get", f"{job.kind.plural}.{job.kind.group}", "-n", job.namespace)
    decide = f"{TYPE} in ({','.join(DECIDE)})"
    for namespace in NAMESPACES:
        await ask("annotate", "pods", "-n", namespace, "-l", decide, f"{EXIT_CODE}=0")
    for job in ALL:
        over[job] = await wait_for(ask, job, "state", "Succeeded")
    return Seen(ask, running, pods, listed, over)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(request, seen):
    """Those jobs of ROWS that the tests ask for when they are over, by name."""
    names = defaultdict(list)
    for name in asked_for(request, "name"):
        names[ROWS[name][0]].append(name)
    for of in names:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(map(failing, names[of]), file)
            file.flush()
            await seen.ask("create", "-n", of.namespace, "-f", file.name)
    found = {}
    for of in names:
        await seen.ask.wait("jsonpath={.status.completionTime}", of.type, *names[of], "-n", of.namespace)
        listed = await get(seen.ask, of.type, "-n", of.namespace)
        found |= {each["metadata"]["name"]: each for each in listed["items"]}
    return found


@pytest.mark.exhaustive
async def test_the_crd_is_listed_after_the_commands_that_install_it(installed):
    _, crds = installed
    heading, *lines = crds.splitlines()
    assert heading.split()[0] == "NAME"
    assert "mxjobs.kubeflow.org" in {line.split()[0] for line in lines}


@pytest.mark.parametrize("job", ALL, ids=lambda job: job.file.name)
async def test_a_document_s_job_is_listed_runs_and_succeeds(seen, job):
    heading, *lines = seen.listed[job].splitlines()
    assert heading.split()[0] == "NAME"
    assert heading.split()[-1] == "AGE"
    assert job.name in {line.split()[0] for line in lines}
    assert seen.over[job]["status"]["state"] == "Succeeded"


@pytest.mark.parametrize("job", [TRAIN, SHARE, TUNE], ids=lambda job: job.file.name)
async def test_a_pod_that_asks_for_a_gpu_is_placed_where_there_is_one(seen, job):
    placed = {}
    for pod in seen.pods[job]:
        (container,) = pod["spec"]["containers"]
        if limits := container["resources"].get("limits"):
            placed[pod["metadata"]["labels"][TYPE]] = (limits, pod["spec"]["nodeName"])
    asks = "tunerserver" if job is TUNE else "worker"
    assert placed == {asks: ({"nvidia.com/gpu": "1"}, "with-gpus")}


async def test_003_the_share_is_mounted_in_every_pod(seen):
    assert len(seen.pods[SHARE]) == 3
    for pod in seen.pods[SHARE]:
        (volume,) = [each for each in pod["spec"]["volumes"] if each["name"] == "myshare"]
        assert volume["azureFile"].items() >= {"secretName": "mxsecret", "shareName": "mxsn"}.items()
        (container,) = pod["spec"]["containers"]
        assert {"mountPath": "/", "name": "myshare"} in container["volumeMounts"]


async def test_000_a_pod_has_the_documents_labels_and_environment(seen):
    assert len(seen.pods[PROPOSED]) == 7
    for pod in seen.pods[PROPOSED]:
        role = pod["metadata"]["labels"][TYPE]
        assert pod["metadata"]["labels"].items() >= {"job_type": role, "kubeflow.org": ""}.items()
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        expected = {
            "DMLC_ROLE": role,
            "DMLC_PS_ROOT_URI": "example-scheduler-0",
            "DMLC_PS_ROOT_PORT": "9092",
            "DMLC_NUM_SERVER": "2",
            "DMLC_NUM_WORKER": "4",
        }
        assert env.items() >= expected.items()
        assert pod["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("job", [CIFAR, LINEAR, MNIST], ids=lambda job: job.file.name)
async def test_a_running_job_of_a_list_format_has_phase_state_and_the_count_of_each_type(seen, job):
    status = seen.running[job]["status"]
    assert (status["phase"], status["state"], status["reason"]) == ("Running", "Running", "")
    type_of = "Mx_replica_type" if job is CIFAR else "mx_replica_type"
    counts = {each[type_of]: (each["state"], each["ReplicasStates"]) for each in status["replicaStatuses"]}
    servers, workers = (2, 3) if job is CIFAR else (1, 1)
    assert counts == {
        "SCHEDULER": ("Running", {"Running": 1}),
        "SERVER": ("Running", {"Running": servers}),
        "WORKER": ("Running", {"Running": workers}),
    }


@pytest.mark.parametrize("job", [TRAIN, LINEAR, CIFAR, MNIST], ids=lambda job: job.file.name)
async def test_the_runtime_id_is_in_the_status_and_on_every_pod(seen, job):
    runtime_id = seen.running[job]["status"]["RuntimeId"]
    assert len(runtime_id) == 4
    assert {pod["metadata"]["labels"]["mxjob.kubeflow.org/runtime-id"] for pod in seen.pods[job]} == {runtime_id}


async def test_001_the_status_of_the_document_comes_with_get_o_yaml(seen):
    shown = yaml.safe_load(
        await seen.ask("get", "-o", "yaml", "mxjobs.kubeflow.org", TRAIN.name, "-n", TRAIN.namespace)
    )
    held = {each["type"]: each["status"] for each in shown["status"]["conditions"]}
    assert held.items() >= {"Created": "True", "Running": "False", "Succeeded": "True"}.items()
    assert shown["status"]["mxReplicaStatuses"].keys() == {"Scheduler", "Server", "Worker"}
    assert {"startTime", "completionTime"} <= shown["status"].keys()


@pytest.mark.sampled
@pytest.mark.parametrize("name", ROWS)
async def test_an_exit_code_is_permanent_or_retryable_as_the_document_says(outcomes, name):
    _, replica_type, code, retried = ROWS[name]
    status = outcomes[name]["status"]
    assert (status["state"], status.get("restarts", 0)) == (("Succeeded", 1) if retried else ("Failed", 0))
    messages = [each["message"] for each in status["conditions"]]
    if not retried:
        failed = f"mxjob {name} is failed because 1 {replica_type} replica(s) failed."
        assert messages[-1].startswith(f"{failed} {replica_type.lower()}-0 exited with code {code}")


def changed(job, replica_type, **values):
    manifest = json.loads(json.dumps(yaml.safe_load(job.file.read_text())))
    manifest["metadata"]["name"] = "changed"
    replicas_of(manifest)[replica_type].update(values)
    return manifest


async def dry_run(ask, manifest, tmp_path, *, fails):
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(manifest))
    return await ask("create", "--dry-run=server", "-f", file, fails=fails)


@pytest.mark.parametrize("job", CODES, ids=lambda job: job.namespace)
@pytest.mark.parametrize("count", [0, 2])
async def test_a_job_has_one_scheduler_and_no_other_number(seen, tmp_path, job, count):
    said = await dry_run(seen.ask, changed(job, "Scheduler", replicas=count), tmp_path, fails=True)
    assert {0: "a Server needs a Scheduler", 2: "can have one replica only"}[count] in said


@pytest.mark.parametrize("job", CODES, ids=lambda job: job.namespace)
@pytest.mark.parametrize("replica_type", ["Server", "Worker"])
async def test_a_job_can_have_any_number_of_workers_and_servers(seen, tmp_path, job, replica_type):
    for count in (0, 5):
        await dry_run(seen.ask, changed(job, replica_type, replicas=count), tmp_path, fails=False)


@pytest.mark.parametrize("job", CODES, ids=lambda job: job.namespace)
async def test_a_pod_must_contain_a_container_named_mxnet(seen, tmp_path, job):
    template = {"spec": {"containers": [{"name": "other", "image": "i"}]}}
    manifest = changed(job, "Worker", template=template)
    await dry_run(seen.ask, manifest, tmp_path, fails=False)  # what mxjob and the controller check
    assert "one of them must be named mxnet" in " ".join(each.message for each in submission_errors(manifest))


async def test_002_a_local_job_has_one_worker_only(seen, tmp_path):
    said = await dry_run(seen.ask, changed(LOCAL, "Worker", replicas=2), tmp_path, fails=True)
    assert "jobMode local has one WORKER and nothing else" in said
