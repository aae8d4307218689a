"""`mxjob cp` on the local cluster: what the replicas of a finished job wrote comes home."""

import json

import pytest
from cluster_fixtures import DIGITS_IMAGE
from jobs import worker_job

from mxnet_operator.api import names

WRITE = """
import os, pathlib
rank = os.environ['DMLC_WORKER_ID']
print(f'INFO:root:Node[{1 - int(rank)}] Epoch[0] Train-accuracy=0.5')
pathlib.Path('my model-0001.params').write_text('weights of ' + rank)
pathlib.Path('only-' + rank).touch()
pathlib.Path('net.pyc').touch()  # as Python 2 does
pathlib.Path('run/logs').mkdir(parents=True)
pathlib.Path('run/logs/a').write_text('log')
pathlib.Path('run/last').symlink_to('logs/a')
pathlib.Path(os.environ['OUT'], 'm.params').write_text('kept')
"""


@pytest.fixture(scope="module")
def finished(local_cluster):
    """A job of two workers that has ended, with a volume at /volume."""
    job = worker_job("cp-done", WRITE)
    worker = job["spec"]["mxReplicaSpecs"][names.WORKER]
    worker["replicas"] = 2
    pod = worker["template"]["spec"]
    pod["volumes"] = [{"name": "out", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "out", "mountPath": "/volume"}]
    pod["containers"][0].setdefault("env", []).append({"name": "OUT", "value": "/volume"})
    local_cluster.create(job)
    local_cluster.wait_for("cp-done", "Succeeded")
    return local_cluster


@pytest.mark.parametrize(
    ("source", "file", "text"),
    [
        ("/worker-1:my model-0001.params", "my model-0001.params", "weights of 1"),
        (":only-1", "only-1", ""),  # though another worker is the first
        (":run/last", "last", "log"),
        (":run", "run/logs/a", "log"),
        (":/volume/m.params", "m.params", "kept"),
    ],
    ids=["a file of a replica", "the only writer's", "a link", "a folder", "into a volume"],
)
def test_what_a_finished_job_wrote_is_copied_into_a_folder(finished, tmp_path, source, file, text):
    done = finished.mxjob("cp", f"cp-done{source}", str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).read_text() == text


def test_of_several_writers_rank_0_is_copied_and_the_others_are_named(finished, tmp_path):
    done = finished.mxjob("cp", "cp-done:my model-0001.params", str(tmp_path / "new"))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new").read_text() == "weights of 1"
    assert "worker-1 has rank 0; worker-0 wrote my model-0001.params too\n" in done.stderr
    assert finished.mxjob("cp", "cp-done", str(tmp_path / "all")).returncode == 0
    assert (tmp_path / "all/only-1").exists()


def test_several_writers_of_unknown_ranks_are_refused_with_their_names(local_cluster, tmp_path):
    job = worker_job("cp-ranks", "import os; open('m', 'w').write(os.environ['DMLC_WORKER_ID'])")
    worker = job["spec"]["mxReplicaSpecs"][names.WORKER]
    worker["replicas"] = 2
    worker["template"]["spec"]["containers"][0]["image"] = DIGITS_IMAGE
    local_cluster.create(job)
    local_cluster.wait_for("cp-ranks", "Succeeded")

    refused = local_cluster.mxjob("cp", "cp-ranks:m", str(tmp_path))
    image_file = local_cluster.mxjob("cp", "cp-ranks:train.py", str(tmp_path))
    local_cluster.mxjob("delete", "cp-ranks")

    assert refused.returncode == 1
    assert "worker-0, worker-1 wrote m, and no log tells which of them has rank 0\n" in refused.stderr
    assert "mxjob cp cp-ranks/worker-0:m DESTINATION" in refused.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"], image_file.stderr


