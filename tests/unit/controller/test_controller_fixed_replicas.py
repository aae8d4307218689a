"""A change of the number of workers that no rule refused: the CRD is older than the rule."""

from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted, world

from mxnet_operator.local.apiserver import validation


async def test_a_running_job_is_not_followed_not_even_by_the_pods_of_its_next_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "UPDATE_RULES", {})
    async with world(tmp_path) as w:
        await w.submit(submitted(make_mxjob("digits").worker(2).restart("ExitCode")))
        pods = await w.pods(2)
        await w.move(pods, "Running")
        await w.state("digits", "Running")
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 3}}}})).ok()
        assert "Worker from 2 to 3" in (await w.event("ReplicasChangeIgnored"))["message"]
        (await w.api.delete(f"{PODS}/digits-worker-1", {"gracePeriodSeconds": 0})).ok()

        def next_attempt(pods):
            attempts = {pod["metadata"]["labels"]["mxjob.kubeflow.org/attempt"] for pod in pods.values()}
            return len(pods) == 2 and attempts == {"1"}

        for pod in (await w.eventually(PODS, next_attempt)).values():
            variables = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
            assert variables["DMLC_NUM_WORKER"] == "2"
