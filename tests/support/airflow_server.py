"""A whole Airflow for tests: its parts as processes, with a PostgreSQL database of their own."""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from airflow_runs import Run, Task
from postgres import Database
from program_processes import held_port
from waiting import MINUTES, SECONDS, eventually

PARTS = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),  # the API server reads logs from this machine's files
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
"""With the command of each; Airflow 3's."""
_TRIGGERER_THRESHOLD = 10
"""Seconds without a heartbeat after which another triggerer takes over."""


class AirflowServer:
    """A running Airflow, spoken to through its REST API as its own web page does.

    Args:
        home: Its folder, AIRFLOW_HOME.
        dags: The folder with its DAGs.
        database: Its database, migrated.
        python: The Python that has Airflow.
        environment: Of its processes.
    """

    parts: ClassVar[Mapping[str, Sequence[str]]] = PARTS
    api: ClassVar[str] = "/api/v2"
    health: ClassVar[str] = "/api/v2/monitor/health"
    xcom_query: ClassVar[Mapping[str, str]] = {"deserialize": "true"}
    """What makes the API show an XCom as JSON and not as a text."""
    change: ClassVar[Mapping[str, Any]] = {}
    """What the API is to be told beside a task's new state."""
    _new_run: ClassVar[Mapping[str, Any]] = {"logical_date": None}

    def __init__(
        self, home: Path, dags: Path, database: Database, python: str = sys.executable, **environment: str
    ) -> None:
        self.python = python
        self.home = home
        self.database = database
        self._held = held_port()
        self.port: int = self._held.getsockname()[1]
        own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.environment = {
            **own,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # Else each part that finds no airflow.cfg yet makes one, with a key of its own.
            "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(b"for tests, and 32 bytes in size.").decode(),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "16",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{self.port}",
            "AIRFLOW__API__SECRET_KEY": "for tests",
            "AIRFLOW__API_AUTH__JWT_SECRET": "for tests, and long enough for the signature of a token: 0123456789",
            # Its default, a second, lets a busy scheduler fail tasks that resume (docs/facts/airflow.md).
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": str(_TRIGGERER_THRESHOLD),
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
            # Or a file that a test changes within half a minute stays as it was read before: know_dags reads it once.
            "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "250",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.url,
            "AIRFLOW__API__WORKER_TIMEOUT": "300",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
            "PYTHONWARNINGS": "ignore",
            **environment,
        }
        # Tasks are forked from what has imported this: the Kubernetes clients alone take seconds of processor time.
        preloaded = ("kubernetes.client", "kubernetes_asyncio.client", "mxnet_provider.operators.mxnet_job")
        settings = home / "config" / "airflow_local_settings.py"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text("".join(f"import {each}\n" for each in preloaded))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._crashed: list[subprocess.Popen[bytes]] = []
        self._told_to_end: set[str] = set()
        self._noticed = Noticed(home / "scheduler.log")
        self._token = ""
        self._triggering = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, part: str, name: str = "") -> int:
        """Start one of PARTS in a session of its own, and return that's leader; another of the same part has a name."""
        name = name or part
        assert name not in self._processes
        port = ("--port", str(self.port)) if part == "api-server" else ()
        with (self.home / f"{part}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [self.python, "-m", "airflow", *self.parts[part], *port],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=self.environment,
                start_new_session=True,
            )
        return self._processes[name].pid

    def check(self) -> None:
        """Fail, and don't wait for what can't come any more, where a part has ended that nobody has ended."""
        for part, process in self._processes.items():
            if part not in self._told_to_end and process.poll() is not None:
                log = (self.home / f"{part}.log").read_text(errors="replace")[-3000:]
                pytest.fail(f"Airflow's {part} has ended: {log}")

    def send(self, name: str, how: int) -> None:
        """Send a signal to all processes of a part."""
        if how not in (signal.SIGSTOP, signal.SIGCONT):
            self._told_to_end.add(name)
        os.killpg(self._processes[name].pid, how)

    def pid(self, part: str) -> int:
        """The process of a part that runs."""
        assert self._processes[part].poll() is None, (self.home / f"{part}.log").read_text()[-3000:]
        return self._processes[part].pid

    def stop(self, part: str, how: int = signal.SIGTERM) -> None:
        """End a part and all processes of its group."""
        process = self._processes.pop(part)
        self._told_to_end.discard(part)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)

    def replace(self, part: str, name: str) -> None:
        """Take another process of a part, which was started by this name, for the one that has been stopped."""
        self._processes[part] = self._processes.pop(name)

    def crash(self, part: str) -> None:
        """Kill the main process of a part; its workers live on until the end of the tests."""
        process = self._processes.pop(part)
        self._crashed.append(process)
        process.kill()
        process.wait(SECONDS)

    def restore(self) -> None:
        """Have each part run once, whatever a test that failed has left."""
        for name, process in [*self._processes.items()]:
            if name not in self.parts or process.poll() is not None:
                self.stop(name)
            else:
                self.send(name, signal.SIGCONT)
        if missing := [part for part in self.parts if part not in self._processes]:
            for part in missing:
                self.start(part)
            self.ready()

    def living_triggerers(self) -> int:
        """How many triggerers Airflow has heard of within its health threshold."""
        lately = "latest_heartbeat > now() - %s * interval '1 second'"
        where = f"where job_type = 'TriggererJob' and end_date is null and {lately}"
        return len(self.database.rows(f"select 1 from job {where}", [_TRIGGERER_THRESHOLD]))

    def killed_triggerers_are_given_up_on(self) -> None:
        """Have Airflow find that nothing was heard of a triggerer that was killed for longer than it waits.

        One that starts before that drops the triggers of tasks that have ended meanwhile, and no `on_kill` is called.
        """
        self._unheard_of("TriggererJob")

    def killed_schedulers_are_given_up_on(self) -> None:
        """Have Airflow find that nothing was heard of a scheduler that was killed for longer than it waits.

        What becomes of its workers' tasks is asked when a scheduler starts, and then every five minutes.
        """
        self._unheard_of("SchedulerJob")

    def _unheard_of(self, kind: str) -> None:
        set_back = "set latest_heartbeat = latest_heartbeat - interval '1 day'"
        where = f"where job_type = '{kind}' and end_date is null"
        assert self.database.rows(f"update job {set_back} {where} returning 1")

    def stop_all(self) -> None:
        """End every part, at once: in an orderly way it would take Airflow a minute, with no tasks left."""
        for part in list(self._processes):
            self.stop(part, signal.SIGKILL)
        for process in self._crashed:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._held.close()

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run an `airflow` command that must end with this code; what it printed."""
        done = subprocess.run(
            [self.python, "-m", "airflow", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MINUTES,
            cwd=self.home,
            env=self.environment,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Ask the REST API; fails with what it said where it refuses."""
        url = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                text = response.read()
        except urllib.error.HTTPError as e:
            with e:
                raise AssertionError(f"{method} {path}: {e.code} {e.read().decode(errors='replace')}") from e
        return json.loads(text) if text else None

    def ready(self) -> None:
        """Wait until every part says that it is healthy, and log in."""

        def healthy() -> bool:
            self.check()
            try:
                found = self.ask("GET", self.health)
            except OSError:
                return False
            return all(found[part]["status"] == "healthy" for part in ("scheduler", "triggerer"))

        eventually(healthy)
        self._log_in()

    def know_dags(self) -> None:
        """Read the DAGs, which don't change, once."""
        self.run("dag-processor", "--num-runs", "1")

    def _log_in(self) -> None:
        self._token = self.ask("GET", "/auth/token")["access_token"]

    def noticed(self, key: str) -> int:
        """How often the scheduler has seen that its executor let go of a task instance."""
        return self._noticed.count(key)

    def connect(self, connection_id: str, kubeconfig: Path, namespace: str) -> None:
        """Make a connection to a namespace of the cluster that a kubeconfig leads to, as a user does."""
        self.ask("POST", f"{self.api}/connections", _connection(connection_id, kubeconfig, namespace))

    def clear(self, task: Task) -> None:
        """Clear a task instance, as a user does."""
        body = {
            "dry_run": False,
            "dag_run_id": task.run.run_id,
            "task_ids": [task.task_id if task.map_index < 0 else [task.task_id, task.map_index]],
            "only_failed": False,
            "only_running": False,
            "reset_dag_runs": True,
        }
        self.ask("POST", f"{self.api}/dags/{task.run.dag_id}/clearTaskInstances", body)

    def trigger(self, dag_id: str, **conf: Any) -> Run:
        """Start a run of a DAG, one at a time: where the first ones overlap, the API server may answer 500.

        SQLAlchemy walks through the attributes of TaskInstance then while another thread adds to them.
        """
        body = {**self._new_run, "conf": conf}
        with self._triggering:
            run_id = self.ask("POST", f"{self.api}/dags/{dag_id}/dagRuns", body)["dag_run_id"]
        return Run(self, dag_id, run_id)


