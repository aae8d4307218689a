"""Files of a job on a cluster: what a replica's tar may write here, and the pod that reads a claim."""

import io
import tarfile

import pytest

from mxnet_operator.api import names
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.running.cluster_files import bring_home_from_claim, copy_from_cluster, with_output_folders
from mxnet_operator.kube.errors import CommandFailedError

CLAIM = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
MOUNTED = {"name": "models", "mountPath": "/models"}


@pytest.fixture
def job():
    container = {"name": names.CONTAINER, "image": "i:1", "volumeMounts": [MOUNTED]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container], "volumes": [CLAIM]}}}
    metadata = {"name": "a", "namespace": "team", "uid": "1"}
    spec = {"mxReplicaSpecs": {names.WORKER: worker}}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec}


class Cluster:
    """Client of a cluster whose one pod of ours runs, and whose containers answer every command with an archive."""

    def __init__(self, archive=b"", error=None):
        self.archive, self.error = archive, error
        self.created, self.deleted, self.executed = [], [], []

    async def create(self, path, pod):
        self.created.append(pod)
        running = {"phase": "Running", "containerStatuses": [{"name": names.CONTAINER, "state": {"running": {}}}]}
        self.pod = {**pod, "metadata": {**pod["metadata"], "name": "a-files-x", "uid": "2"}, "status": running}
        return self.pod

    async def delete(self, path, options):
        self.deleted.append(path)

    async def list(self, path, params):
        return {"metadata": {"resourceVersion": "1"}, "items": [self.pod]}

    async def execute(self, path, container, command):
        self.executed.append(path)
        yield self.archive
        if self.error:
            raise self.error


def archive(*members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size, member.mode = kind, target, 0, 0o6777
            if kind == tarfile.REGTYPE:
                member.size, member.linkname = len(target), ""
            made.addfile(member, io.BytesIO(target.encode()))
    return file.getvalue()


FILE, LINK, HARD, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
HOSTILE = {
    "leads up": [("../evil", FILE, "x")],
    "leads up below": [("model/../../../evil", FILE, "x")],
    "link to a folder of this machine": [("model", LINK, "OUTSIDE"), ("model/evil", FILE, "x")],
    "link upwards": [("model", LINK, "../../outside"), ("model/evil", FILE, "x")],
    "hard link out": [("model", HARD, "OUTSIDE/secret")],
    "device": [("model", DEVICE, "")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
async def test_what_a_replica_s_tar_would_write_elsewhere_is_refused_and_nothing_is_left(job, tmp_path, members):
    outside, here = tmp_path / "outside", tmp_path / "here"
    for folder in (outside, here):
        folder.mkdir()
    (outside / "secret").write_text("mine")
    members = [(name, kind, target.replace("OUTSIDE", str(outside))) for name, kind, target in members]
    cluster = Cluster(archive(*members))

    with pytest.raises(CommandError):
        await copy_from_cluster(cluster, job, "worker-0", "/models/model", here / "model", pods=[])

    assert {each.name for each in tmp_path.rglob("*")} == {"outside", "here", "secret"}
    assert len(cluster.deleted) == 1


async def test_an_absolute_name_lands_in_the_copy_and_no_file_gets_rights_from_its_archive(job, tmp_path):
    members = archive(("/models/model", FILE, "x"), ("model", FILE, "weights"))
    await copy_from_cluster(Cluster(members), job, "worker-0", "/models/model", tmp_path / "model", pods=[])

    assert (tmp_path / "model").read_text() == "weights"
    assert (tmp_path / "model").stat().st_mode & 0o7022 == 0
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


async def test_the_pod_that_reads_a_claim_can_not_write_it_and_goes_with_its_job_or_after_an_hour(job, tmp_path):
    cluster = Cluster(archive(("model", FILE, "x")))
    await copy_from_cluster(cluster, job, "worker-0", "/models/model", tmp_path / "model", pods=[])
    of_output = with_output_folders(job)
    (tmp_path / "out").mkdir()
    home = Cluster(archive(("a-worker-0", tarfile.DIRTYPE, ""), ("a-worker-0/m", FILE, "x")))
    await bring_home_from_claim(home, of_output, tmp_path / "out")

    for pod in (*cluster.created, *home.created):
        (container,) = pod["spec"]["containers"]
        assert [mount["readOnly"] for mount in container["volumeMounts"]] == [True]
        assert (pod["spec"]["activeDeadlineSeconds"], container["command"]) == (3600, ["sleep", "3600"])
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": "a", "uid": "1"}
        assert "labels" not in pod["metadata"]  # no controller takes it for a replica
    assert (tmp_path / "out/worker-0/m").read_text() == "x"
    assert cluster.deleted == home.deleted == ["/api/v1/namespaces/team/pods/a-files-x"]


@pytest.mark.parametrize("error", [CommandFailedError("tar: no such file"), KeyboardInterrupt()])
async def test_the_pod_is_deleted_however_the_copy_ends(job, tmp_path, error):
    cluster = Cluster(b"not a tar", error)
    with pytest.raises((CommandError, KeyboardInterrupt)):
        await copy_from_cluster(cluster, job, "worker-0", "/models/model", tmp_path / "model", pods=[])
    assert (len(cluster.created), len(cluster.deleted), list(tmp_path.iterdir())) == (1, 1, [])
