"""What becomes of a job when its task, Airflow, or the cluster fails: on a whole Airflow, with real jobs."""

import asyncio
import contextlib
import json
import os
import signal

import pytest
from airflow_scenes import MODES, TOKEN
from airflow_server import eventually_in_airflow as eventually
from airflow_sites import objects
from api_gateway import refusal

from mxnet_operator.api.conditions import job_state

pytestmark = [pytest.mark.timeout(900), pytest.mark.whole_airflow]

anywhere = pytest.mark.parametrize(
    "site", ["local", pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True
)
"""For what must be the same on the local cluster and on a real Kubernetes API."""


def test_a_deferred_task_shows_its_job_while_it_waits_and_returns_its_result(begin, job_pages):
    scene = begin("deferred")
    scene.train.wait("deferred")
    uid = scene.the_job()
    metadata = scene.jobs()[uid]["metadata"]
    address = job_pages.format(name=metadata["name"], namespace="default", uid=uid)
    assert scene.train.links() == {"MXJob": address, "MXJob logs": None}
    assert {key: scene.train.xcom(f"job_{key}") for key in ("name", "namespace", "uid", "url")} == {
        "name": metadata["name"],
        "namespace": "default",
        "uid": uid,
        "url": address,
    }
    eventually(lambda: "[worker-0] Epoch[0] Validation-accuracy=0.5" in scene.train.log())
    assert scene.train.get()["state"] == "deferred"
    scene.succeed()
    returned = scene.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert scene.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert [line for line in scene.train.log().splitlines() if line.startswith("[worker-0]")] == [
        "[worker-0] Epoch[0] Validation-accuracy=0.5",
        "[worker-0] Epoch[1] Validation-accuracy=0.9",
    ]
    assert scene.creations() == 1
    assert uid not in scene.deletions()


@anywhere
@pytest.mark.parametrize("state", ["failed", "success"])
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_ends_its_job(begin, mode, state):
    scene = begin(mode)
    uid = scene.the_job()
    scene.train.wait("deferred" if mode == "deferred" else "running")
    scene.train.set_state(state)
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()
    assert scene.creations() == 1


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(begin, mode):
    scene = begin(mode)
    old = scene.the_job()
    scene.train.wait("deferred" if mode == "deferred" else "running")
    scene.train.clear()
    eventually(lambda: len(scene.uids() - {old}) == 1 and old not in scene.uids())
    new = scene.the_job()
    scene.succeed()
    assert scene.train.xcom()["uid"] == new
    assert new not in scene.deletions()
    assert scene.creations() == 2


def test_a_finished_task_that_is_cleared_runs_again(begin):
    scene = begin("deferred")
    scene.end()
    scene.train.wait("success")
    first = scene.train.xcom()["uid"]
    scene.train.clear()
    eventually(lambda: len(scene.uids()) == 2)
    scene.train.wait("success")
    assert scene.train.xcom()["uid"] != first


@anywhere
def test_a_triggerer_that_dies_changes_nothing_for_the_job(begin, live):
    scene = begin("deferred")
    uid = scene.the_job()
    scene.train.wait("deferred")
    writes = len(scene.gateway.writes())
    live.stop("triggerer", signal.SIGKILL)
    live.start("triggerer")
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert len(scene.gateway.writes()) == writes
    if scene.site.has_logs:
        assert scene.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_takes_too_long_ends_its_job(begin, mode):
    scene = begin(f"{mode}_timed")
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    # Not looked for among the jobs: it need not have run in time, nor be there any more.
    assert scene.train.xcom("job_uid") in scene.deletions()
    assert "AirflowTaskTimeout" in scene.train.log()


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_does_not_start_fails_its_task_with_the_cluster_s_reason(begin, mode):
    scene = begin(f"{mode}_startup")
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    log = scene.train.log()
    assert "MXNetJobStartupTimeoutError" in log
    assert "no/such:image" in log


def test_an_outage_that_is_short_enough_is_waited_out(begin):
    scene = begin("deferred")
    uid = scene.the_job()
    scene.train.wait("deferred")
    scene.gateway.down = True
    eventually(lambda: "The API server can't be reached, and it is waited for" in scene.train.log())
    scene.end()
    scene.gateway.down = False
    scene.train.wait("success")
    assert scene.train.xcom()["uid"] == uid


def test_after_a_long_outage_the_worker_looks_for_itself_and_defers_again(begin):
    scene = begin("deferred_impatient")
    uid = scene.the_job()
    scene.train.wait("deferred")
    scene.gateway.down = True
    scene.train.wait("scheduled", "queued", "running")  # the trigger gave up; the worker has yet to start, and to look
    scene.gateway.down = False
    scene.train.wait("deferred")
    assert scene.succeed()["try_number"] == 1
    assert scene.train.xcom()["uid"] == uid
    assert scene.creations() == 1


@anywhere
def test_a_token_may_be_replaced_while_a_task_is_deferred(begin):
    scene = begin("deferred")
    uid = scene.the_job()
    scene.train.wait("deferred")
    eventually(lambda: ": Running" in scene.train.log())  # the trigger has logged in
    scene.gateway.rotate("another-" + TOKEN)
    eventually(lambda: "reading them anew" in scene.train.log())
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid


def test_credentials_that_stay_refused_fail_the_task_for_good_and_leave_the_job(begin):
    scene = begin("deferred")
    uid = scene.the_job()
    scene.train.wait("deferred")
    scene.gateway.tokens = set()
    assert scene.train.wait("failed")["try_number"] == 1
    assert "MXNetPermissionError" in scene.train.log()
    assert scene.uids() == {uid}


def create(site, manifest):
    done = site.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    assert done.returncode == 0, done.stderr


def refuse_creation(scene_count, answer):
    """A handler that answers the first creations itself."""
    left = [answer] * scene_count

    async def handler(asked, forward):
        return left.pop() if asked.method == "POST" and asked.path.endswith("/mxjobs") and left else None

    return handler


def test_a_task_for_which_a_quota_has_no_room_tries_again(begin, gateway):
    words = 'mxjobs.kubeflow.org "x" is forbidden: exceeded quota: jobs, requested: count/mxjobs.kubeflow.org=1'
    gateway.handler = refuse_creation(1, refusal(403, "Forbidden", words))
    scene = begin("deferred")
    scene.the_job()
    assert scene.succeed()["try_number"] == 2
    assert words in scene.train.log(1)


@pytest.mark.parametrize("site", [pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True)
def test_a_real_quota_is_waited_for_by_retries(begin, site):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "default"}}
    create(site, {**quota, "spec": {"hard": {"count/mxjobs.kubeflow.org": "0"}}})
    eventually(lambda: "hard" in objects(site, "resourcequotas")[0].get("status", {}))
    scene = begin("deferred")
    eventually(lambda: "exceeded quota" in scene.train.log(1))
    assert site.kubectl("delete", "resourcequota", "none").returncode == 0
    scene.the_job()
    assert scene.succeed()["try_number"] > 1


