"""`mxjob run --adopt`: what is killed and started again finds its job, and leaves in files how it ended."""

import signal

import pytest
from jobs import waits_for, worker_job
from waiting import SECONDS

from mxnet_operator.api.conditions import job_state

SLEEP = "import time; print('asleep', flush=True); time.sleep(1000)"
RUN = "example.com/run"


def job_of(name, program, run="1"):
    manifest = worker_job(name, program)
    manifest["metadata"]["labels"] = {RUN: run}
    return manifest


def files(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.exhaustive
def test_a_run_that_was_killed_is_started_again_and_finds_its_job_and_its_log(local_cluster, manifest_file, tmp_path):
    manifest = manifest_file(job_of("adopt-again", waits_for(tmp_path / "goes-on")))
    with local_cluster.start_mxjob("run", "-f", manifest, "--adopt", RUN) as first:
        assert first.stdout.readline() == "begun\n"
        uid = local_cluster.get("mxjob", "adopt-again")["metadata"]["uid"]
        first.kill()

    with local_cluster.start_mxjob("run", "-f", manifest, "--adopt", RUN) as second:
        assert second.stdout.readline() == "begun\n"
        (tmp_path / "goes-on").touch()
        out, said = second.communicate(timeout=SECONDS)

    assert (second.returncode, out) == (0, "ended\n"), said
    assert said.splitlines()[0] == "MXJob adopt-again already exists and belongs to this run: following it"
    assert local_cluster.get("mxjob", "adopt-again")["metadata"]["uid"] == uid


def test_a_job_that_ended_meanwhile_is_reported_as_it_ended(local_cluster, manifest_file, tmp_path):
    local_cluster.create(job_of("adopt-over", "print('oh'); raise SystemExit(7)"))
    local_cluster.wait_for("adopt-over", "Failed")
    manifest = manifest_file(job_of("adopt-over", "print('oh'); raise SystemExit(7)"))

    done = local_cluster.mxjob("run", "-f", manifest, "--adopt", RUN, "--output-dir", str(tmp_path / "out"))

    assert done.returncode == 1
    assert files(tmp_path / "out")["state"] == "Failed"


@pytest.mark.exhaustive
def test_a_finished_job_of_other_replicas_is_not_taken_for_this_runs(local_cluster, manifest_file, tmp_path):
    """Its result would be told as that of replicas that never ran."""
    run = ("run", "--adopt", RUN, "--output-dir", str(tmp_path / "out"), "-f")
    assert local_cluster.mxjob(*run, manifest_file(job_of("adopt-other", "print('lr=0.1')"))).returncode == 0

    done = local_cluster.mxjob(*run, manifest_file(job_of("adopt-other", "print('lr=0.7')")))

    assert done.returncode == 3, done.stderr
    assert (
        "job adopt-other has already finished (Succeeded), with another spec.mxReplicaSpecs than this manifest"
        in done.stderr
    )
    assert "mxjob delete adopt-other" in done.stderr
    assert local_cluster.mxjob(*run, manifest_file(job_of("adopt-other", "print('lr=0.1')"))).returncode == 0


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("labels", "said"),
    [({RUN: "2"}, f"its label {RUN} is '2', not '1'"), ({}, f"its label {RUN} is None, not '1'")],
    ids=["another run's", "nobody's"],
)
def test_a_job_of_the_name_that_is_anothers_is_left_alone(local_cluster, manifest_file, labels, said):
    theirs = job_of("adopt-foreign", SLEEP)
    theirs["metadata"]["labels"] = labels

    check_left_alone(local_cluster, theirs, manifest_file(job_of("adopt-foreign", SLEEP)), said)


def test_a_job_of_another_owner_is_left_alone_whatever_its_label_says(local_cluster, manifest_file):
    def owned_by(uid):
        manifest = job_of("adopt-owned", SLEEP)
        manifest["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "adopt-owner", "uid": uid}
        ]
        return manifest

    local_cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopt-owner"}})
    owner = local_cluster.get("configmap", "adopt-owner")["metadata"]["uid"]

    check_left_alone(local_cluster, owned_by(owner), manifest_file(owned_by("another")), "its owner is another")


