"""Runs of DAGs on a whole Airflow, whose jobs end when the test says so, and the fixtures that they need."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from airflow_clusters import TargetCluster, kubernetes_target, local_target
from airflow_executors import KubernetesExecutorServer, kubernetes_executor
from airflow_runs import OVER, Task
from airflow_server import AirflowServer, airflow_server
from api_gateway import Gateway, Handler, gateway_to
from begun_tests import BegunTests, is_alone
from postgres import Postgres
from waiting import MINUTES, eventually

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state

_ROOT = Path(__file__).resolve().parents[2]
DAGS = (_ROOT / "tests" / "airflow" / "lifecycle_dags", _ROOT / "dags" / "sweep_digits.py")
MODES = ("deferred", "waiting")
TOKEN = "a-secret-that-nobody-may-see"
TRIGGER = "(trigger)"
"""In the user agent of what triggers ask, and of nothing that workers ask."""
AT_ONCE = 4
"""How many tests that are begun together run at once."""
_UNANSWERED = "Airflow does not say how the task stands"
_numbers = itertools.count()


class GatedRun:
    """A run of a DAG, whose tasks reach their cluster through a gate of their own."""

    def __init__(self, airflow: AirflowServer, cluster: TargetCluster, namespace: str, gateway: Gateway) -> None:
        self.cluster = cluster
        self.gateway = gateway
        self.gate = gateway.folder / "gate"
        self._airflow = airflow
        self._namespace = namespace

    def start(self, dag_id: str) -> None:
        self.connection = f"cluster-{next(_numbers)}"
        self._airflow.connect(self.connection, self.gateway.kubeconfig, self._namespace)
        self.dag_run = self._airflow.trigger(dag_id, gate=str(self.gate), connection=self.connection)
        self.train = self.dag_run.task("train")

    def jobs(self) -> dict[str, dict[str, Any]]:
        return {job["metadata"]["uid"]: job for job in self.cluster.jobs(self._namespace, self.dag_run.selector)}

    def holder(self) -> str:
        """The token that stands in the one job there is."""
        (job,) = self.jobs().values()
        return str(job["metadata"]["annotations"][names.HOLDER_ANNOTATION])

    def uids(self) -> set[str]:
        return set(self.jobs())

    def the_job(self) -> str:
        """The uid of the one job that there is and that is not being deleted, once its pod runs."""

        def look() -> str | None:
            task, jobs = self.train.look(), self.jobs()
            if task.state in OVER and all(job_state(job) in TERMINAL for job in jobs.values()):
                pytest.fail(f"the task ended as {task.state}, and none of its jobs will run\n{self.train.log()}")
            stay = {uid: job for uid, job in jobs.items() if "deletionTimestamp" not in job["metadata"]}
            running = [uid for uid, job in stay.items() if job_state(job) == "Running"]
            return running[0] if len(running) == 1 else None

        uid: str = eventually(look, within=MINUTES)
        return uid

    def in_progress(self, deferrals: int = 1) -> str:
        """The uid of the job, once it runs and its task waits for it: has been deferred so often, or just waits."""
        uid = self.the_job()
        if self.dag_run.dag_id.startswith("waiting"):
            self.train.wait("running")
            return uid
        self.train.deferred(deferrals)
        # A trigger that has not started yet is not told when a user ends its task: docs/airflow.md.
        path = f"/mxjobs/{self.jobs()[uid]['metadata']['name']}"
        eventually(lambda: any(TRIGGER in each.agent and each.path.endswith(path) for each in self.gateway.asked))
        return uid

    def replaced(self, old: str) -> str:
        """The uid of the job that its task waits for in place of an old one, which is gone."""
        self.sees(lambda uids: len(uids - {old}) == 1 and old not in uids)
        return self.in_progress()

    def has_no_job(self) -> None:
        """Wait until all its jobs are gone."""
        self.sees(lambda uids: not uids)

    def sees(self, holds: Callable[[set[str]], bool]) -> None:
        """Wait until the uids of its jobs are as they should be; what Airflow made of the task is in the error."""
        try:
            eventually(lambda: holds(self.uids()))
        except AssertionError as e:
            jobs = {uid: job_state(job) for uid, job in self.jobs().items()}
            raise AssertionError(f"the jobs are {jobs}\n{self.train.story()}") from e

    def end(self, code: int = 0) -> None:
        self.cluster.end(self.gate, self._namespace, self.dag_run.selector, code)

    def hold(self) -> None:
        """Let pods that start from now on wait again."""
        self.gate.unlink(missing_ok=True)

    def succeed(self) -> Any:
        self.end()
        return self.train.wait("success")

    def creations(self) -> int:
        """How many jobs were asked for."""
        return sum(asked.method == "POST" for asked in self.gateway.writes("/mxjobs"))

    def deletions(self) -> list[str]:
        """The uids that were asked to be deleted; each deletion names one."""
        return [
            asked.body["preconditions"]["uid"] for asked in self.gateway.writes("/mxjobs") if asked.method == "DELETE"
        ]


class AirflowWorld:
    """A whole Airflow and a cluster, for one test."""

    def __init__(self, airflow: AirflowServer, cluster: TargetCluster, folder: Path) -> None:
        self.airflow = airflow
        self.cluster = cluster
        self._folder = folder
        self._gates = contextlib.ExitStack()
        self._runs: list[GatedRun] = []

    @property
    def job_pages(self) -> str:
        """The template of the addresses of the local cluster's job pages."""
        return self.cluster.job_pages

    def begin(self, dag_id: str, handler: Handler | None = None, namespace: str = "default") -> GatedRun:
        """Start a run of a DAG; what it asks of its cluster goes to `handler` first."""
        folder = self._folder / f"run-{next(_numbers)}"
        folder.mkdir()
        gateway = self._gates.enter_context(gateway_to(self.cluster.kubeconfig, folder))
        gateway.rotate(TOKEN)
        gateway.handler = handler
        run = GatedRun(self.airflow, self.cluster, namespace, gateway)
        run.start(dag_id)
        self._runs.append(run)
        return run

    def interrupt(self, dag_id: str, act: Callable[[Task], None]) -> tuple[GatedRun, str]:
        """Do what a user does to a task whose job runs; the run, and the uid of its job, which is gone.

        A worker that Airflow ends has five seconds to hear why. Where Airflow is too busy to answer, the job goes on
        (docs/airflow-events.md), and that is no failure: another run is begun.
        """
        for _ in range(3):
            run = self.begin(dag_id)
            uid = run.in_progress()
            act(run.train)
            run.sees(lambda uids: uid not in uids or _UNANSWERED in run.train.log())  # noqa: B023
            if uid not in run.uids():
                return run, uid
        pytest.fail(f"Airflow did not answer in three runs\n{run.train.story()}")

    def close(self) -> None:
        """Let all jobs end, and shut the gates."""
        for run in self._runs:
            run.end()
        self._gates.close()


