"""A job's page on a running local cluster: found by the job's uid, and by nothing else."""

import json
import urllib.error
import urllib.request

import pytest
from builders import make_mxjob
from controller_fixtures import submitted
from waiting import SECONDS, eventually


@pytest.fixture(scope="module")
def job(local_cluster):
    script = "echo 'Epoch[0] Validation-accuracy=0.5'; sleep 600"
    builder = make_mxjob("paged").worker(1, image="mxjob/mxnet:1.9.1", command=["sh", "-c", script])
    local_cluster.create(submitted(builder))
    yield local_cluster.wait_for("paged", "Running")
    local_cluster.mxjob("delete", "paged")


def template(cluster):
    return json.loads(cluster.mxjob("local", "status", "--json").stdout)["jobPages"]


def fetch(cluster, **fields):
    with urllib.request.urlopen(template(cluster).format(**fields), timeout=SECONDS) as response:
        return response.read().decode(), response.headers


def test_the_page_shows_the_running_job(local_cluster, job):
    where = {key: job["metadata"][key] for key in ("name", "namespace", "uid")}
    eventually(lambda: "Epoch[0] Validation-accuracy=0.5" in fetch(local_cluster, **where)[0])
    text, headers = fetch(local_cluster, **where)
    assert "paged-worker-0" in text
    assert '<span class="state running">Running</span>' in text
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("wrong", [{"uid": "0" * 36}, {"name": "another"}, {"namespace": "another"}, {"uid": "-"}])
def test_whoever_does_not_know_the_uid_learns_nothing(local_cluster, job, wrong):
    where = {key: job["metadata"][key] for key in ("name", "namespace", "uid")} | wrong
    with pytest.raises(urllib.error.HTTPError) as refusal:
        fetch(local_cluster, **where)
    with refusal.value as answer:
        assert (answer.code, "paged" in answer.read().decode()) == (404, False)


def test_there_is_no_list_of_jobs(local_cluster, job):
    base = template(local_cluster).partition("/jobs/")[0]
    for path in ("/", "/jobs", "/jobs/default", "/jobs/default/paged"):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(base + path, timeout=SECONDS)
        with refusal.value as answer:
            assert answer.code == 404


def test_the_uid_is_in_no_process_s_arguments(local_cluster, job):
    """Those are for every user of the machine to read."""
    assert not any(job["metadata"]["uid"] in command for command in local_cluster.processes().values())


def test_the_status_of_a_job_says_where_its_page_is(local_cluster, job):
    where = {key: job["metadata"][key] for key in ("name", "namespace", "uid")}
    address = job["status"]["url"]
    assert address == template(local_cluster).format(**where)
    with urllib.request.urlopen(address, timeout=SECONDS) as response:
        assert (response.status, "paged-worker-0" in response.read().decode()) == (200, True)
    (line,) = [line for line in local_cluster.mxjob("describe", "paged").stdout.splitlines() if "Page:" in line]
    assert line.split() == ["Page:", address]
