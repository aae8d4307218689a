"""MXNetJobOperator against a real API server, where the test plays the controller and the kubelet."""

import copy
import dataclasses
import json
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
import yaml
from airflow.sdk import Asset
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, AirflowTaskTimeout, TaskDeferred
from apiserver_fixtures import TOKEN
from builders import make_mxjob
from controller_fixtures import submitted
from long_results import long_result
from provider_fixtures import RUNNING, STAMP, StampedLog, Store, Try, operator_world, server_in_thread, terminated
from waiting import eventually

from mxnet_operator.client.job_client import JobRef
from mxnet_provider.callbacks import MXNetJobCallback
from mxnet_provider.decorators.mxnet_cmd import MXNetCmdDecoratedOperator
from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobNameTakenError,
    MXNetJobUnreachableError,
    MXNetManifestError,
)
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job import metrics, task_labels, task_memory
from mxnet_provider.job.event import Event
from mxnet_provider.links.mxnet_job import MXNetJobLink, MXNetLogsLink
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

MANIFEST = submitted(make_mxjob("digits").worker(None))
MANIFEST["metadata"]["labels"] = {"team": "vision"}


@pytest.fixture(scope="module")
def log():
    return StampedLog()


@pytest.fixture(scope="module")
def running(tmp_path_factory, log):
    with server_in_thread(tmp_path_factory.mktemp("server"), log) as running:
        yield running


@pytest.fixture(params=["waiting", "deferred"])
def world(request, running, log):
    """Each test runs twice: what a task does must not depend on who waits."""
    log.__init__()
    yield from operator_world(running, deferrable=request.param == "deferred")


@pytest.fixture
def waiting_world(running, log):
    """For what only a worker that waits can do."""
    log.__init__()
    yield from operator_world(running, deferrable=False)


def ref(name, uid=""):
    return JobRef(name=name, namespace="default", uid=uid)


def test_a_job_that_succeeds_returns_what_it_came_to(world):
    task = world.start(world.operator(manifest=MANIFEST))
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 0.99}))
    message, ended = "MXJob digits is successfully completed.", "2026-11-21T12:00:09Z"
    world.write_status(job, "Succeeded", message, completionTime=ended, restarts=2)
    name = job["metadata"]["name"]
    assert task.result() == {
        "name": name,
        "namespace": "default",
        "uid": job["metadata"]["uid"],
        "state": "Succeeded",
        "started_at": STAMP,
        "completed_at": "2026-11-21T12:00:09Z",
        "duration_s": 9.0,
        "message": "MXJob digits is successfully completed.",
        "restarts": 2,
        "replicas": [
            {
                "pod": f"{name}-worker-0",
                "type": "worker",
                "index": 0,
                "created_at": world.hook.replica_pods(JobRef.of(job))[0]["metadata"]["creationTimestamp"],
                "started_at": STAMP,
                "finished_at": STAMP,
                "exit_code": 0,
                "outcome": "succeeded",
            }
        ],
        "result": {"accuracy": 0.99},
        "files": [],
        "training": None,
    }
    assert world.hook.get_job(ref(name)) is not None
    shown = yaml.safe_load(task.operator.mxjob)
    assert (shown["metadata"]["name"], "status" in shown) == (name, False)
    assert task.operator.overwrite_rtif_after_execution  # or Airflow's page never has it


@pytest.mark.parametrize("is_there", [True, False])
def test_a_result_that_is_too_long_for_the_status_is_read_from_the_log_if_that_has_it(world, log, task_log, is_there):
    result = {"losses": list(range(3000))}
    message, lines = long_result(result, log.lines)
    log.lines = lines if is_there else [b"of another attempt"]
    task = world.start(world.operator(manifest=MANIFEST))
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(0, message))
    world.write_status(job, "Succeeded", "It is over.", result=message)
    assert task.result()["result"] == (result if is_there else None)
    assert not any("mxjob-result" in line for line in task_log())
    told = any("bytes, and the log that has them is gone or incomplete" in line for line in task_log())
    assert told is not is_there


class Told(MXNetJobCallback):
    """Notes what it is told, and gives the job a label."""

    notes: ClassVar[list] = []

    @staticmethod
    def on_manifest_created(*, manifest, **kwargs):
        manifest["metadata"]["labels"]["team"] = "vision"

    @classmethod
    def on_job_creation(cls, *, job, operator, context, **kwargs):
        cls.notes.append(("created", job["metadata"]["labels"]["team"], operator.task_id, bool(context["ti"])))

    @classmethod
    def on_operator_resuming(cls, *, event, **kwargs):
        cls.notes.append(("resuming", event["status"]))

    @classmethod
    def on_job_completion(cls, *, event, operator, **kwargs):
        there = operator.hook.get_job(ref(event["name"])) is not None
        cls.notes.append(("completed", event["status"], there))


