"""Jobs of every form on a local cluster that serves the older kinds: real MXNet, `mxjob` and kubectl."""

import json
import re
from itertools import pairwise

import pytest
from cluster_fixtures import new_home
from older_jobs import FORMS, kind_of_form, older_job, pod_template

from mxnet_operator.local.images import BASE_IMAGE

TRAIN = """
import os
import mxnet as mx
store = mx.kv.create("dist_sync")
store.init("w", mx.nd.zeros(1))
store.push("w", mx.nd.ones(1))
pulled = mx.nd.zeros(1)
store.pull("w", out=pulled)
print("the sum is", pulled.asscalar(), "on port", os.environ["DMLC_PS_ROOT_PORT"], flush=True)
"""
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


def job_in(form, name, program):
    return older_job(form, name, pod_template(BASE_IMAGE, ["python", "-u", "-c", program]))


def type_of(form):
    """The form's kind as kubectl writes it before a name."""
    kind = kind_of_form(form)
    return f"{kind.singular}.{kind.group}"


@pytest.mark.parametrize("form", FORMS)
def test_mxjob_run_trains_with_a_job_of_any_form(cluster, form):
    manifest = json.dumps(job_in(form, f"run-{form}", TRAIN))

    done = cluster.mxjob("run", "-f", "-", stdin=manifest)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"the sum is 2.0 on port {PORTS.get(form, 9091)}"
    assert done.stderr.splitlines()[0] == f"{FORMS[form][1].kind} run-{form} created in namespace default"
    assert done.stderr.splitlines()[-1].startswith(f"MXJob run-{form} is successfully completed.")


@pytest.fixture(scope="module")
def jobs(cluster):
    """A job of each form that runs until it is deleted."""
    for form in FORMS:
        cluster.create(job_in(form, f"asleep-{form}", ASLEEP))
    yield {form: cluster.wait_for(f"asleep-{form}", "Running", type_of(form)) for form in FORMS}
    for form in FORMS:
        cluster.delete(type_of(form), f"asleep-{form}")


def test_each_runs_in_the_words_of_its_form(jobs):
    for form, job in jobs.items():
        assert job["status"].get("form", "v1") == form
        if form in {"v1alpha1", "fioravanzo", "mlkube"}:
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
    assert names("mxj") == {f"mxjob.kubeflow.org/asleep-{form}" for form in ("v1", "flat-v1", "v1beta1", "v1alpha1")}
    assert names("mxnet") == {f"{type_of(form)}/asleep-{form}" for form in FORMS}


@pytest.mark.parametrize("form", ["v1", "mxnetjob", "fioravanzo", "mlkube"])
def test_kubectl_shows_state_replicas_restarts_duration_and_age_of_every_kind(cluster, jobs, form):
    shown = cluster.kubectl("get", f"{type_of(form)}/asleep-{form}", "-o", "wide").stdout.splitlines()
    heading, row = shown
    starts = [*(found.start() for found in re.finditer(r"\S+", heading)), None]
    cells = {heading[a:b].strip(): row[a:b].strip() for a, b in pairwise(starts)}
    assert cells["NAME"] == f"asleep-{form}"
    assert (cells["STATE"], cells["READY"], cells["FORM"]) == ("Running", "4/4", "" if form == "v1" else form)
    assert cells["AGE"]
    assert {"RESTARTS", "DURATION", "STARTED"} <= cells.keys()


def test_mxjob_get_lists_every_kind_with_its_type_and_counts(cluster, jobs):
    done = cluster.mxjob("get")
    heading, *lines = (line.split() for line in done.stdout.splitlines())
    rows = {line[heading.index("NAME")]: dict(zip(heading, line, strict=False)) for line in lines}
    for form in FORMS:
        row = rows[f"asleep-{form}"]
        assert (row["TYPE"], row["STATE"], row["WORKER"]) == (type_of(form), "Running", "2/2")


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
