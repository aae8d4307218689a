"""What other executors than LocalExecutor do to the worker that waits for a job: docs/airflow.md has it in a table."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
import yaml
from airflow_releases import link_provider
from airflow_runs import Task
from airflow_server import PARTS, AirflowServer, airflow_server
from airflow_world import DAGS, MODES, begun_on
from cluster_fixtures import LocalCluster
from kubernetes_programs import MissingProgramError
from left_overs import folder_prefix
from locked_python import locked_python
from postgres import Postgres
from real_node.debian import unpacked
from waiting import SECONDS, eventually

from mxnet_operator.local.images import BASE_IMAGE

PACKAGES = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")


@contextlib.contextmanager
def redis_broker() -> Iterator[str]:
    """The address of a running server, as Celery takes it; the test is skipped where there is none, or fails in CI."""
    program, environment = _program()
    # Not in pytest's folders: a socket's path is at most some 100 characters long.
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), dir="/tmp") as folder:
        socket = Path(folder) / "socket"
        options = {"port": "0", "unixsocket": str(socket), "dir": folder, "save": "", "logfile": f"{folder}/log"}
        server = subprocess.Popen(
            [program, *(word for name, value in options.items() for word in (f"--{name}", value))],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
        )
        try:
            eventually(socket.exists)
            yield f"redis+socket://{socket}"
        finally:
            server.terminate()
            server.wait(SECONDS)


def _program() -> tuple[str, dict[str, str]]:
    """The path of the program, and the variables that it needs."""
    if installed := shutil.which("redis-server"):
        return installed, {}
    try:
        usr = unpacked(PACKAGES) / "usr"
    except MissingProgramError as error:
        pytest.fail(str(error), pytrace=False) if os.environ.get("CI") else pytest.skip(str(error))
    (library,) = usr.glob("lib/*/liblzf.so.1")
    return str(usr / "bin" / "redis-server"), {"LD_LIBRARY_PATH": str(library.parent)}


WORKERS = "airflow-workers"
"""The namespace of KubernetesExecutor's pods."""


class KubernetesExecutorServer(AirflowServer):
    """An Airflow whose workers are pods of the local cluster: processes that see this machine's files."""

    def __init__(self, home: Path, *args: Any, **environment: Any) -> None:
        template = home / "pod_template.yaml"
        environment["AIRFLOW__KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE"] = str(template)
        super().__init__(home, *args, **environment)
        given = {name: value for name, value in self.environment.items() if name.startswith(("AIRFLOW", "PYTHON"))}
        given |= {
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",  # as in the template that Airflow brings
            "PATH": f"{Path(self.python).parent}:/usr/bin:/bin",  # the command that the executor gives is `python`
            "MXJOB_FAILFAST": "off",
        }
        container = {"name": "base", "env": [{"name": name, "value": value} for name, value in given.items()]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "worker"},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        template.write_text(yaml.safe_dump(pod))


@contextlib.contextmanager
def kubernetes_executor_airflow(
    home: Path, dags: Path, postgres: Postgres, cluster: LocalCluster
) -> Iterator[AirflowServer]:
    """A running Airflow with KubernetesExecutor, on the local cluster."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKERS}})
    repository, _, tag = BASE_IMAGE.partition(":")
    environment = {
        "CORE__EXECUTOR": "KubernetesExecutor",
        "KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "KUBERNETES_EXECUTOR__CONFIG_FILE": str(cluster.kubeconfig),
        "KUBERNETES_EXECUTOR__NAMESPACE": WORKERS,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": repository,
        "KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG": tag,
    }
    with airflow_server(
        home,
        dags,
        postgres.airflow(),
        of=KubernetesExecutorServer,
        **{f"AIRFLOW__{name}": value for name, value in environment.items()},
    ) as server:
        yield server


class CeleryExecutorServer(AirflowServer):
    """An Airflow with one Celery worker, which takes eight tasks at a time."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        **PARTS,
        "worker": ("celery", "worker", "--skip-serve-logs", "--concurrency", "8"),
    }


@contextlib.contextmanager
def celery_executor_airflow(home: Path, dags: Path, postgres: Postgres) -> Iterator[AirflowServer]:
    """A running Airflow with CeleryExecutor."""
    python = str(locked_python("airflow-celery"))
    packages = home / "packages"
    link_provider(packages)
    with redis_broker() as broker:
        environment = {
            "CORE__EXECUTOR": "CeleryExecutor",
            "CELERY__BROKER_URL": broker,
        }
        with airflow_server(
            home,
            dags,
            postgres.airflow(python),
            of=CeleryExecutorServer,
            python=python,
            PYTHONPATH=str(packages),
            **{f"AIRFLOW__{name}": value for name, value in environment.items()},
        ) as server:
            yield server


pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow]


