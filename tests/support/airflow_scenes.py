"""Runs of DAGs on a whole Airflow, whose jobs end when the test says so, and the fixtures that they need."""

import json
from pathlib import Path

import pytest
from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value
from airflow_server import airflow_server
from airflow_server import eventually_in_airflow as eventually
from airflow_sites import LocalSite, kubernetes_site, objects
from api_gateway import gateway_to

from mxnet_operator.api.conditions import job_state

DAGS = Path(__file__).resolve().parents[1] / "airflow" / "lifecycle_dags"
MODES = ("deferred", "waiting")
ALL_DAGS = (
    *(f"{mode}{kind}" for mode in MODES for kind in ("", "_timed", "_startup")),
    *("deferred_impatient", "deferred_ttl", "deferred_suspended", "deferred_kept", "deferred_mapped"),
    *("pooled", "detached"),
)
TOKEN = "a-secret-that-nobody-may-see"


@pytest.fixture(scope="session")
def gateway(local_cluster, tmp_path_factory):
    """The gate between Airflow and the cluster."""
    with gateway_to(local_cluster.kubeconfig, tmp_path_factory.mktemp("gateway")) as gateway:
        gateway.rotate(TOKEN)
        yield gateway


@pytest.fixture(scope="session")
def job_pages(local_cluster):
    """The template of the addresses of the local cluster's job pages."""
    return json.loads(local_cluster.mxjob("local", "status", "--json").stdout)["jobPages"]


@pytest.fixture(scope="session")
def live(gateway, job_pages, tmp_path_factory):
    """A whole Airflow with the DAGs of lifecycle_dags."""
    home = tmp_path_factory.mktemp("airflow-live")
    environment = {"KUBECONFIG": str(gateway.kubeconfig), "AIRFLOW__MXNET__JOB_URL_TEMPLATE": job_pages}
    with airflow_server(home, DAGS, **environment) as server:
        server.run("pools", "set", "gpus", "2", "for tests", "--include-deferred")
        server.wait_for_dags(*ALL_DAGS)
        yield server


@pytest.fixture(scope="session")
def kubernetes_cluster(kubernetes, tmp_path_factory):
    """A real Kubernetes API with our controller."""
    with kubernetes_site(kubernetes, tmp_path_factory.mktemp("controller") / "log") as site:
        yield site


@pytest.fixture
def site(request, gateway, local_cluster):
    """The cluster that answers Airflow's questions."""
    wanted = getattr(request, "param", "local")
    site = request.getfixturevalue("kubernetes_cluster") if wanted == "kubernetes" else LocalSite(local_cluster)
    gateway.behind = site.kubeconfig
    yield site
    gateway.behind = local_cluster.kubeconfig


class Scene:
    """A run of a DAG."""

    def __init__(self, live, gateway, site, gate, dag_id):
        self.gateway, self.site, self.gate = gateway, site, gate
        self.run = live.trigger(dag_id, gate=str(gate))
        self.train = self.run.task("train")
        self.selector = f"run_id={make_safe_label_value(self.run.run_id)}"

    def jobs(self):
        return {job["metadata"]["uid"]: job for job in objects(self.site, "mxjobs", "-l", self.selector)}

    def uids(self):
        return set(self.jobs())

    def the_job(self):
        """The uid of the one job that there is, once its pod runs."""

        def look():
            running = [uid for uid, job in self.jobs().items() if job_state(job) == "Running"]
            return running[0] if len(running) == 1 else None

        return eventually(look)

    def end(self, code=0):
        pods = [pod["metadata"]["name"] for pod in objects(self.site, "pods", "-l", self.selector)]
        self.site.end(self.gate, pods, code)

    def succeed(self):
        self.end()
        return self.train.wait("success")

    def creations(self):
        """How many jobs were asked for on behalf of this run."""
        label = make_safe_label_value(self.run.run_id)
        return sum(
            1
            for asked in self.gateway.writes("/mxjobs")
            if asked.method == "POST" and asked.body["metadata"]["labels"]["run_id"] == label
        )

    def deletions(self):
        """The uids that were asked to be deleted; each deletion names one."""
        return [
            asked.body["preconditions"]["uid"] for asked in self.gateway.writes("/mxjobs") if asked.method == "DELETE"
        ]


@pytest.fixture
def begin(live, gateway, site, tmp_path):
    """Starts a run of a DAG; the gate is open again when the test ends."""
    scenes = []

    def begin(dag_id):
        scenes.append(Scene(live, gateway, site, tmp_path / f"gate-{len(scenes)}", dag_id))
        return scenes[-1]

    yield begin
    gateway.down, gateway.handler = False, None
    gateway.rotate(TOKEN)
    for scene in scenes:
        scene.end()