crosswise = pytest.mark.parametrize(
    ("mode", "cluster"),
    [("deferred", "local"), pytest.param("waiting", "real", marks=pytest.mark.kubernetes)],
    indirect=["cluster"],
)
"""Each mode and each cluster once: no code of ours knows both."""


@pytest.fixture(scope="package")
def whole_airflow(
    local_cluster: Any, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowServer]:
    """A whole Airflow with the DAGs of lifecycle_dags, and the example that needs a pool."""
    home = tmp_path_factory.mktemp("airflow-whole")
    dags = home / "dags"
    dags.mkdir()
    for path in DAGS:
        (dags / path.name).symlink_to(path)
    executors = kubernetes_executor(local_cluster)
    with airflow_server(home, dags, postgres.airflow(), of=KubernetesExecutorServer, **executors) as server:
        server.connect("kubernetes_default", local_cluster.kubeconfig, "default")
        server.ask("POST", "/api/v2/pools", {"name": "gpus", "slots": 2, "include_deferred": True})
        yield server


@pytest.fixture(scope="package")
def local(local_cluster: Any) -> TargetCluster:
    """The local cluster."""
    return local_target(local_cluster)


@pytest.fixture(scope="package")
def real(kubernetes: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TargetCluster]:
    """A real Kubernetes API with our controller."""
    with kubernetes_target(kubernetes, tmp_path_factory.mktemp("controller") / "log") as cluster:
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> TargetCluster:
    """The cluster that answers Airflow's questions."""
    found: TargetCluster = request.getfixturevalue(getattr(request, "param", "local"))
    return found


def begun_on(
    airflow: AirflowServer,
    clusters: Mapping[str, TargetCluster],
    items: Sequence[pytest.Function],
    tmp_path_factory: pytest.TempPathFactory,
) -> BegunTests:
    """Begin tests together on one Airflow."""

    def world_for(item: pytest.Function) -> contextlib.closing[AirflowWorld]:
        if is_alone(item):
            airflow.restore()
        folder = tmp_path_factory.mktemp("worlds")
        return contextlib.closing(AirflowWorld(airflow, clusters[_cluster_of(item)], folder))

    return BegunTests(items, world_for, AT_ONCE)


@pytest.fixture(scope="package")
def begun(
    request: pytest.FixtureRequest, whole_airflow: AirflowServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BegunTests]:
    """The tests that are begun together."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    items = [item for item in items if {"world", "whole_airflow"} <= {*item.fixturenames}]
    clusters: dict[str, TargetCluster] = {}
    for name in {_cluster_of(item) for item in items}:
        with contextlib.suppress(pytest.skip.Exception):  # the tests themselves say it
            clusters[name] = request.getfixturevalue(name)
    items = [item for item in items if _cluster_of(item) in clusters]
    with begun_on(whole_airflow, clusters, items, tmp_path_factory) as running:
        yield running


def _cluster_of(item: pytest.Function) -> str:
    callspec = getattr(item, "callspec", None)
    name: str = callspec.params.get("cluster", "local") if callspec else "local"
    return name


@pytest.fixture
def world(request: pytest.FixtureRequest, cluster: TargetCluster, begun: BegunTests) -> Iterator[Any]:
    """What a test begins its runs in."""
    with begun.turn(request.node) as world:
        yield world
