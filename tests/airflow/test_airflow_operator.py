"""MXNetJobOperator against a real API server, where the test plays the controller and the kubelet."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import structlog.testing
from kubernetes.client.exceptions import ApiException
from provider_fixtures import RUNNING, STAMP, Stage, StampedLog, Store, Try, eventually, server_in_thread, terminated

from mxnet_provider import identity
from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobNameTakenError,
    MXNetManifestError,
)
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job_ref import JobRef

MANIFEST = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "labels": {"team": "vision"}},
    "spec": {
        "jobMode": "MXTrain",
        "mxReplicaSpecs": {
            "Worker": {"template": {"spec": {"containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1"}]}}}
        },
    },
}


@pytest.fixture(scope="module")
def log():
    return StampedLog()


@pytest.fixture(scope="module")
def running(tmp_path_factory, log):
    with server_in_thread(tmp_path_factory.mktemp("server"), log) as running:
        yield running


@pytest.fixture
def stage(running, log):
    log.__init__()
    with ThreadPoolExecutor(4) as threads:
        stage = Stage(running, threads)
        yield stage
        stage.close()


@pytest.fixture
def task_log():
    """The messages of the task's log so far."""
    with structlog.testing.capture_logs() as entries:
        yield lambda: [entry["event"] for entry in entries]


def ref(name, uid=""):
    return JobRef(name=name, namespace="default", uid=uid)


def test_a_job_that_succeeds_returns_what_it_came_to(stage):
    task = stage.start(stage.operator(manifest=MANIFEST))
    job = stage.job_of(task)
    stage.add_pod(job, "Worker", 0, terminated(0, {"accuracy": 0.99}))
    stage.write_status(
        job, "Succeeded", "MXJob digits is successfully completed.", completionTime="2026-11-21T12:00:09Z"
    )
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
        "replicas": [
            {
                "pod": f"{name}-worker-0",
                "type": "worker",
                "index": 0,
                "created_at": stage.hook.get_replica_pod(f"{name}-worker-0", "default")["metadata"][
                    "creationTimestamp"
                ],
                "started_at": STAMP,
                "finished_at": STAMP,
                "exit_code": 0,
            }
        ],
        "result": {"accuracy": 0.99},
    }
    assert stage.hook.get_job(ref(name)) is not None


def test_name_namespace_and_uid_are_xcoms_as_soon_as_the_job_exists(stage):
    task = stage.start(stage.operator(wait_for_completion=False))
    assert task.result()["state"] == ""
    job = stage.job_of(task)
    assert task.ti.pushed == {f"job_{key}": job["metadata"][key] for key in ("name", "namespace", "uid")}


def test_the_job_has_the_given_name_labels_and_annotations_and_says_whose_it_is(stage):
    operator = stage.operator(
        manifest=MANIFEST, labels={"stage": "dev"}, annotations={"note": "a b"}, wait_for_completion=False
    )
    task = stage.start(operator)
    task.result()
    metadata = stage.job_of(task)["metadata"]
    assert metadata["name"].startswith("digits-")
    assert metadata["annotations"] == {"note": "a b"}
    assert metadata["labels"] == {"team": "vision", "stage": "dev", **identity.labels(task.ti, token_of(task))}


def token_of(task):
    return task.store[identity.STORE_KEY]["token"]


def test_two_runs_of_a_task_make_two_jobs(stage):
    operator = stage.operator(manifest=MANIFEST, wait_for_completion=False)
    assert stage.start(operator).result()["name"] != stage.start(operator).result()["name"]


def test_the_log_appears_line_by_line_and_once_although_its_stream_breaks(stage, log, task_log):
    log.lines = [b"Epoch[0] Validation-accuracy=0.9", b"caf\xe9", b"third", b"fourth"]
    log._breaks = [2, 1]
    task = stage.start(stage.operator())
    job = stage.job_of(task)
    stage.write_status(job, "Running")
    stage.add_pod(job, "Worker", 0, RUNNING)
    stage.add_pod(job, "Worker", 1, RUNNING)
    eventually(lambda: assert_in("[worker-0] fourth", task_log()))
    stage.write_pod_state(job, "Worker", 0, terminated(0))
    stage.write_status(job, "Succeeded")
    task.result()
    assert [line for line in task_log() if line.startswith("[")] == [
        "[worker-0] Epoch[0] Validation-accuracy=0.9",
        "[worker-0] caf\ufffd",
        "[worker-0] third",
        "[worker-0] fourth",
    ]
    assert all(asked["follow"] for asked in log.asked)


