"""What a job wrote, on a cluster: `mxjob` copies it from a pod or a claim, and the dashboard shows the logs."""

import base64
import io
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from real_node.cheap_gang import BUSYBOX, SERVE, gang, submitted

MXJOB = Path(sysconfig.get_path("scripts"), "mxjob")
WRITE = (
    'case $DMLC_ROLE in worker) echo "of $DMLC_WORKER_ID" > "$MXJOB_OUTPUT_DIR/m 1.params"; '
    "mkdir /models/run; echo kept > /models/run/log; esac; true"
)
READ_DASHBOARD = """
import http.cookiejar, subprocess, sys, urllib.request
command, paths = sys.argv[1:5], sys.argv[5:]
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
    try:
        address = serving.stdout.readline().strip()
        for each in (address, *(address.partition("/?")[0] + path for path in paths)):
            print(opener.open(each).read().decode(), end="")
    finally:
        serving.terminate()
"""
"""A program that prints the list that a dashboard serves, whose command has four words, then what is at the paths."""


@pytest.fixture
def mxjob(world):
    def call(verb, *words):
        return world.node.run(MXJOB, verb, "-n", world.namespace, *words, check=False)

    return call


def test_output_brings_each_replicas_folder_of_the_claim_home_and_cp_what_else_it_has(world, mxjob, tmp_path):
    world.claim("models")
    home = tmp_path / "out"
    job = ["--name", "gang", "--image", BUSYBOX, "--workers", "2", "--volume", "models:/models"]

    done = mxjob("run", *job, "--output", home, "--", "sh", "-c", WRITE)

    assert done.returncode == 0, done.stderr
    assert f"files: {home / 'worker-0'}, {home / 'worker-1'}\nfiles: claim models at /models\n" in done.stderr
    found = {str(each.relative_to(home)): each.read_text() for each in home.glob("*/*")}
    assert found == {f"worker-{index}/m 1.params": f"of {index}\n" for index in (0, 1)}

    copied = mxjob("cp", "gang:/models/run", tmp_path)
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "run/log").read_text() == "kept\n"
    missing = mxjob("cp", "gang:/models/nope", tmp_path)
    assert missing.returncode == 1
    assert "nope: No such file or directory" in missing.stderr
    lost = mxjob("cp", "gang/worker-1:m.params", tmp_path)
    assert lost.returncode == 1
    assert "worker-1 doesn't run, and m.params is in no claim that it mounts" in lost.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"out", "run"}
    names = {each["metadata"]["name"] for each in world.get("pods")["items"]}
    assert not {each for each in names if "-files-" in each}


def hostile_tar():
    """A shell command that has `tar` write an archive which leads out of where it is unpacked."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as made:
        made.addfile(tarfile.TarInfo("model/../../evil"))
    text = base64.b64encode(archive.getvalue()).decode()
    return f"rm /bin/tar; echo '#!/bin/sh\necho {text} | base64 -d | gunzip' > /bin/tar; chmod +x /bin/tar"


def test_cp_reads_from_a_pod_that_runs_and_takes_nothing_from_a_hostile_one(world, mxjob, tmp_path):
    files = (
        f"mkdir /w; cd /w; echo half > model; mkdir d; echo d > d/e; [ $DMLC_WORKER_ID = 0 ] && {{ {hostile_tar()}; }}"
    )
    world.create(submitted(gang(command=["sh", "-c", f"{files}; {SERVE[2]}"])))
    world.state("gang", "Running")
    path = "gang/worker-1:/w/model"

    done = mxjob("cp", path, tmp_path)
    assert done.returncode == 0, done.stderr

    assert (tmp_path / "model").read_text() == "half\n"
    again = mxjob("cp", path, tmp_path)
    assert again.returncode == 1
    assert "exists, and nothing is overwritten" in again.stderr
    assert mxjob("cp", "gang/worker-1:/w/d", tmp_path / "new").returncode == 0
    assert (tmp_path / "new/e").read_text() == "d\n"
    hostile = mxjob("cp", "gang/worker-0:/w/model", tmp_path / "new/deep")
    assert hostile.returncode == 1
    assert "gang-worker-0: 'model/../../evil' would be extracted to" in hostile.stderr
    assert {path.name for path in tmp_path.rglob("*")} == {"model", "new", "e"}


def test_the_dashboard_shows_the_jobs_of_a_cluster_and_the_log_of_a_replica(world):
    world.create(submitted(gang(command=["sh", "-c", f"echo 'Epoch[0] Validation-accuracy=0.5'; {SERVE[2]}"])))
    world.state("gang", "Running")
    job = f"/jobs/{world.namespace}/gang/{world.get('mxjob', 'gang')['metadata']['uid']}"
    command = (MXJOB, "dashboard", "-n", world.namespace)
    read = world.node.run(sys.executable, "-c", READ_DASHBOARD, *command, job, f"{job}/logs/worker-1").stdout
    assert f'<a href="{job}">gang</a>' in read
    assert '<span class="state running">Running</span>' in read
    assert read.endswith("Epoch[0] Validation-accuracy=0.5\n")