def test_a_right_that_is_missing_is_named_and_not_asked_for_again(begin, gateway):
    words = (
        'mxjobs.kubeflow.org is forbidden: User "airflow" cannot create resource "mxjobs" in API group "kubeflow.org"'
    )
    gateway.handler = refuse_creation(1, refusal(403, "Forbidden", words))
    scene = begin("deferred")
    assert scene.train.wait("failed")["try_number"] == 1
    assert words in scene.train.log()


@anywhere
def test_a_name_that_is_taken_is_left_to_who_has_it(begin, gateway, site):
    taken = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not taken:
            labels = {"theirs": asked.body["metadata"]["name"]}
            theirs = {**asked.body, "metadata": {"name": asked.body["metadata"]["name"], "labels": labels}}
            taken.append(theirs)
            await asyncio.to_thread(create, site, theirs)

    gateway.handler = handler
    scene = begin("deferred")
    scene.the_job()
    assert scene.succeed()["try_number"] == 2
    assert "MXNetJobNameTakenError" in scene.train.log(1)
    (theirs,) = objects(site, "mxjobs", "-l", f"theirs={taken[0]['metadata']['name']}")
    assert theirs["metadata"]["uid"] not in scene.deletions()


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_is_deleted_by_hand_is_a_failure_and_a_retry_makes_another(begin, site, mode):
    scene = begin(mode)
    old = scene.the_job()
    name = scene.jobs()[old]["metadata"]["name"]
    assert site.kubectl("delete", "mxjob", name, "--wait=false").returncode == 0
    eventually(lambda: len(scene.uids() - {old}) == 1)
    assert scene.succeed()["try_number"] == 2
    assert "MXNetJobDeletedError" in scene.train.log(1)


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_is_shown_and_a_retry_makes_another(begin, mode):
    scene = begin(mode)
    old = scene.the_job()
    scene.end(3)
    eventually(lambda: len(scene.uids()) == 2)
    scene.gate.write_text("0\n")
    assert scene.train.wait("success")["try_number"] >= 2
    log = scene.train.log(1)
    assert "MXNetJobFailedError" in log
    assert "exited with code 3" in log
    assert scene.train.xcom()["uid"] != old