def test_describe_and_logs_name_the_ranks_that_logs_tell_and_describe_what_each_replica_wrote(finished):
    shown = finished.mxjob("describe", "cp-done").stdout
    files = shown.partition("\nFiles:\n")[2].splitlines()

    assert "cp-done-worker-0 (rank 1)" in shown
    assert "cp-done-worker-1 (rank 0)" in shown
    logs = finished.mxjob("logs", "cp-done", "--replica", "all").stdout
    assert "[worker-0 (rank 1)] INFO:root:Node[1] Epoch[0]" in logs

    assert files[0] == "  worker-0 wrote my model-0001.params, only-0, run/last, run/logs/a"
    assert files[1].startswith("  worker-1 wrote ")


@pytest.mark.exhaustive
def test_files_are_copied_after_the_cluster_has_stopped_too(home, mxnet_python, tmp_path):
    assert home.mxjob("local", "up", "--detach").returncode == 0
    home.create(worker_job("gone", "open('m.params', 'w').close()"))
    home.wait_for("gone", "Succeeded")
    assert home.mxjob("local", "down").returncode == 0

    for destination in ("down", "up"):
        done = home.mxjob("cp", "gone:m.params", str(tmp_path / destination))
        assert done.returncode == 0, done.stderr
        assert "gone is a job of an earlier run of the local cluster" in done.stderr
        assert (tmp_path / destination).exists()
        assert home.mxjob("local", "up", "--detach").returncode == 0
    assert "no MXJob other in namespace default" in home.mxjob("cp", "other:m.params", str(tmp_path)).stderr


def test_without_a_path_all_new_files_are_copied_and_nothing_of_the_image(finished, tmp_path):
    done = finished.mxjob("cp", "cp-done/worker-1", str(tmp_path / "new"))

    assert done.returncode == 0, done.stderr
    found = {str(each.relative_to(tmp_path / "new")) for each in (tmp_path / "new").rglob("*") if not each.is_dir()}
    assert found == {"my model-0001.params", "only-1", "run/logs/a", "run/last"}
    assert (tmp_path / "new/run/last").readlink().as_posix() == "logs/a"
    again = finished.mxjob("cp", "cp-done/worker-1", str(tmp_path / "new"))
    assert (again.returncode, "nothing is overwritten" in again.stderr) == (1, True)


def test_a_file_that_exists_is_never_overwritten(finished, tmp_path):
    mine = tmp_path / "my model-0001.params"
    mine.write_text("mine")

    done = finished.mxjob("cp", "cp-done:my model-0001.params", str(tmp_path))

    assert (done.returncode, mine.read_text()) == (1, "mine")
    assert "exists, and nothing is overwritten" in done.stderr


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("cp-done/worker-0:only-1", 1, "worker-0 has no only-1\nworker-1 has it"),
        ("cp-done:nope", 1, "worker-0 has no nope\nnewest in its working directory: "),
        ("cp-done:/etc/hostname", 1, "worker-0 has no /etc/hostname"),
        ("cp-done/worker-2:a", 2, "has no replica worker-2\nit has worker-0, worker-1"),
        ("cp-done:", 2, "is not JOB[/REPLICA][:PATH]"),
        ("nope:a", 1, "no MXJob nope in namespace default"),
    ],
)
def test_what_can_not_be_copied_is_said_so_and_copies_nothing(finished, tmp_path, source, code, said):
    done = finished.mxjob("cp", source, str(tmp_path))

    assert done.returncode == code
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("written", "told"),
    [
        (["my mnist.params"], "my mnist.params\n  mxjob cp 'cp-named/worker-0:my mnist.params' .\n"),
        (["out/a", "out/b"], "out/a, out/b\n  mxjob cp cp-named/worker-0:out .\n"),
        (["a", "out/b"], "a, out/b\n  mxjob cp cp-named/worker-0 cp-named-worker-0\n"),
    ],
)
def test_run_and_report_name_the_new_files_and_run_how_to_copy_them(local_cluster, tmp_path, written, told):
    script = f"import os\nfor each in {written}: os.makedirs('out', exist_ok=True); open(each, 'w').close()"
    done = run(local_cluster, tmp_path, "cp-named", script, "--report", str(tmp_path / "report.html"))
    local_cluster.mxjob("delete", "cp-named")

    assert done.returncode == 0, done.stderr
    assert f"files: worker-0 wrote {told}" in done.stderr
    assert f"worker-0 wrote {told.splitlines()[0]}</code>" in (tmp_path / "report.html").read_text()