@pytest.fixture(scope="module", params=["kubernetes", "celery"])
def executor(request, local_cluster, postgres, tmp_path_factory):
    """A whole Airflow with this executor, which all its tests share."""
    given = tmp_path_factory.mktemp("airflow"), DAGS[0], postgres
    if request.param == "celery":
        airflow = celery_executor_airflow(*given)
    else:
        airflow = kubernetes_executor_airflow(*given, local_cluster)
    with airflow as server:
        server.executor = request.param
        yield server


with_celery = pytest.mark.parametrize("executor", ["celery"], indirect=True)
with_kubernetes = pytest.mark.parametrize("executor", ["kubernetes"], indirect=True)


@pytest.fixture(scope="module")
def begun(request, executor, local, tmp_path_factory):
    """The tests on this Airflow, begun together."""
    items = [item for item in request.session.items if item.path == request.path]
    items = [item for item in items if item.callspec.params["executor"] == executor.executor]
    with begun_on(executor, {"local": local}, items, tmp_path_factory) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_a_task_returns_the_result_of_its_job_and_shows_its_log(world, mode):
    run = world.begin(mode)
    uid = run.in_progress()
    run.succeed()
    returned = run.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in run.train.log()
    assert (run.creations(), run.deletions()) == (1, [])


def test_a_task_that_a_user_ends_ends_its_job(world):
    run, uid = world.interrupt("waiting", lambda task: task.set_state("failed"))
    run.has_no_job()
    assert uid in run.deletions()
    assert run.creations() == 1


def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(world):
    run, old = world.interrupt("waiting", Task.clear)
    new = run.replaced(old)
    run.succeed()
    assert run.train.xcom()["uid"] == new
    assert new not in run.deletions()
    assert run.creations() == 2


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(world):
    run = world.begin("waiting")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    if world.airflow.executor == "kubernetes":  # the pod ends well all the same, so only the heartbeat tells
        eventually(lambda: worker_pods(world, run) == [])
        run.train.is_given_up_on()
    run.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.uids()) == (1, {uid})


@with_celery
@pytest.mark.alone
def test_a_worker_that_is_stopped_waits_for_its_task(world):
    """A warm shutdown: the signal goes to the worker's main process alone."""
    run = world.begin("waiting")
    uid = run.in_progress()
    log = world.airflow.home / "worker.log"
    os.kill(world.airflow.pid("worker"), signal.SIGTERM)
    eventually(lambda: "Warm shutdown" in log.read_text())
    assert run.succeed().try_number == 1
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])
    world.airflow.stop("worker")
    world.airflow.start("worker")


@with_celery
@pytest.mark.alone
def test_a_worker_whose_processes_are_all_signalled_leaves_its_job_to_the_retry(world):
    """As systemd does with a unit's control group unless it is told otherwise."""
    run = world.begin("waiting")
    uid = run.in_progress()
    pid = run.train.look().pid
    world.airflow.send("worker", signal.SIGTERM)
    eventually(lambda: not psutil.pid_exists(pid))
    world.airflow.stop("worker")
    world.airflow.start("worker")
    run.train.wait("running", try_number=2)
    assert run.succeed().try_number == 2
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


@with_celery
@pytest.mark.alone
def test_a_worker_that_is_killed_with_its_pool_leaves_its_job_to_the_retry(world):
    run = world.begin("waiting")
    uid = run.in_progress()
    world.airflow.stop("worker", signal.SIGKILL)
    world.airflow.start("worker")
    run.train.is_given_up_on()
    run.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    assert run.succeed().try_number == 2
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


def worker_pods(world, run):
    """The pods that run the tasks of a run."""
    selector = f"dag_id={run.dag_run.dag_id},run_id={run.dag_run.selector.partition('=')[2].partition(',')[0]}"
    return [pod.metadata.name for pod in world.cluster.core.list_namespaced_pod(WORKERS, label_selector=selector).items]


def delete_worker(world, run, **options):
    """Delete the pod that runs the task of a run."""
    (pod,) = worker_pods(world, run)
    world.cluster.core.delete_namespaced_pod(pod, WORKERS, body=options)


@with_kubernetes
@pytest.mark.parametrize("options", [{}, {"gracePeriodSeconds": 0}], ids=["drained", "at once"])
def test_a_worker_s_pod_that_is_deleted_leaves_its_job_to_the_retry(world, options):
    run = world.begin("waiting")
    uid = run.in_progress()
    delete_worker(world, run, **options)
    run.train.wait("running", try_number=2)
    assert run.succeed().try_number == 2
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


@with_kubernetes
def test_a_worker_s_pod_that_dies_is_followed_by_one_that_goes_on_with_its_job(world):
    """As for want of memory: the container's first process is killed, and all others go with it."""
    run = world.begin("waiting")
    uid = run.in_progress()
    supervisor = Path(f"/proc/{run.train.look().pid}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(supervisor), signal.SIGKILL)
    run.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.uids()) == (1, {uid})