def test_the_job_s_states_are_logged_as_they_change(stage, task_log):
    task = stage.start(stage.operator(get_logs=False))
    job = stage.job_of(task)
    title = f"MXJob default/{job['metadata']['name']}"
    stage.write_status(job, "Created")
    eventually(lambda: assert_in(f"{title}: Created", task_log()))
    stage.write_status(job, "Running", replicaStatuses={"Worker": {"active": 1}})
    eventually(lambda: assert_in(f"{title}: Running (Worker 1 active)", task_log()))
    stage.write_status(job, "Succeeded")
    task.result()
    assert task_log() == [
        f"Created {title}.",
        f"{title}: Created",
        f"{title}: Running (Worker 1 active)",
        f"{title}: Succeeded",
    ]


def test_a_failed_job_fails_the_task_with_the_condition_s_words_after_the_log_s_last_lines(stage, log, task_log):
    log.lines = [b"one", b"Traceback", b"ValueError: no data"]
    task = stage.start(stage.operator(log_tail_on_failure=2))
    job = stage.job_of(task)
    stage.add_pod(job, "Worker", 1, terminated(3))
    stage.write_status(job, "Failed", "MXJob is failed: worker-1 exited with 3: ValueError: no data")
    with pytest.raises(MXNetJobFailedError) as failure:
        task.result()
    name = job["metadata"]["name"]
    assert (
        str(failure.value)
        == f"MXJob default/{name} failed: MXJob is failed: worker-1 exited with 3: ValueError: no data"
    )
    assert task_log()[-3:] == ["The last lines of worker-1:", "[worker-1] Traceback", "[worker-1] ValueError: no data"]


def test_a_job_deleted_by_somebody_else_is_a_failure(stage):
    task = stage.start(stage.operator())
    stage.delete(stage.job_of(task))
    with pytest.raises(MXNetJobDeletedError, match="was deleted before it had finished"):
        task.result()


def replace(stage, job):
    """Another job under the same name, while nobody looks."""
    stage.delete(job)
    metadata = {key: job["metadata"][key] for key in ("name", "namespace")}
    return stage.hook.create_job({**MANIFEST, "metadata": metadata})


def test_another_job_of_the_same_name_is_a_failure_and_stays(stage):
    operator = stage.operator(poll_interval=3600)
    task = stage.start(operator)
    job = stage.job_of(task)
    other = replace(stage, job)
    operator.on_kill()
    with pytest.raises(MXNetJobError):
        task.result()
    assert stage.hook.get_job(JobRef.of(other))["metadata"]["uid"] == other["metadata"]["uid"]
    found, _ = stage.hook.wait(JobRef.of(job), poll_interval=0.05)
    assert (found.status, found.reason) == ("deleted", "Replaced")


def test_a_killed_task_deletes_its_job_and_stops_waiting(stage, task_log):
    operator = stage.operator(poll_interval=3600)
    task = stage.start(operator)
    job = stage.job_of(task)
    operator.on_kill()
    with pytest.raises(MXNetJobError, match="because the task was killed"):
        task.result()
    assert stage.hook.get_job(JobRef.of(job)) is None
    assert f"Deleted MXJob default/{job['metadata']['name']}, because the task was killed." in task_log()


def test_a_task_that_is_killed_before_it_has_a_job_has_nothing_to_delete(stage):
    stage.operator().on_kill()


def test_every_mistake_in_a_manifest_is_named_and_nothing_is_sent(stage):
    before = len(stage.jobs())
    manifest = {
        **MANIFEST,
        "spec": {
            "jobMode": "MXTrain",
            "colour": "blue",
            "mxReplicaSpecs": {
                "Worker": {"replicas": "two", "template": MANIFEST["spec"]["mxReplicaSpecs"]["Worker"]["template"]}
            },
        },
    }
    with pytest.raises(MXNetManifestError) as failure:
        stage.start(stage.operator(manifest=manifest)).result()
    assert "spec.mxReplicaSpecs.Worker.replicas" in str(failure.value)
    assert 'unknown field "spec.colour"' in str(failure.value)
    assert len(stage.jobs()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"manifest": MANIFEST, "image": "i", "workers": 2}, "either manifest or image, workers, not both"),
        ({"image": None, "command": None}, "neither was given"),
        ({"manifest": "a: ["}, "not valid YAML"),
    ],
)
def test_a_task_is_given_either_a_manifest_or_an_image(stage, arguments, message):
    with pytest.raises(MXNetManifestError, match=message):
        stage.start(stage.operator(**arguments)).result()


def test_what_the_server_refuses_for_good_is_not_tried_again(stage):
    with pytest.raises(MXNetManifestError, match=r"The API server refused MXJob default/.*label"):
        stage.start(stage.operator(labels={"not a key!": "x"})).result()