class Wrong(MXNetJobCallback):
    """Fails wherever it may without failing the task."""

    @staticmethod
    def on_job_creation(**kwargs):
        raise ValueError("a mistake")

    on_operator_resuming = on_job_completion = on_job_creation


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_callbacks_are_called_as_the_job_goes_on_and_their_mistakes_change_nothing(world, state):
    Told.notes.clear()
    task = world.start(world.operator(manifest=MANIFEST, callbacks=[Wrong, Told], on_finish_action="delete"))
    job = world.job_of(task)
    world.write_status(job, state, "It is over.")
    if state == "Succeeded":
        task.result()
    else:
        with pytest.raises(MXNetJobFailedError):
            task.result()
    resumed = [("resuming", state.lower())] if world.deferrable else []
    created = ("created", "vision", "train", True)
    assert Told.notes == [created, *resumed, ("completed", state.lower(), True)]


def test_a_callback_that_fails_before_the_job_fails_the_task_and_makes_none(world):
    class Refuses(MXNetJobCallback):
        @staticmethod
        def on_manifest_created(**kwargs):
            raise ValueError("no budget")

    before = world.jobs()
    task = world.start(world.operator(manifest=MANIFEST, callbacks=Refuses))
    with pytest.raises(ValueError, match="no budget"):
        task.result()
    assert world.jobs() == before


def test_a_worker_that_is_asked_to_end_after_its_task_returned_leaves_the_job_that_nobody_waits_for(world):
    """Airflow's task runner calls on_kill for as long as its process lives: while a log is uploaded, say."""
    operator = world.operator(wait_for_completion=False)
    task = world.start(operator)
    task.result()
    operator.on_kill()
    name, uid = (world.job_of(task)["metadata"][key] for key in ("name", "uid"))
    assert world.hook.get_job(ref(name))["metadata"]["uid"] == uid


def test_the_links_lead_to_the_task_s_job_once_there_is_one(world, monkeypatch):
    monkeypatch.setenv("AIRFLOW__MXNET__JOB_URL_TEMPLATE", "http://jobs/{namespace}/{name}/{uid}")
    operator = world.operator(wait_for_completion=False)
    assert MXNetJobLink().get_link(operator, ti_key=None) == ""
    task = world.start(operator)
    task.result()
    name, uid = (world.job_of(task)["metadata"][key] for key in ("name", "uid"))
    assert MXNetJobLink().get_link(operator, ti_key=None) == f"http://jobs/default/{name}/{uid}"
    assert MXNetLogsLink().get_link(operator, ti_key=None) == ""


def test_the_job_has_the_given_name_labels_and_annotations_and_says_whose_it_is(world):
    operator = world.operator(
        manifest=MANIFEST, labels={"stage": "dev"}, annotations={"note": "a b"}, wait_for_completion=False
    )
    task = world.start(operator)
    task.result()
    metadata = world.job_of(task)["metadata"]
    assert metadata["name"].startswith("digits-")
    assert metadata["annotations"] == {"note": "a b"}
    assert metadata["labels"] == {
        "team": "vision",
        "stage": "dev",
        **task_labels.labels(task.ti, token_of(task), retries=0),
    }


def token_of(task):
    return task.store[task_memory.STORE_KEY]["token"]


def test_the_log_appears_line_by_line_and_once_although_its_stream_breaks(world, log, task_log):
    log.lines = [b"Epoch[0] Validation-accuracy=0.9", b"caf\xe9", b"third", b"fourth"]
    log._breaks = [2, 1]
    task = world.start(world.operator())
    job = world.job_of(task)
    world.write_status(job, "Running")
    world.add_pod(job, "Worker", 0, RUNNING)
    world.add_pod(job, "Worker", 1, RUNNING)
    eventually(lambda: "[worker-0] fourth" in task_log())
    world.write_pod_state(job, "Worker", 0, terminated(0))
    world.write_status(job, "Succeeded")
    task.result()
    assert [line for line in task_log() if line.startswith("[")] == [
        "[worker-0] Epoch[0] Validation-accuracy=0.9",
        "[worker-0] caf\ufffd",
        "[worker-0] third",
        "[worker-0] fourth",
    ]
    assert any(asked.follow for asked in log.asked) is not world.deferrable


def test_the_job_s_states_are_logged_as_they_change(world, task_log):
    task = world.start(world.operator(get_logs=False))
    job = world.job_of(task)
    title = f"MXJob default/{job['metadata']['name']}"
    world.write_status(job, "Created")
    eventually(lambda: f"{title}: Created" in task_log())
    world.write_status(job, "Running", replicaStatuses={"Worker": {"active": 1}})
    eventually(lambda: f"{title}: Running (Worker 1 active)" in task_log())
    world.write_status(job, "Succeeded")
    task.result()
    assert task_log() == [
        f"Created {title}.",
        f"{title}: Created",
        f"{title}: Running (Worker 1 active)",
        f"{title}: Succeeded",
        "Files: nothing was kept, as no volume of the job outlives its pods.",
    ]