def _connection(connection_id: str, kubeconfig: Path, namespace: str) -> dict[str, str]:
    extra = json.dumps({"kube_config_path": str(kubeconfig), "namespace": namespace})
    return {"connection_id": connection_id, "conn_type": "kubernetes", "extra": extra}


class Noticed:
    """What the scheduler's log says of its executor's events, read once however many ask."""

    # KubernetesExecutor says how the task stands, the others that their process ended well.
    _EVENT = re.compile(
        rb"Received executor event with state (?:success|deferred) for task instance TaskInstanceKey\((.*?)\)"
    )

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._seen: Counter[str] = Counter()
        self._reading = threading.Lock()

    def count(self, key: str) -> int:
        with self._reading, self._log.open("rb") as log:
            log.seek(self._read)
            whole = log.read().rpartition(b"\n")[0]
            self._read += len(whole)
            self._seen.update(match.decode() for match in self._EVENT.findall(whole))
            return self._seen[key]


@contextlib.contextmanager
def airflow_server(
    home: Path,
    dags: Path,
    database: Database,
    *,
    of: type[AirflowServer] = AirflowServer,
    python: str = sys.executable,
    **environment: str,
) -> Iterator[AirflowServer]:
    """A running Airflow whose DAGs are known, and may run; every process of it is gone when the context ends."""
    server = of(home, dags, database, python, **environment)
    try:
        for part in server.parts:
            server.start(part)
        server.know_dags()
        server.ready()
        yield server
    finally:
        server.stop_all()
