"""`mxjob run` on the local cluster: what it exits with, what it says where, and what it leaves."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
from pathlib import Path

import pytest
from cluster_fixtures import DIGITS_IMAGE
from jobs import worker_job
from waiting import SECONDS, eventually

from mxnet_operator.api.conditions import job_state

SLEEP = "import time; print('asleep'); time.sleep(1000)"


def test_a_job_that_succeeds_exits_with_0_its_log_on_stdout_and_its_progress_on_stderr(local_cluster):
    manifest = worker_job("run-good", "print('Epoch[0] Validation-accuracy=0.5'); print('[red]done[/]')")

    done = local_cluster.mxjob("run", "-f", "-", stdin=json.dumps(manifest))

    assert done.returncode == 0, done.stderr
    assert done.stdout == "Epoch[0] Validation-accuracy=0.5\n[red]done[/]\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "MXJob run-good created in namespace default"
    assert lines[-3].startswith("run-good: Succeeded (worker 1/1) after ")
    assert lines[-2] == "files: the replicas wrote none"
    assert lines[-1].startswith("MXJob run-good is successfully completed. (")
    assert "\x1b" not in done.stderr


@pytest.mark.exhaustive
def test_a_terminal_shows_every_replica_with_its_state_below_the_log(local_cluster, manifest_file, monkeypatch):
    manifest = manifest_file(
        worker_job("run-seen", "import time; print('oh', flush=True); time.sleep(5); raise SystemExit(7)")
    )

    monkeypatch.setitem(local_cluster.environment, "TERM", "xterm-256color")
    code, seen = on_terminal(local_cluster, "run", "-f", manifest)

    assert code == 1
    log, under_the_log = seen.split("oh\n", 1)
    assert "run-seen" in log
    drawn = [line.split() for line in under_the_log.split("\n")]  # again and again, as things change
    progress = next(number for number, words in enumerate(drawn) if words[-2:] == ["worker", "1/1"])
    assert ["worker-0", "Running"] in [words[:2] for words in drawn[progress:]]
    assert "worker-0 exited with code 7:" in seen.splitlines()[-2]


def on_terminal(cluster, *args):
    """Run `mxjob` on a terminal of 100 columns; its exit code, and all that it drew without the control sequences."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with cluster.start_mxjob(*args, stdout=its, stderr=its) as process:
        os.close(its)
        drawn = b""
        with contextlib.suppress(OSError):  # how Linux says that nobody has the terminal open any more
            while piece := os.read(ours, 65536):
                drawn += piece
    os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", drawn.decode())


def test_a_job_that_fails_exits_with_1_and_the_words_of_its_condition(local_cluster, manifest_file):
    done = local_cluster.mxjob(
        "run", "-f", manifest_file(worker_job("run-bad", "print('oh'); raise SystemExit(7)")), "--no-logs"
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert "worker-0 exited with code 7:\noh\n" in done.stderr


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_deletes_the_job_and_waits_until_it_is_gone(local_cluster, manifest_file, number, code):
    name = f"run-interrupted-{code}"
    with local_cluster.start_mxjob("run", "-f", manifest_file(worker_job(name, SLEEP))) as run:
        assert run.stdout.readline() == "asleep\n"
        for _ in range(2):  # as timeout(1) does: to its child, then to the child's group
            run.send_signal(number)
        _, said = run.communicate(timeout=SECONDS)

    assert run.returncode == code
    assert f"interrupted: deleting job {name}" in said
    assert said.endswith(f"job {name} is gone\n")
    assert local_cluster.get("mxjob", name) is None
    assert local_cluster.get("pod", f"{name}-worker-0") is None


def test_a_second_interrupt_leaves_at_once(local_cluster, manifest_file):
    manifest = worker_job("run-stuck", SLEEP)
    manifest["metadata"]["finalizers"] = ["example.com/stay"]
    with local_cluster.start_mxjob("run", "-f", manifest_file(manifest)) as run:
        assert run.stdout.readline() == "asleep\n"
        run.send_signal(signal.SIGINT)
        assert any("waiting until it is gone" in line for line in iter(run.stderr.readline, ""))
        # Half a second after the first, a signal is another one.
        eventually(lambda: run.send_signal(signal.SIGINT) or run.poll() is not None)
        assert run.returncode == 130

    assert local_cluster.get("mxjob", "run-stuck")["metadata"]["deletionTimestamp"]
    local_cluster.patch("mxjob", "run-stuck", {"metadata": {"finalizers": None}})


def test_an_interrupt_leaves_the_job_where_that_is_asked_for(local_cluster, manifest_file):
    manifest = manifest_file(worker_job("run-kept", SLEEP))
    with local_cluster.start_mxjob("run", "-f", manifest, "--on-interrupt", "keep") as run:
        assert run.stdout.readline() == "asleep\n"
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=SECONDS)

    assert run.returncode == 130
    assert "mxjob logs -f run-kept -n default" in said
    assert job_state(local_cluster.get("mxjob", "run-kept")) == "Running"
    local_cluster.delete("mxjob", "run-kept")


def test_a_job_that_somebody_else_deletes_exits_with_1(local_cluster, manifest_file):
    with local_cluster.start_mxjob("run", "-f", manifest_file(worker_job("run-deleted", SLEEP))) as run:
        assert run.stdout.readline() == "asleep\n"
        local_cluster.delete("mxjob", "run-deleted")
        _, said = run.communicate(timeout=SECONDS)

    assert run.returncode == 1
    assert said.endswith("job run-deleted was deleted by somebody else before it finished\n")