def test_a_failed_job_fails_the_task_with_the_condition_s_words_after_the_log_s_last_lines(world, log, task_log):
    log.lines = [b"one", b"Traceback", b"ValueError: no data"]
    task = world.start(world.operator(log_tail_on_failure=2))
    job = world.job_of(task)
    world.add_pod(job, "Worker", 1, terminated(3))
    world.write_status(job, "Failed", "MXJob is failed: worker-1 exited with 3: ValueError: no data")
    with pytest.raises(MXNetJobFailedError) as failure:
        task.result()
    name = job["metadata"]["name"]
    assert (
        str(failure.value)
        == f"MXJob default/{name} failed: MXJob is failed: worker-1 exited with 3: ValueError: no data"
    )
    assert task_log()[-3:] == ["The last lines of worker-1:", "[worker-1] Traceback", "[worker-1] ValueError: no data"]


def test_an_asset_s_event_says_which_job_and_result_it_is_of(world):
    task = world.start(world.operator(outlets=[Asset("s3://models/digits")]))
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 0.98}))
    world.write_status(job, "Succeeded")
    returned = task.result()
    (event,) = world.outlet_events.values()
    assert event.extra == {name: returned[name] for name in ("name", "namespace", "uid", "result", "files")}
    assert event.extra["result"] == {"accuracy": 0.98}


def test_a_decorated_function_returns_the_command_of_a_job(world):
    def train(epochs, params):
        return ["python", "train.py", "--epochs", str(epochs), "--rate", "{{ rate }}", str(params)]

    given = {"task_id": "train", "image": "i", "config_file": world.kubeconfig, "wait_for_completion": False}
    task = world.start(MXNetCmdDecoratedOperator(python_callable=train, op_args=[3, 4], **given))
    (container,) = world.job_of(task)["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "train.py", "--epochs", "3", "--rate", "", "4"]
    for returned in ("python train.py", [], ["python", 3], None):
        wrong = MXNetCmdDecoratedOperator(python_callable=lambda returned=returned: returned, **given)
        with pytest.raises(TypeError, match="must return the command as a list of strings"):
            world.start(wrong).result()
    with pytest.raises(TypeError, match=r"args: @task.mxnet_cmd runs what its function returns"):
        MXNetCmdDecoratedOperator(python_callable=train, args=["--epochs"], **given)


@pytest.mark.parametrize(("codes", "skips"), [(99, True), ([7, 99], True), (7, False), (None, False)])
def test_a_job_of_which_a_replica_ends_with_a_code_to_skip_skips_its_task(world, codes, skips):
    task = world.start(world.operator(skip_on_exit_code=codes))
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(137))
    world.add_pod(job, "Worker", 1, terminated(99))
    world.write_status(job, "Failed", "worker-1 exited with 99")
    with pytest.raises(AirflowSkipException if skips else MXNetJobFailedError, match="worker-1 exited with 99"):
        task.result()


def test_a_job_deleted_by_somebody_else_is_a_failure(world):
    task = world.start(world.operator())
    world.delete(world.job_of(task))
    with pytest.raises(MXNetJobDeletedError, match="was deleted before it had finished"):
        task.result()


def replace(world, job):
    """Another job under the same name, while nobody looks."""
    world.delete(job)
    metadata = {key: job["metadata"][key] for key in ("name", "namespace")}
    return world.hook.create_job({**MANIFEST, "metadata": metadata})


def test_another_job_of_the_same_name_is_a_failure_and_stays(waiting_world):
    operator = waiting_world.operator(poll_interval=3600)
    task = waiting_world.start(operator)
    job = waiting_world.job_of(task)
    other = replace(waiting_world, job)
    operator.on_kill()
    with pytest.raises(MXNetJobError):
        task.result()
    assert waiting_world.hook.get_job(JobRef.of(other))["metadata"]["uid"] == other["metadata"]["uid"]


def test_a_killed_task_deletes_its_job_and_stops_waiting(waiting_world, task_log):
    operator = waiting_world.operator(poll_interval=3600)
    task = waiting_world.start(operator)
    job = waiting_world.job_of(task)
    operator.on_kill()
    with pytest.raises(MXNetJobError, match="because the task was killed"):
        task.result()
    assert waiting_world.hook.get_job(JobRef.of(job)) is None
    assert f"Deleted MXJob default/{job['metadata']['name']}: its task was ended by a user." in task_log()


def test_a_task_that_is_killed_before_it_begins_creates_no_job(world):
    before = len(world.jobs())
    operator = world.operator()
    operator.on_kill()
    with pytest.raises(MXNetJobError, match="killed"):
        world.start(operator).result()
    assert len(world.jobs()) == before


def test_a_task_can_be_copied_as_airflow_copies_a_part_of_a_dag(world):
    operator = world.operator(name="original")
    assert copy.deepcopy(operator).name == "original"


class SetsVersion(MXNetJobCallback):
    @staticmethod
    def on_manifest_created(*, manifest, **_):
        manifest["metadata"]["resourceVersion"] = "1"


