"""What is kept of a job in memory is bounded, whoever writes it, and a job too large to be kept runs like any other."""

import base64
import json
import random

import msgspec
import pytest
from apiserver_fixtures import running_server
from builders import make_mxjob
from controller_fixtures import JOBS, ControllerWorld, RecordingClient, submitted
from hypothesis import given
from hypothesis import strategies as st

from mxnet_operator.controller.projection import LARGEST_BODY, project_job, project_pod
from mxnet_operator.kube.credentials import load_credentials

NOTES = {
    "managedFields": [{"manager": "kubectl", "fieldsV1": {f"f:{n}": {} for n in range(200)}}],
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 3000, "mine": "kept"},
}


def noise(size, seed=0):
    """Text that can't be compressed to less than three quarters."""
    return base64.b64encode(random.Random(seed).randbytes(size * 3 // 4)).decode()


def job_with(**env):
    job = make_mxjob("large").worker(1, env=[{"name": name, "value": value} for name, value in env.items()])
    return submitted(job)


def kept(manifest):
    return project_job(msgspec.Raw(json.dumps(manifest).encode()))


@pytest.mark.parametrize("size", [100, 7_000, 20_000, 100_000, 1_350_000])
@pytest.mark.parametrize("compressible", [False, True])
def test_of_a_job_so_much_is_kept_and_no_more(size, compressible):
    manifest = job_with(DATA="ab" * (size // 2) if compressible else noise(size))
    record = kept({**manifest, "metadata": manifest["metadata"] | NOTES})
    held = len(record.body or b"")
    assert held <= LARGEST_BODY
    if record.raw is None:
        assert size > LARGEST_BODY
    else:
        metadata = manifest["metadata"] | {"annotations": {"mine": "kept"}}
        assert json.loads(record.raw) == {**manifest, "metadata": metadata}


def test_300_jobs_of_one_tenant_hold_next_to_nothing():
    records = [kept(job_with(DATA=noise(1_350_000, seed))) for seed in range(3)]
    assert sum(len(record.body or b"") for record in records) == 0


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=2000) | st.integers() | st.none(), max_size=30))
def test_any_job_is_read_back_as_it_was(spec):
    manifest = {"metadata": {"name": "a", "namespace": "b", "annotations": None}, "spec": spec, "other": [spec]}
    assert json.loads(kept(manifest).raw) == manifest


def test_texts_of_a_pods_status_are_bounded():
    long = "x" * 100_000
    waiting = {"name": "mxnet", "state": {"waiting": {"reason": "E", "message": long}}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": long}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "a", "uid": "u", "controller": True}
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
    pod = {
        "metadata": {"name": "a-worker-0", "namespace": "b", "ownerReferences": [owner], "labels": labels},
        "status": {"message": long, "containerStatuses": [waiting], "conditions": [unschedulable]},
    }
    child = project_pod(msgspec.Raw(json.dumps(pod).encode()))
    assert len(msgspec.json.encode(child)) < 15_000


class Asking(RecordingClient):
    """A client that notes which jobs are asked for."""

    def __init__(self, credentials):
        super().__init__(credentials)
        self.asked = []

    async def get(self, path, *args, **kwargs):
        self.asked.append(path)
        return await super().get(path, *args, **kwargs)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [1_000, 400_000])
async def test_a_job_too_large_to_be_kept_runs_to_its_end_and_no_other_costs_a_request(tmp_path, size):
    async with (
        running_server(tmp_path) as running,
        Asking(load_credentials(str(running.kubeconfig))) as client,
    ):
        w = ControllerWorld(running.api, client, running.kubeconfig)
        try:
            await w.start()
            manifest = job_with(**{f"DATA_{n}": noise(100_000, n) for n in range(size // 100_000)})
            await w.submit(manifest)
            await w.run_to_success(await w.pods(1))
            await w.state("large", "Succeeded")
            assert (f"{JOBS}/large" in client.asked) == (size > LARGEST_BODY)
            assert len([write for write in w.writes if "pods" in write[1]]) == 1
        finally:
            await w.stop()