def check_left_alone(cluster, theirs, ours, said):
    name = theirs["metadata"]["name"]
    cluster.create(theirs)
    before = cluster.get("mxjob", name)["metadata"]["uid"]

    done = cluster.mxjob("run", "-f", ours, "--adopt", RUN)

    assert done.returncode == 3
    assert f"job {name} already exists and belongs to another run: {said}" in done.stderr
    assert cluster.get("mxjob", name)["metadata"]["uid"] == before
    cluster.delete("mxjob", name)


def test_a_suspended_job_is_waited_for(local_cluster, manifest_file):
    job = job_of("adopt-suspended", "print(1)")
    job["spec"]["runPolicy"] = {"suspend": True}
    with local_cluster.start_mxjob("run", "-f", manifest_file(job), "--adopt", RUN) as run:
        assert any("spec.runPolicy.suspend is true" in line for line in iter(run.stderr.readline, ""))
        local_cluster.patch("mxjob", "adopt-suspended", {"spec": {"runPolicy": {"suspend": False}}})
        out, said = run.communicate(timeout=SECONDS)

    assert (run.returncode, out) == (0, "1\n"), said


def test_a_job_that_is_being_deleted_is_waited_for_and_made_anew(local_cluster, manifest_file):
    old = job_of("adopt-going", SLEEP)
    old["metadata"]["finalizers"] = ["example.com/stay"]
    local_cluster.create(old)
    local_cluster.delete("mxjob", "adopt-going", wait=False)

    with local_cluster.start_mxjob(
        "run", "-f", manifest_file(job_of("adopt-going", "print(1)")), "--adopt", RUN
    ) as run:
        assert "being deleted: waiting until it is gone" in run.stderr.readline()
        local_cluster.patch("mxjob", "adopt-going", {"metadata": {"finalizers": None}})
        out, said = run.communicate(timeout=SECONDS)

    assert (run.returncode, out) == (0, "1\n"), said
    assert "MXJob adopt-going created" in said


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda metadata: metadata.pop("labels"), f"--adopt {RUN}: the manifest doesn't have this label"),
        (
            lambda metadata: metadata.update(generateName=metadata.pop("name")),
            "--adopt finds a job by its name, but metadata.generateName generates a new name each time",
        ),
    ],
    ids=["no label", "no name"],
)
def test_a_job_that_could_not_be_found_again_is_refused_before_it_is_made(local_cluster, manifest_file, change, said):
    manifest = job_of("adopt-never", "pass")
    change(manifest["metadata"])

    done = local_cluster.mxjob("run", "-f", manifest_file(manifest), "--adopt", RUN)

    assert done.returncode == 2
    assert said in done.stderr


def test_a_server_that_is_away_for_longer_than_the_patience_is_worth_another_attempt(
    local_cluster, manifest_file, tmp_path
):
    config = local_cluster.kubeconfig.read_text().replace(f":{local_cluster.state.port}", ":1")
    (tmp_path / "kubeconfig").write_text(config)
    manifest = manifest_file(job_of("adopt-away", "pass"))

    done = local_cluster.mxjob(
        *("run", "-f", manifest, "--adopt", RUN, "--retry-timeout", "1s"),
        *("--output-dir", str(tmp_path / "out"), "--kubeconfig", str(tmp_path / "kubeconfig")),
    )

    assert done.returncode == 75
    assert "run the same command again: it finds the job and follows it" in done.stderr
    assert files(tmp_path / "out")["job"] == "adopt-away"
    assert "can't be reached" in files(tmp_path / "out")["message"]


