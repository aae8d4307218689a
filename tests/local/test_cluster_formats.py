"""Jobs of every format on a local cluster that serves the older kinds: `mxjob` and kubectl."""

import json

import pytest
from cluster_fixtures import new_home
from older_jobs import FORMATS, kind_of_format, older_job, pod_template

from mxnet_operator.local.images.store import BASE_IMAGE

SAYS_ITS_PORT = "import os; print('on port', os.environ['DMLC_PS_ROOT_PORT'])"
PORTS = {"mxnetjob": 9092, "fioravanzo": 9000}
"""The ports that ps-lite meets at in the documents, where that isn't 9091."""
ASLEEP = "import time; time.sleep(1000)"


@pytest.fixture(scope="module")
def cluster(mxnet_python):
    """A cluster of this file's own: with the older kinds, plain `mxjobs` isn't kubeflow.org's."""
    with new_home() as cluster:
        done = cluster.mxjob("local", "up", "--detach", "--cpus", "64", "--legacy")
        assert done.returncode == 0, done.stderr
        yield cluster
        assert " ERROR " not in cluster.files.log.read_text()


def job_in(job_format, name, program):
    return older_job(job_format, name, pod_template(BASE_IMAGE, ["python", "-u", "-c", program]))


def type_of(job_format):
    """The format's kind as kubectl writes it before a name."""
    kind = kind_of_format(job_format)
    return f"{kind.singular}.{kind.group}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("job_format", FORMATS)
def test_mxjob_run_runs_a_job_of_any_format(cluster, job_format):
    manifest = json.dumps(job_in(job_format, f"run-{job_format}", SAYS_ITS_PORT))

    done = cluster.mxjob("run", "-f", "-", stdin=manifest)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"on port {PORTS.get(job_format, 9091)}"
    assert done.stderr.splitlines()[0] == f"{FORMATS[job_format][1].kind} run-{job_format} created in namespace default"
    assert done.stderr.splitlines()[-1].startswith(f"MXJob run-{job_format} is successfully completed.")


@pytest.fixture(scope="module")
def jobs(cluster):
    """A job of each format that runs until it is deleted."""
    for job_format in FORMATS:
        cluster.create(job_in(job_format, f"asleep-{job_format}", ASLEEP))
    yield {
        job_format: cluster.wait_for(f"asleep-{job_format}", "Running", type_of(job_format)) for job_format in FORMATS
    }
    for job_format in FORMATS:
        cluster.delete(type_of(job_format), f"asleep-{job_format}")


def test_each_runs_in_the_words_of_its_format(jobs):
    for job_format, job in jobs.items():
        assert job["status"].get("form", "v1") == job_format
        if job_format in {"v1alpha1", "fioravanzo", "mlkube"}:
            assert job["status"]["phase"] == "Running"
            assert isinstance(job["status"]["replicaStatuses"], list)
            assert job["status"]["RuntimeId"] == job["metadata"]["uid"][:4]
        else:
            assert job["status"]["replicaStatuses"]["Worker"] == {"active": 2}


def test_kubectl_tells_the_kinds_apart_as_on_a_cluster_with_the_overlay(cluster, jobs):
    def names(what):
        found = cluster.kubectl("get", what, "-o", "name").stdout.split()
        return {each for each in found if "/asleep-" in each}

    assert names("mxjobs") == {"mxjob.fioravanzo.org/asleep-fioravanzo"}
    assert names("mxnetjobs") == {"mxnetjob.kubeflow.org/asleep-mxnetjob"}
    assert names("mxj") == {
        f"mxjob.kubeflow.org/asleep-{job_format}" for job_format in ("v1", "flat-v1", "v1beta1", "v1alpha1")
    }
    assert names("mxnet") == {f"{type_of(job_format)}/asleep-{job_format}" for job_format in FORMATS}


def test_mxjob_get_lists_every_kind_with_its_type_and_counts(cluster, jobs):
    done = cluster.mxjob("get")
    heading, *lines = (line.split() for line in done.stdout.splitlines())
    rows = {line[heading.index("NAME")]: dict(zip(heading, line, strict=False)) for line in lines}
    for job_format in FORMATS:
        row = rows[f"asleep-{job_format}"]
        assert (row["TYPE"], row["STATE"], row["WORKER"]) == (type_of(job_format), "Running", "2/2")


@pytest.mark.exhaustive
def test_mxjob_takes_a_type_before_a_name_and_asks_for_it_where_several_are_meant(cluster, jobs):
    twin = job_in("v1", "asleep-mlkube", ASLEEP)
    cluster.create(twin)
    try:
        unclear = cluster.mxjob("describe", "asleep-mlkube")
        assert unclear.returncode == 2
        assert "2 jobs in namespace default are named asleep-mlkube" in unclear.stderr
        assert "mxjob.mxnet.mlkube.io/asleep-mlkube" in unclear.stderr
        theirs = cluster.mxjob("describe", "mxjob.mxnet.mlkube.io/asleep-mlkube").stdout
        assert "MxJob of mxnet.mlkube.io/v1beta1" in theirs
        assert "asleep-mlkube-worker-1" in theirs
        ours = cluster.mxjob("describe", "mxjob.kubeflow.org/asleep-mlkube").stdout
        assert "exists already and does not belong to this job" in ours
        assert "4 of 4 replicas have no pod" in ours
        assert ": no pod (job " in cluster.mxjob("logs", "mxjob.kubeflow.org/asleep-mlkube").stderr
    finally:
        gone = cluster.mxjob("delete", "mxjob.kubeflow.org/asleep-mlkube")
        assert gone.returncode == 0, gone.stderr
    assert cluster.get("mxjobs.mxnet.mlkube.io", "asleep-mlkube")["status"]["state"] == "Running"
    assert cluster.mxjob("logs", "tfjob/asleep-mlkube").returncode == 2