FINALIZED = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "finalizers": ["not a key!"]}}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"manifest": MANIFEST, "env": [{"value": "x"}]}, MXNetManifestError, r"env\[0\]\.name: Required value"),
        ({"image": None, "command": None}, MXNetManifestError, "neither was given"),
        ({"manifest": "a: ["}, MXNetManifestError, "not valid YAML"),
        ({"manifest": FINALIZED}, MXNetManifestError, r"(?s)The API server rejected MXJob default/.*finalizers"),
        ({"manifest": MANIFEST, "callbacks": SetsVersion}, MXNetManifestError, "resourceVersion should not be set on"),
        ({"namespace": "nowhere"}, MXNetJobError, 'namespaces "nowhere" not found'),
    ],
)
def test_what_is_refused_for_good_fails_the_task_at_once(world, arguments, error, message):
    with pytest.raises(error, match=message):
        world.start(world.operator(**arguments)).result()


WITH_OBJECTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: CONFIG}
data: {rate: "RATE"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: CONFIG}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""


def test_objects_beside_the_job_are_created_or_patched_and_stay(world):
    name = f"beside-{world.deferrable}".lower()
    for rate in ("0.1", "0.2"):
        text = WITH_OBJECTS.replace("CONFIG", name).replace("RATE", rate) + yaml.safe_dump(MANIFEST)
        job = world.job_of(world.start(world.operator(manifest=text, wait_for_completion=False)))
        world.delete(job)
    api = world.hook.core_v1_client
    found = api.read_namespaced_config_map(name, "default")
    assert (found.data, found.metadata.owner_references) == ({"rate": "0.2"}, None)
    assert api.read_namespaced_persistent_volume_claim(name, "default").metadata.name == name


def test_an_object_beside_the_job_that_is_refused_is_named_and_no_job_created(world):
    before = len(world.jobs())
    text = WITH_OBJECTS.replace("CONFIG", "Not_Valid") + yaml.safe_dump(MANIFEST)
    with pytest.raises(MXNetManifestError, match="ConfigMap default/Not_Valid, which the manifest has beside the job"):
        world.start(world.operator(manifest=text)).result()
    assert len(world.jobs()) == before


def intended(world, operator, ti):
    """What a try leaves in the store that dies between its intent and its job; and the job that it meant."""
    token = task_labels.new_token()
    manifest = operator.manifest_to_create({"ti": ti}, token)
    record = task_memory.Record(ref=JobRef.of(manifest), token=token, generation=ti.max_tries)
    return Store({task_memory.STORE_KEY: msgspec.to_builtins(record)}), manifest


def test_a_name_that_belongs_to_something_else_is_neither_adopted_nor_deleted(world, monkeypatch):
    """Between the intent and the creation somebody takes the name; the next try finds another."""
    ti, operator, store = Try(), world.operator(manifest=MANIFEST, wait_for_completion=False), Store()
    create, theirs = operator.hook.create_job, []

    def come_too_late(manifest):
        metadata = {key: manifest["metadata"][key] for key in ("name", "namespace")}
        theirs.append(world.hook.create_job({**MANIFEST, "metadata": metadata}))
        return create(manifest)

    monkeypatch.setattr(operator.hook, "create_job", come_too_late)
    with pytest.raises(MXNetJobNameTakenError, match="was not created by this task"):
        world.start(operator, ti, store).result()
    operator.on_kill()
    next_try = world.start(world.operator(manifest=MANIFEST, wait_for_completion=False), ti, store)
    assert next_try.result()["name"] != theirs[0]["metadata"]["name"]
    assert world.hook.get_job(JobRef.of(theirs[0]))["metadata"]["uid"] == theirs[0]["metadata"]["uid"]


def test_a_try_that_died_before_it_created_its_job_is_followed_by_one_that_creates_it(world, task_log):
    ti, operator = Try(), world.operator(manifest=MANIFEST, wait_for_completion=False)
    store, manifest = intended(world, operator, ti)
    assert world.start(operator, ti, store).result()["name"] == manifest["metadata"]["name"]
    assert task_log()[0] == f"An earlier try (1) was about to create MXJob default/{manifest['metadata']['name']}."


def test_a_job_whose_creation_was_not_answered_is_found_again(world, task_log):
    ti, operator = Try(), world.operator(manifest=MANIFEST)
    store, manifest = intended(world, operator, ti)
    created = world.hook.create_job(manifest)
    task = world.start(operator, ti, store)
    world.write_status(world.job_of(task), "Succeeded")
    assert task.result()["uid"] == created["metadata"]["uid"] == task.ti.pushed["job_uid"]
    assert task_log()[0] == f"MXJob default/{manifest['metadata']['name']}, which try 1 created, is waited for again."


@pytest.mark.parametrize(
    ("action", "state", "stays"),
    [
        ("keep", "Succeeded", True),
        ("keep", "Failed", True),
        ("delete", "Succeeded", False),
        ("delete", "Failed", False),
        ("delete_succeeded", "Succeeded", False),
        ("delete_succeeded", "Failed", True),
    ],
)
def test_a_finished_job_stays_or_goes_as_asked(world, action, state, stays):
    task = world.start(world.operator(on_finish_action=action))
    job = world.job_of(task)
    world.write_status(job, state, "It is over.")
    if state == "Failed":
        with pytest.raises(MXNetJobFailedError, match="It is over"):
            task.result()
    else:
        assert task.result()["state"] == "Succeeded"
    assert (world.hook.get_job(JobRef.of(job)) is not None) == stays