def test_a_name_that_is_taken_is_refused_with_what_to_do(local_cluster, manifest_file):
    manifest = worker_job("run-twice", "pass")
    local_cluster.create(manifest)

    done = local_cluster.mxjob("run", "-f", manifest_file(manifest))

    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "error: job run-twice already exists in namespace default"
    assert "mxjob logs -f run-twice" in done.stderr


@pytest.mark.exhaustive
def test_a_config_map_beside_the_job_is_there_for_its_pods_and_takes_new_content(local_cluster):
    job = worker_job("run-beside", "import os; print(os.environ['RATE'])")
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["envFrom"] = [{"configMapRef": {"name": "run-beside"}}]
    for rate in ("0.1", "0.2"):
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "run-beside"},
            "data": {"RATE": rate},
        }
        done = local_cluster.mxjob("run", "-f", "-", stdin=f"{json.dumps(config_map)}\n---\n{json.dumps(job)}")
        assert (done.returncode, done.stdout) == (0, f"{rate}\n"), done.stderr
        local_cluster.mxjob("delete", "run-beside")
    assert "ConfigMap run-beside already exists in namespace default" in done.stderr


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "run-never"}},
            "stdin: v1 ServiceAccount can't be created with a job",
        ),
        (worker_job("run-never", "pass"), "stdin: expected one MXJob, found 2 in 2 documents"),
    ],
)
def test_what_can_not_be_created_beside_a_job_is_refused_before_anything_is(local_cluster, beside, said):
    text = f"{json.dumps(beside)}\n---\n{json.dumps(worker_job('run-never', 'pass'))}"

    done = local_cluster.mxjob("run", "-f", "-", stdin=text)

    assert done.returncode == 2
    assert said in done.stderr
    assert local_cluster.get("mxjob", "run-never") is None


def test_a_namespace_that_is_not_there_is_a_refusal_of_the_server(local_cluster, manifest_file):
    done = local_cluster.mxjob("run", "-f", manifest_file(worker_job("run-never", "pass")), "-n", "nope")

    assert done.returncode == 3
    assert 'the API server rejected the request: namespaces "nope" not found' in done.stderr
    manifest = worker_job("run-never", "pass")
    manifest["metadata"]["namespace"] = "a"
    done = local_cluster.mxjob("run", "-f", manifest_file(manifest), "-n", "nope")
    assert (done.returncode, "namespace is a, but --namespace is nope" in done.stderr) == (2, True)


def test_a_cluster_that_is_not_running_is_said_so_without_a_traceback(local_cluster, manifest_file, tmp_path):
    config = local_cluster.kubeconfig.read_text().replace(f":{local_cluster.state.port}", ":1")
    (tmp_path / "kubeconfig").write_text(config)

    done = local_cluster.mxjob(
        "run", "-f", manifest_file(worker_job("run-never", "pass")), "--kubeconfig", str(tmp_path / "kubeconfig")
    )

    assert done.returncode == 3
    assert done.stderr.startswith("error: the API server can't be reached: https://127.0.0.1:1: ")
    assert "mxjob local status" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_is_mounted_and_a_claim_that_nobody_made_is_made(local_cluster, tmp_path):
    (tmp_path / "figures").write_text("1 2 3")
    code = "import shutil, sys; shutil.copy(*sys.argv[1:])"

    done = local_cluster.mxjob(
        *("run", "--name", "run-mounts", "--image", DIGITS_IMAGE),
        *("--mount", f"{tmp_path}:/data:ro", "--volume", "run-model:/models"),
        *("--", "python", "-c", code, "/data/figures", "/models/copy"),
    )

    assert done.returncode == 0, done.stderr
    folder = re.search("there is no PersistentVolumeClaim run-model yet; its folder is (.*)", done.stderr)
    assert folder is not None, done.stderr
    assert Path(folder[1], "copy").read_text() == "1 2 3"
    assert done.stderr.splitlines()[-2] == f"files: claim run-model at /models ({folder[1]})"


def test_on_another_cluster_a_job_without_volumes_says_that_it_kept_nothing(local_cluster, tmp_path):
    done = local_cluster.mxjob(
        *("run", "--name", "run-volumeless", "--image", DIGITS_IMAGE, "--", "python", "-c", "open('model', 'w')"),
        environment={"MXJOB_HOME": str(tmp_path)},
    )

    assert done.returncode == 0, done.stderr
    kept = "files: nothing was kept, as no volume of the job outlives its pods: --volume CLAIM:/PATH"
    assert done.stderr.splitlines()[-2] == kept


def test_on_another_cluster_a_missing_claim_is_told_with_a_manifest_that_makes_it(local_cluster, tmp_path):
    done = local_cluster.mxjob(
        *("run", "--name", "run-claimless", "--image", DIGITS_IMAGE, "--volume", "run-nobodys:/data"),
        *("--timeout", "2s", "--", "python", "-c", ""),
        environment={"MXJOB_HOME": str(tmp_path)},
    )

    assert done.returncode == 124, done.stderr
    command, manifest, _ = re.split("<<'EOF'\n|EOF\n", done.stderr)
    assert command.endswith("to create it:\nkubectl apply -n default -f - ")
    made = local_cluster.kubectl("create", "-f", "-", stdin=manifest)
    assert made.stdout == "persistentvolumeclaim/run-nobodys created\n", made.stderr