def test_a_missing_namespace_is_said_so(stage):
    with pytest.raises(MXNetJobError, match='namespaces "nowhere" not found'):
        stage.start(stage.operator(namespace="nowhere")).result()


def intended(stage, operator, ti):
    """What a try leaves in the store that dies between its intent and its job; and the job that it meant."""
    token = identity.new_token()
    manifest = operator.manifest_to_create({"ti": ti}, token)
    record = identity.Record(ref=JobRef.of(manifest), token=token, generation=ti.max_tries)
    return Store({identity.STORE_KEY: msgspec.to_builtins(record)}), manifest


def test_a_name_that_belongs_to_something_else_is_neither_adopted_nor_deleted(stage, monkeypatch):
    """Between the intent and the creation somebody takes the name; the next try finds another."""
    ti, operator, store = Try(), stage.operator(manifest=MANIFEST, wait_for_completion=False), Store()
    create, theirs = operator.hook.create_job, []

    def come_too_late(manifest, plural):
        metadata = {key: manifest["metadata"][key] for key in ("name", "namespace")}
        theirs.append(stage.hook.create_job({**MANIFEST, "metadata": metadata}))
        return create(manifest, plural)

    monkeypatch.setattr(operator.hook, "create_job", come_too_late)
    with pytest.raises(MXNetJobNameTakenError, match="was not created by this task"):
        stage.start(operator, ti, store).result()
    operator.on_kill()
    monkeypatch.undo()
    assert stage.start(operator, ti, store).result()["name"] != theirs[0]["metadata"]["name"]
    assert stage.hook.get_job(JobRef.of(theirs[0]))["metadata"]["uid"] == theirs[0]["metadata"]["uid"]


def test_a_try_that_died_before_it_created_its_job_is_followed_by_one_that_creates_it(stage, task_log):
    ti, operator = Try(), stage.operator(manifest=MANIFEST, wait_for_completion=False)
    store, manifest = intended(stage, operator, ti)
    assert stage.start(operator, ti, store).result()["name"] == manifest["metadata"]["name"]
    assert task_log()[0] == f"An earlier try (1) was about to create MXJob default/{manifest['metadata']['name']}."


def test_a_job_whose_creation_was_not_answered_is_found_again(stage, task_log):
    ti, operator = Try(), stage.operator(manifest=MANIFEST, wait_for_completion=False)
    store, manifest = intended(stage, operator, ti)
    created = stage.hook.create_job(manifest)
    assert stage.start(operator, ti, store).result()["uid"] == created["metadata"]["uid"]
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
def test_a_finished_job_stays_or_goes_as_asked(stage, action, state, stays):
    task = stage.start(stage.operator(on_finish_action=action))
    job = stage.job_of(task)
    stage.write_status(job, state, "It is over.")
    if state == "Failed":
        with pytest.raises(MXNetJobFailedError, match="It is over"):
            task.result()
    else:
        assert task.result()["state"] == "Succeeded"
    assert (stage.hook.get_job(JobRef.of(job)) is not None) == stays


def test_a_delete_misses_a_job_with_another_uid(stage):
    job = stage.hook.create_job({**MANIFEST, "metadata": {"name": "mine", "namespace": "default"}})
    assert not stage.hook.delete_job(ref("mine", "another-uid"))
    assert stage.hook.delete_job(JobRef.of(job))
    assert not stage.hook.delete_job(JobRef.of(job))


def test_only_pods_that_the_job_owns_are_its_replicas(stage):
    job = stage.hook.create_job({**MANIFEST, "metadata": {"name": "owner", "namespace": "default"}})
    stage.add_pod(job, "Worker", 0, RUNNING)
    stranger = {**job, "metadata": {**job["metadata"], "uid": "an-earlier-job"}}
    stage.add_pod(stranger, "Worker", 1, RUNNING)
    assert [pod["metadata"]["name"] for pod in stage.hook.replica_pods(JobRef.of(job))] == ["owner-worker-0"]


def test_a_refusal_of_the_server_reaches_the_caller(stage):
    with pytest.raises(ApiException) as refusal:
        stage.hook.create_job({"metadata": {"namespace": "default", "name": "x"}})
    assert refusal.value.status in (400, 422)


def test_the_namespace_is_the_connection_s_before_the_default(stage, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_TEAM", '{"conn_type": "kubernetes", "extra": {"namespace": "team"}}')
    team = MXNetJobHook(kubernetes_conn_id="team", config_file=stage.kubeconfig)
    assert team.default_namespace() == "team"
    assert stage.hook.default_namespace() == "default"


def assert_in(line, lines):
    assert line in lines