def test_an_interrupted_run_that_keeps_its_job_is_followed_by_one_that_finds_it(local_cluster, manifest_file, tmp_path):
    manifest, out = manifest_file(job_of("adopt-kept", SLEEP)), tmp_path / "out"
    options = ("--adopt", RUN, "--on-interrupt", "keep", "--output-dir", str(out))
    with local_cluster.start_mxjob("run", "-f", manifest, *options) as run:
        assert run.stdout.readline() == "asleep\n"
        run.send_signal(signal.SIGTERM)
        assert run.wait(SECONDS) == 143

    assert files(out).keys() == {"job", "state", "message", "result", "files"}
    assert job_state(local_cluster.get("mxjob", "adopt-kept")) == "Running"
    with local_cluster.start_mxjob("run", "-f", manifest, *options) as run:
        assert run.stdout.readline() == "asleep\n"
        local_cluster.delete("mxjob", "adopt-kept")
        assert run.wait(SECONDS) == 4
    assert files(out)["message"] == "job adopt-kept was deleted by somebody else before it finished"


def test_a_job_that_succeeds_leaves_its_result_in_files(local_cluster, manifest_file, tmp_path):
    program = "open('/dev/termination-log', 'w').write('{\"accuracy\": 0.5}')"
    manifest = worker_job("outputs-good", program)
    message = tmp_path / "termination-log"

    done = local_cluster.mxjob(
        "run", "-f", manifest_file(manifest), "--output-dir", str(tmp_path / "a" / "b"), "--message-file", str(message)
    )

    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "a" / "b") == {
        "job": "outputs-good",
        "state": "Succeeded",
        "message": "MXJob outputs-good is successfully completed.",
        "result": '{"accuracy": 0.5}',
        "files": "",
    }
    assert message.read_text() == "MXJob outputs-good is successfully completed."


def test_a_job_that_fails_leaves_its_message_in_files(local_cluster, manifest_file, tmp_path):
    manifest = worker_job("outputs-bad", "print('oh' * 5000); raise SystemExit(7)")
    message = tmp_path / "termination-log"

    done = local_cluster.mxjob(
        "run", "-f", manifest_file(manifest), "--output-dir", str(tmp_path / "out"), "--message-file", str(message)
    )

    assert done.returncode == 1
    found = files(tmp_path / "out")
    assert (found["job"], found["state"]) == ("outputs-bad", "Failed")
    assert "worker-0 exited with code 7" in found["message"]
    assert 0 < len(message.read_bytes()) <= 4096


def test_a_folder_that_cannot_be_written_is_refused_before_the_job_is_made(local_cluster, manifest_file, tmp_path):
    (tmp_path / "file").write_text("")

    done = local_cluster.mxjob(
        "run", "-f", manifest_file(worker_job("outputs-never", "pass")), "--output-dir", str(tmp_path / "file")
    )

    assert done.returncode == 2
    assert done.stderr.startswith(f"error: --output-dir: {tmp_path / 'file'}: ")
    assert local_cluster.get("mxjob", "outputs-never") is None


def test_workflow_and_on_interrupt_are_not_given_together(local_cluster, manifest_file):
    done = local_cluster.mxjob(
        "run", "-f", manifest_file(worker_job("never", "pass")), "--workflow", "w", "--on-interrupt", "keep"
    )

    assert done.returncode == 2
    assert "--workflow and --on-interrupt can't be combined" in done.stderr


def test_a_claim_that_nobody_made_is_made_for_an_adopted_job_too(local_cluster, manifest_file):
    job = job_of("adopt-claim", "print('done')")
    pod = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "m", "persistentVolumeClaim": {"claimName": "adopt-models"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "m", "mountPath": "/models"}]

    for is_made in (True, False):
        done = local_cluster.mxjob("run", "-f", manifest_file(job), "--adopt", RUN, "--timeout", "60s")
        assert done.returncode == 0, done.stderr
        assert ("PersistentVolumeClaim adopt-models created in namespace default" in done.stderr) is is_made