def test_only_pods_that_the_job_owns_are_its_replicas(waiting_world):
    job = waiting_world.hook.create_job({**MANIFEST, "metadata": {"name": "owner", "namespace": "default"}})
    waiting_world.add_pod(job, "Worker", 0, RUNNING)
    stranger = {**job, "metadata": {**job["metadata"], "uid": "an-earlier-job"}}
    waiting_world.add_pod(stranger, "Worker", 1, RUNNING)
    assert [pod["metadata"]["name"] for pod in waiting_world.hook.replica_pods(JobRef.of(job))] == ["owner-worker-0"]


GOING_ON = {"next_method": "__fail__", "next_kwargs": {"error": "Trigger failure", "traceback": ["Boom"]}}
OUT_OF_TIME = {"next_method": "__fail__", "next_kwargs": {"error": "Trigger timeout"}}


@pytest.fixture
def deferred(waiting_world):
    """A task that waits for its job in a trigger: the operator of a fresh worker, and its context."""
    world, ti, store = waiting_world, Try(), Store()
    world.deferrable = True
    context = {"ti": ti, "task_state_store": store}
    ExecutorSafeguard.tracker.set(operator := world.operator())
    with pytest.raises(TaskDeferred):
        operator.execute(context)
    job = world.hook.get_job(ref(ti.pushed["job_name"]))
    return world, job, world.operator(), context


@pytest.mark.parametrize("has_store", [True, False])
def test_a_trigger_that_failed_is_not_believed_and_waited_with_again_three_times(deferred, has_store):
    world, job, operator, context = deferred
    if not has_store:
        context["ti"].pushed[task_memory.STORE_KEY] = context.pop("task_state_store")[task_memory.STORE_KEY]
    for _ in range(3):
        with pytest.raises(TaskDeferred):
            operator.resume_execution(**GOING_ON, context=context)
    with pytest.raises(MXNetJobUnreachableError, match="is left running"):
        operator.resume_execution(**GOING_ON, context=context)
    assert world.hook.get_job(JobRef.of(job)) is not None


@pytest.mark.parametrize("how", [GOING_ON, OUT_OF_TIME])
def test_a_job_that_succeeded_while_its_trigger_failed_or_was_late_has_succeeded(deferred, how):
    world, job, operator, context = deferred
    world.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 1}))
    world.write_status(job, "Succeeded")
    assert operator.resume_execution(**how, context=context)["result"] == {"accuracy": 1}


def write_known_success(world, job):
    """All Workers have ended with 0, and the Scheduler goes on."""
    left = {"type": "SchedulerStillRunning", "status": "True", "reason": "NoDistributedKVStore", "message": ""}
    world.write_status(job, "Running", conditions=[{**left, "lastUpdateTime": STAMP, "lastTransitionTime": STAMP}])


@pytest.mark.parametrize("known", [True, False])
def test_a_trigger_that_the_scheduler_ended_ends_the_job_unless_the_job_s_success_is_known(deferred, known):
    world, job, operator, context = deferred
    if known:
        write_known_success(world, job)
    with pytest.raises(TaskDeferred if known else AirflowTaskTimeout):
        operator.resume_execution(**OUT_OF_TIME, context=context)
    operator.on_kill()  # Airflow's task runner does, after a timeout
    assert (world.hook.get_job(JobRef.of(job)) is not None) is known


@pytest.mark.parametrize("known", [True, False])
def test_a_worker_whose_time_is_over_waits_on_where_its_job_s_success_is_known(waiting_world, known):
    """Airflow raises its timeout wherever the worker is, and calls `on_kill` if that gets through."""
    job = None

    class OutOfTime(MXNetJobOperator):
        def _wait(self, ours, trigger):
            nonlocal job
            if job is not None:
                waiting_world.write_status(job, "Succeeded")
                return super()._wait(ours, trigger)
            job = waiting_world.hook.get_job(ours.ref)
            if known:
                write_known_success(waiting_world, job)
            raise AirflowTaskTimeout

    operator = OutOfTime(
        task_id="train",
        image="mxjob/mxnet:1.9.1",
        config_file=waiting_world.kubeconfig,
        deferrable=False,
        poll_interval=0.05,
    )
    task = waiting_world.start(operator)
    if known:
        assert task.result()["state"] == "Succeeded"
    else:
        with pytest.raises(AirflowTaskTimeout):
            task.result()
    assert (waiting_world.hook.get_job(JobRef.of(job)) is not None) is known


def test_a_resumed_task_without_a_store_knows_its_job_from_its_xcoms(deferred):
    world, job, operator, context = deferred
    world.write_status(job, "Succeeded")
    del context["task_state_store"]
    assert operator.resume_execution(**GOING_ON, context=context)["uid"] == job["metadata"]["uid"]


@pytest.mark.parametrize(
    "payload", [None, {}, {"v": 2, "status": "succeeded"}, {"v": 1, "status": "fine", "name": "n"}, "succeeded"]
)
def test_an_event_that_is_not_understood_is_never_success(deferred, payload):
    _, _, operator, context = deferred
    with pytest.raises(MXNetJobError, match="does not know"):
        operator.execute_complete(context, payload)


