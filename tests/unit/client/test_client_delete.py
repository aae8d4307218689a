"""Which job `JobClient.delete_job` deletes, on the local API server: the one that was meant, as it was read."""

from apiserver_fixtures import running_server
from builders import make_mxjob
from controller_fixtures import JOBS, submitted

from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials


async def test_a_job_of_another_uid_or_version_is_not_deleted(tmp_path):
    async with (
        running_server(tmp_path) as running,
        Client(load_credentials(str(running.kubeconfig))) as client,
    ):
        made = (await running.api.post(JOBS, submitted(make_mxjob("digits").worker(1)))).ok()["metadata"]
        jobs, uid, version = JobClient(client), made["uid"], made["resourceVersion"]

        async def is_deleted(uid, version):
            ref = JobRef(name="digits", namespace="default", uid=uid)
            return await jobs.delete_job(ref, resource_version=version)

        for other in (("of-the-last-one", None), ("of-the-last-one", version), (uid, "12345")):
            assert not await is_deleted(*other)
            assert (await running.api.get(f"{JOBS}/digits")).code == 200
        assert await is_deleted(uid, version)
        assert (await running.api.get(f"{JOBS}/digits")).code == 404