@anywhere
def test_a_job_that_is_gone_when_the_task_resumes_has_succeeded_all_the_same(begin):
    scene = begin("deferred_ttl")
    scene.the_job()
    scene.succeed()
    assert scene.train.xcom()["result"] == ({"accuracy": 0.9} if scene.site.has_logs else None)
    eventually(lambda: scene.uids() == set())


@anywhere
def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(begin):
    scene = begin("waiting")
    uid = scene.the_job()
    os.kill(scene.train.wait("running")["pid"], signal.SIGKILL)
    scene.train.wait("running", try_number=2)
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.uids()) == (1, {uid})
    assert "which try 1 created, is waited for again" in scene.train.log(2)


@anywhere
@pytest.mark.parametrize("arrived", [False, True])
def test_a_worker_that_is_killed_while_it_creates_its_job_leaves_no_second_one(begin, gateway, site, arrived):
    """Killed after the intent: the request has reached the API server, or it has not; the reply never comes."""
    held = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not held:
            if arrived:
                await asyncio.to_thread(create, site, asked.body)
            held.append(asked.body)
            await asyncio.Event().wait()

    gateway.handler = handler
    scene = begin("waiting")
    eventually(lambda: held)
    os.kill(scene.train.wait("running")["pid"], signal.SIGKILL)
    scene.train.wait("running", try_number=2)
    uid = scene.the_job()
    scene.succeed()
    assert scene.uids() == {uid}
    assert scene.jobs()[uid]["metadata"]["name"] == held[0]["metadata"]["name"]


@anywhere
def test_mapped_tasks_of_two_runs_have_a_job_each(begin):
    scenes = [begin("deferred_mapped") for _ in range(2)]
    eventually(lambda: [len(scene.uids()) for scene in scenes] == [2, 2])
    for scene in scenes:
        scene.end()
    tasks = [scene.run.task("train", index) for scene in scenes for index in range(2)]
    for task in tasks:
        task.wait("success")
    assert {task.xcom()["uid"] for task in tasks} == {uid for scene in scenes for uid in scene.uids()}


def test_a_pool_that_counts_deferred_tasks_limits_how_many_jobs_there_are(begin):
    scene = begin("pooled")
    eventually(lambda: sum(task["state"] == "deferred" for task in scene.run.tasks()) == 2)
    most = 0

    def unfinished():
        nonlocal most
        jobs = scene.jobs()
        most = max(most, sum(job_state(job) not in ("Succeeded", "Failed") for job in jobs.values()))
        return len(jobs)

    eventually(lambda: unfinished() == 2 and {task["state"] for task in scene.run.tasks()} == {"deferred", "scheduled"})
    scene.end()
    eventually(lambda: unfinished() == 4 and all(task["state"] == "success" for task in scene.run.tasks()))
    assert most == 2


@anywhere
@pytest.mark.parametrize(("kind", "suspended"), [("suspended", True), ("kept", False)])
def test_a_job_may_be_suspended_or_kept_when_its_task_is_ended(begin, kind, suspended):
    scene = begin(f"deferred_{kind}")
    uid = scene.the_job()
    scene.train.wait("deferred")
    scene.train.set_state("failed")
    state = "Suspended" if suspended else "Running"
    eventually(lambda: {uid: job_state(job) for uid, job in scene.jobs().items()} == {uid: state})
    if not suspended:
        scene.end()
        eventually(lambda: {job_state(job) for job in scene.jobs().values()} == {"Succeeded"})
    assert scene.uids() == {uid}
    assert uid not in scene.deletions()


def test_a_sensor_waits_for_a_job_that_another_task_created_and_a_third_deletes_it(begin):
    scene = begin("detached")
    scene.train.wait("success")
    uid = scene.the_job()
    scene.run.task("sense").wait("deferred")
    scene.end()
    assert scene.run.task("delete").wait("success")
    assert scene.run.task("delete").xcom() is True
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()


def test_no_secret_is_in_airflow_s_database_or_logs(live, gateway):
    """The last test: whatever the others have made Airflow write is looked through."""
    read = {}
    for path in live.home.rglob("*"):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # the database's journal comes and goes
            read[path] = path.read_bytes()
    assert {"airflow.db", "triggerer.log"} <= {path.name for path in read}
    assert [path for path, content in read.items() if TOKEN.encode() in content] == []
    logs = "".join(content.decode(errors="replace") for path, content in read.items() if path.suffix == ".log")
    assert "Unclosed client session" not in logs
    assert "Unclosed connector" not in logs