def test_an_event_about_another_job_is_refused(deferred):
    _, job, operator, context = deferred
    other = Event(status="succeeded", name=job["metadata"]["name"], namespace="default", uid="another")
    with pytest.raises(MXNetJobError, match="about another job"):
        operator.execute_complete(context, other.payload())


def test_a_task_that_is_killed_while_it_resumes_ends_its_job(deferred, monkeypatch):
    """The signal comes while it looks at the job."""
    world, job, operator, context = deferred
    look = operator.hook.get_job

    def killed_meanwhile(*arguments):
        monkeypatch.undo()
        operator.on_kill()
        return look(*arguments)

    monkeypatch.setattr(operator.hook, "get_job", killed_meanwhile)
    with pytest.raises((MXNetJobError, TaskDeferred)):
        operator.resume_execution(**GOING_ON, context=context)
    assert world.hook.get_job(JobRef.of(job)) is None


def test_a_task_that_is_killed_while_it_creates_its_job_ends_it(world, monkeypatch):
    """The signal comes while the request is under way, and the task goes on after it."""
    operator = world.operator()
    create = operator.hook.create_job

    def killed_meanwhile(manifest):
        job = create(manifest)
        operator.on_kill()
        return job

    monkeypatch.setattr(operator.hook, "create_job", killed_meanwhile)
    task = world.start(operator)
    with pytest.raises(MXNetJobError, match="killed before it waited for its job"):
        task.result()
    name = task.store[task_memory.STORE_KEY]["ref"]["name"]
    assert world.hook.get_job(ref(name)) is None


def test_a_retry_whose_job_has_succeeded_returns_its_result_though_the_job_is_gone(world):
    ti, store = Try(), Store()
    first = world.start(world.operator(), ti, store)
    job = world.job_of(first)
    world.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 1}))
    world.write_status(job, "Succeeded")
    first.result()
    world.delete(job)
    again = world.start(world.operator(), dataclasses.replace(ti, try_number=2), store)
    assert again.result()["result"] == {"accuracy": 1}
    ti = dataclasses.replace(ti, try_number=3)
    anew = world.start(world.operator(reuse_succeeded_on_retry=False, wait_for_completion=False), ti, store)
    assert anew.result()["uid"] != job["metadata"]["uid"]


@pytest.mark.parametrize("has_store", [True, False], ids=["store", "labels"])
@pytest.mark.parametrize(("number", "retries"), [(2, 1), (1, 2)], ids=["retries lowered and cleared", "tasks test"])
def test_a_task_that_succeeded_trains_again_though_max_tries_is_what_it_was(world, number, retries, has_store):
    """After one try of three a clear sets max_tries to 1 + retries; `airflow tasks test` leaves all as it is."""
    context = {"ti": Try(run_id=task_labels.new_token(), max_tries=2)}
    if has_store:
        context["task_state_store"] = Store()

    def run(ti, retries):
        operator = world.operator(retries=retries, wait_for_completion=False)
        ExecutorSafeguard.tracker.set(operator)
        return operator.execute({**context, "ti": ti})["uid"]

    old = run(context["ti"], 2)
    (job,) = (each for each in world.jobs() if each["metadata"]["uid"] == old)
    world.write_status(job, "Succeeded")
    assert run(dataclasses.replace(context["ti"], try_number=number), retries) != old


def without_store(world, ti, **arguments):
    """Run a task to its end as an Airflow before 3.3 does; what it returned."""
    operator = world.operator(wait_for_completion=False, **arguments)
    ExecutorSafeguard.tracker.set(operator)
    return operator.execute({"ti": ti})


def test_without_a_store_a_retry_finds_its_job_by_labels_and_says_so(world, task_log):
    ti = Try(run_id=task_labels.new_token(), max_tries=1)
    uid = without_store(world, ti)["uid"]
    assert without_store(world, dataclasses.replace(ti, try_number=2))["uid"] == uid
    assert any("which try 1 created, is waited for again" in line for line in task_log())


def test_without_a_store_a_task_that_is_cleared_ends_its_old_job_and_no_other_task_s(world):
    ti = Try(run_id=task_labels.new_token(), max_tries=1)
    other = without_store(world, dataclasses.replace(ti, task_id="other"))
    old = without_store(world, ti)
    new = without_store(world, dataclasses.replace(ti, max_tries=2, try_number=2))
    assert new["uid"] != old["uid"]
    assert world.hook.get_job(ref(old["name"])) is None
    assert world.hook.get_job(ref(other["name"])) is not None


class Once(MXNetJobCallback):
    """Takes notes of the manifests that it is given, and fails once it was asked for one."""

    given: ClassVar[list] = []

    @classmethod
    def on_manifest_created(cls, *, manifest, **kwargs):
        cls.given.append(manifest["metadata"]["name"])
        if len(cls.given) > 1:
            raise ValueError("no budget for another")