def test_output_brings_the_new_files_home_and_not_those_of_the_image(local_cluster, tmp_path):
    script = (
        "import os; os.chdir(os.environ['MXJOB_OUTPUT_DIR']); os.makedirs('a/b');"
        "open('a/b/m 1.params', 'w').write('w'); os.symlink('a/b/m 1.params', 'last')"
    )

    done = run(local_cluster, tmp_path, "cp-home", script, "--output", str(tmp_path / "new/out"))

    out = tmp_path / "new/out/worker-0"
    assert done.returncode == 0, done.stderr
    assert f"files: {out}\n" in done.stderr
    found = {each.relative_to(out).as_posix() for each in out.rglob("*") if not each.is_dir()}
    assert found == {"a/b/m 1.params", "last"}
    assert (out / "last").readlink().as_posix() == "a/b/m 1.params"


def test_the_output_of_a_failed_job_is_renamed_so_that_the_same_command_runs_again(local_cluster, tmp_path):
    out = tmp_path / "out"
    code = "open('m', 'w').write('{}'); raise SystemExit({})"

    failed = run(local_cluster, tmp_path, "cp-failed", code.format("first", 1), "--output", str(out))
    local_cluster.mxjob("delete", "cp-failed")
    again = run(local_cluster, tmp_path, "cp-failed", code.format("second", 0), "--output", str(out))
    local_cluster.mxjob("delete", "cp-failed")
    third = run(local_cluster, tmp_path, "cp-failed", "pass", "--output", str(out))

    assert (failed.returncode, again.returncode, third.returncode) == (1, 0, 2), again.stderr
    assert f"the files of job cp-failed, which did not succeed, are in {out}-cp-failed now\n" in again.stderr
    assert (tmp_path / "out-cp-failed/worker-0/m").read_text() == "first"
    assert (out / "worker-0/m").read_text() == "second"


def test_a_run_that_takes_too_long_brings_home_what_was_written_so_far(local_cluster, tmp_path):
    script = "import time; open('m.params', 'w').close(); print('saved', flush=True); time.sleep(1000)"
    options = ["--output", str(tmp_path / "out"), "--timeout", "4s"]

    done = run(local_cluster, tmp_path, "cp-slow", script, *options)

    assert done.returncode == 124, done.stderr
    assert "not finished after 4s: deleting job cp-slow" in done.stderr
    assert local_cluster.get("mxjob", "cp-slow") is None
    assert (tmp_path / "out/worker-0/m.params").exists(), done.stderr
    assert f"files: {tmp_path / 'out/worker-0'}\n" in done.stderr


@pytest.mark.sampled
@pytest.mark.parametrize("copied", [False, True])
def test_a_job_that_wrote_nothing_says_so(local_cluster, tmp_path, copied):
    options = ["--output", str(tmp_path / "out")] if copied else []
    done = run(local_cluster, tmp_path, "cp-nothing", "pass", *options)
    local_cluster.mxjob("delete", "cp-nothing")

    assert done.returncode == 0, done.stderr
    assert "files: the replicas wrote none\n" in done.stderr


def test_output_into_a_folder_with_files_is_refused_before_the_job_is_created(local_cluster, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")

    done = run(local_cluster, tmp_path, "cp-refused", "pass", "--output", str(tmp_path / "out"))

    assert done.returncode == 2
    assert "the folder is not empty, and nothing is overwritten" in done.stderr
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["mine"]
    assert local_cluster.mxjob("describe", "cp-refused").returncode == 1


def run(local_cluster, folder, name, script, *options):
    manifest = folder / f"{name}.json"
    manifest.write_text(json.dumps(worker_job(name, script)))
    return local_cluster.mxjob("run", "-f", str(manifest), *options)