@pytest.mark.parametrize("given", [{"namespace": "default"}, {"manifest": MANIFEST}], ids=["namespace", "manifest"])
def test_without_a_store_callbacks_see_the_manifests_that_are_created_and_no_others(world, given):
    Once.given.clear()
    ti = Try(run_id=task_labels.new_token(), max_tries=1)
    made = without_store(world, ti, callbacks=Once, **given)
    assert Once.given == [made["name"]]
    assert without_store(world, dataclasses.replace(ti, try_number=2), callbacks=Once, **given)["uid"] == made["uid"]
    assert Once.given == [made["name"]]


def test_a_job_that_a_kill_suspended_is_resumed_by_a_retry(waiting_world):
    ti, store = Try(), Store()
    operator = waiting_world.operator(on_kill_action="suspend", poll_interval=3600)
    first = waiting_world.start(operator, ti, store)
    job = waiting_world.job_of(first)
    operator.on_kill()
    assert waiting_world.hook.get_job(JobRef.of(job))["spec"]["runPolicy"]["suspend"] is True
    waiting_world.start(waiting_world.operator(wait_for_completion=False), ti, store).result()
    resumed = waiting_world.hook.get_job(JobRef.of(job))
    assert resumed["spec"]["runPolicy"]["suspend"] is False


def test_progress_becomes_gauges(world, log, monkeypatch):
    sent = []
    monkeypatch.setattr(metrics.Stats, "gauge", lambda name, value, **options: sent.append((name, value, options)))
    log.lines = [b"Epoch[3] Validation-accuracy=0.98"]
    task = world.start(world.operator())
    job = world.job_of(task)
    world.add_pod(job, "Worker", 0, terminated(0))
    world.write_status(job, "Running")
    world.write_status(job, "Succeeded")
    task.result()
    tags = {"tags": {"dag_id": "adhoc_airflow", "task_id": "train"}}
    assert ("mxnet_job.validation_accuracy", 0.98, tags) in sent
    assert ("mxnet_job.epoch", 3, tags) in sent
    assert ("mxnet_job.adhoc_airflow.train.validation_accuracy", 0.98, {}) in sent
    assert task.ti.pushed["metrics"] == {"Validation-accuracy": [[3, 0.98]]}


def test_a_queue_a_grace_period_and_a_replica_spec_reach_the_job(world):
    operator = world.operator(
        queue_name="gpus",
        termination_grace_period=5,
        workers={"replicas": 2, "restartPolicy": "OnFailure"},
        wait_for_completion=False,
    )
    job = world.job_of(world.start(operator))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert job["spec"].get("runPolicy", {}).get("suspend") is not True
    worker = job["spec"]["mxReplicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (2, "OnFailure")
    assert worker["template"]["spec"]["terminationGracePeriodSeconds"] == 5
    assert worker["template"]["metadata"]["labels"]["task_id"] == "train"


def test_a_dry_run_shows_the_job_and_sends_nothing(waiting_world, task_log):
    before = len(waiting_world.jobs())
    waiting_world.operator().dry_run()
    assert "image: mxjob/mxnet:1.9.1" in task_log()[0]
    assert len(waiting_world.jobs()) == before


def test_a_dry_run_of_a_manifest_with_mistakes_names_them(waiting_world):
    with pytest.raises(MXNetManifestError, match=r"spec\.jobMode: Required value"):
        waiting_world.operator(manifest={**MANIFEST, "spec": {"mxReplicaSpecs": {}}}).dry_run()


def test_a_connection_that_names_two_ways_is_said_with_its_id(monkeypatch):
    extra = {"kube_config_path": "/a/kubeconfig", "in_cluster": "False"}
    connection = json.dumps({"conn_type": "kubernetes", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_TWO_WAYS", connection)
    with pytest.raises(AirflowException, match=r"Connection two_ways: .*mutually exclusive.*Text counts as true"):
        MXNetJobHook(kubernetes_conn_id="two_ways").get_conn()


TUNING = {
    **MANIFEST,
    "spec": {
        "jobMode": "MXTune",
        "mxReplicaSpecs": {
            kind: {"template": {"spec": {"containers": [{"name": "mxnet", "image": "mxjob/tune:1.0"}]}}}
            for kind in ("TunerTracker", "TunerServer", "Tuner")
        },
    },
}


@pytest.mark.parametrize(
    "given", [{"manifest": TUNING}, {"image": "mxjob/tune:1.0", "command": ["tune"], "servers": 2}]
)
def test_a_tuning_job_is_told_what_to_tune_and_its_tuner_s_result_returned(world, given):
    operator = MXNetTuneOperator(
        task_id="tune",
        config_file=world.kubeconfig,
        deferrable=world.deferrable,
        poll_interval=0.05,
        trials=16,
        target="llvm",
        database_uri="/data/db",
        **given,
    )
    task = world.start(operator)
    job = world.job_of(task)
    container = job["spec"]["mxReplicaSpecs"]["Tuner"]["template"]["spec"]["containers"][0]
    assert container["env"] == [
        {"name": "MXTUNE_TARGET", "value": "llvm"},
        {"name": "MXTUNE_TRIALS", "value": "16"},
        {"name": "MXTUNE_DATABASE_URI", "value": "/data/db"},
        {"name": "MXTUNE_WARM_START", "value": "1"},
    ]
    world.add_pod(job, "Tuner", 0, terminated(0, {"tuned_ms": 0.5, "trials_ms": [1.0, 0.5]}))
    world.write_status(job, "Succeeded")
    returned = task.result()
    assert (returned["best_latency_ms"], returned["trials"], returned["artifact_uri"]) == (0.5, 2, None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trials": 0}, "trials: must be a whole number above 0"),
        ({"trials": "many"}, "trials: must be a whole number above 0"),
        ({"early_stopping": "-1"}, "early_stopping: must be a whole number above 0"),
        ({"manifest": MANIFEST}, "a tuning job's is MXTune"),
    ],
)
def test_a_tuning_task_refuses_what_is_no_number_and_a_training_job(waiting_world, given, words):
    fields = {"task_id": "tune", "config_file": waiting_world.kubeconfig, "manifest": TUNING, **given}
    with pytest.raises(MXNetManifestError, match=words):
        waiting_world.start(MXNetTuneOperator(**fields)).result()


def sensor(world, name, **arguments):
    given = {"task_id": "sense", "config_file": world.kubeconfig, "poke_interval": 0.05, "timeout": 60, **arguments}
    return MXNetJobSensor(job_name=name, deferrable=world.deferrable, **given)


def test_a_sensor_waits_for_the_state_and_never_owns_the_job(world):
    job = world.hook.create_job({**MANIFEST, "metadata": {"name": "sensed", "namespace": "default"}})
    task = world.start(sensor(world, "sensed"))
    killed = world.start(sensor(world, "sensed"), Try(task_id="killed"))
    world.write_status(job, "Running")
    assert not task.done.done()
    killed.operator.on_kill()
    world.write_status(job, "Succeeded")
    task.result()
    (left,) = (each for each in world.jobs() if each["metadata"]["name"] == "sensed")
    assert left["metadata"]["uid"] == job["metadata"]["uid"]
    assert left["metadata"].get("annotations") == job["metadata"].get("annotations")
    world.delete(job)


def test_a_job_is_deleted_by_name_and_uid_together(waiting_world):
    job = waiting_world.hook.create_job({**MANIFEST, "metadata": {"name": "doomed", "namespace": "default"}})
    given = {"task_id": "delete", "config_file": waiting_world.kubeconfig, "job_name": "doomed", "namespace": "default"}
    assert waiting_world.start(MXNetJobDeleteOperator(job_uid="another", **given)).result() is False
    assert waiting_world.start(MXNetJobDeleteOperator(job_uid=job["metadata"]["uid"], **given)).result() is True
    with pytest.raises(MXNetJobDeletedError):
        waiting_world.start(MXNetJobDeleteOperator(job_uid="another", missing_ok=False, **given)).result()
    with pytest.raises(MXNetJobError, match="must both say which job"):
        waiting_world.start(MXNetJobDeleteOperator(job_uid="None", **given)).result()


@pytest.mark.parametrize("way", ["kube_config", "kube_config_path", "config_file"])
def test_neither_a_trigger_nor_an_xcom_nor_the_store_ever_holds_a_secret(waiting_world, monkeypatch, task_log, way):
    """Also where the connection is the whole kubeconfig: triggers are made from references."""
    path = Path(waiting_world.kubeconfig)
    if way != "config_file":
        value = str(path) if way == "kube_config_path" else path.read_text()
        connection = {"conn_type": "kubernetes", "extra": json.dumps({way: value})}
        monkeypatch.setenv("AIRFLOW_CONN_SECRETIVE", json.dumps(connection))
    options = {"kubernetes_conn_id": "secretive", "config_file": None} if way != "config_file" else {}
    operator, ti, store = waiting_world.operator(deferrable=True, **options), Try(), Store()
    ExecutorSafeguard.tracker.set(operator)
    with pytest.raises(TaskDeferred) as deferral:
        operator.execute({"ti": ti, "task_state_store": store})
    trigger = deferral.value.trigger
    fields = [getattr(operator, field) for field in operator.template_fields]
    said = repr([trigger, trigger.serialize(), deferral.value.kwargs, ti.pushed, store, fields, task_log()])
    operator.dry_run()
    assert TOKEN in path.read_text()
    assert TOKEN not in said + repr(task_log())


def test_two_airflows_that_share_a_cluster_never_meet(world):
    """The same DAG, run and task, and so the same labels, but not the same store."""
    ti = Try(run_id="scheduled__2026-11-21")
    mine, yours = (world.start(world.operator(), Try(run_id=ti.run_id), Store()) for _ in range(2))
    job, other = world.job_of(mine), world.job_of(yours)
    world.write_status(job, "Succeeded")
    assert mine.result()["uid"] == job["metadata"]["uid"] != other["metadata"]["uid"]
    assert not yours.done.done()
    world.write_status(other, "Failed", "yours alone")
    with pytest.raises(MXNetJobFailedError, match="yours alone"):
        yours.result()
