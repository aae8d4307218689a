"""A whole Airflow for tests: its four parts as processes, with a database of their own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tenacity

SECONDS = 300
PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")
_LOOK = 0.7
"""Seconds between two questions: each costs Airflow's API server a twentieth of a second of processor time."""

OVER = ("success", "failed", "skipped", "upstream_failed")


class AirflowServer:
    """A running Airflow, spoken to through its REST API as its own web page does."""

    def __init__(self, home: Path, dags: Path, **environment: str) -> None:
        self.home = home
        self.port = _free_port()
        own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.environment = {
            **own,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{self.port}",
            "AIRFLOW__API__SECRET_KEY": "for tests",
            "AIRFLOW__API_AUTH__JWT_SECRET": "for tests, and long enough for the signature of a token: 0123456789",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "250",
            "AIRFLOW__API__WORKER_TIMEOUT": "300",
            "PYTHONWARNINGS": "ignore",
            **environment,
        }
        # Tasks are forked from what has imported this: the Kubernetes clients alone take seconds of processor time.
        settings = home / "config" / "airflow_local_settings.py"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text("import kubernetes.client\nimport kubernetes_asyncio.client\n")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, part: str) -> None:
        """Start one of PARTS in a process group of its own."""
        assert part not in self._processes
        with (self.home / f"{part}.log").open("ab") as log:
            self._processes[part] = subprocess.Popen(
                [sys.executable, "-m", "airflow", part],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=self.environment,
                start_new_session=True,
            )

    def stop(self, part: str, how: int = signal.SIGTERM) -> None:
        """End a part and all processes of its group."""
        process = self._processes.pop(part)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)

    def stop_all(self) -> None:
        """End every part; they need seconds, and all at once."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for part in list(self._processes):
            self.stop(part)

    def run(self, *arguments: str) -> str:
        """Run an `airflow` command that must succeed."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=self.home,
            env=self.environment,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
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
            with urllib.request.urlopen(request, timeout=120) as response:
                text = response.read()
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{method} {path}: {e.code} {e.read().decode(errors='replace')}") from e
        return json.loads(text) if text else None

    def ready(self) -> None:
        """Wait until every part says that it is healthy, and log in."""

        def healthy() -> bool:
            for part, process in self._processes.items():
                assert process.poll() is None, (self.home / f"{part}.log").read_text()[-3000:]
            try:
                found = self.ask("GET", "/api/v2/monitor/health")
            except OSError:
                return False
            return all(found[part]["status"] == "healthy" for part in ("scheduler", "triggerer", "dag_processor"))

        eventually_in_airflow(healthy)
        self._token = self.ask("GET", "/auth/token")["access_token"]

    def wait_for_dags(self, *dag_ids: str) -> None:
        """Wait until the DAGs are known, and let them run."""
        for dag_id in dag_ids:
            eventually_in_airflow(lambda dag_id=dag_id: self._unpaused(dag_id))

    def _unpaused(self, dag_id: str) -> bool:
        try:
            self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})
        except AssertionError:
            errors = self.ask("GET", "/api/v2/importErrors")["import_errors"]
            assert not errors, errors[0]["stack_trace"]
            return False
        return True

    def trigger(self, dag_id: str, **conf: Any) -> "Run":
        """Start a run of a DAG."""
        body = {"logical_date": None, "conf": conf}
        return Run(self, dag_id, self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])


class Run:
    """One run of a DAG."""

    def __init__(self, server: AirflowServer, dag_id: str, run_id: str) -> None:
        self.server = server
        self.dag_id = dag_id
        self.run_id = run_id

    @property
    def path(self) -> str:
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{urllib.parse.quote(self.run_id)}"

    def task(self, task_id: str = "train", map_index: int = -1) -> "Task":
        return Task(self, task_id, map_index)

    def tasks(self) -> list[dict[str, Any]]:
        return list(self.server.ask("GET", f"{self.path}/taskInstances")["task_instances"])


class Task:
    """One task instance."""

    def __init__(self, run: Run, task_id: str, map_index: int) -> None:
        self.run = run
        self.task_id = task_id
        self.map_index = map_index
        self._ask = run.server.ask

    @property
    def path(self) -> str:
        own = f"{self.run.path}/taskInstances/{self.task_id}"
        return own if self.map_index < 0 else f"{own}/{self.map_index}"

    def get(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", self.path)
        return found

    def wait(self, *states: str, try_number: int | None = None) -> dict[str, Any]:
        """The task instance, once it is in one of these states."""
        seen: list[Any] = []

        def look() -> dict[str, Any] | None:
            found = self.get()
            now = (found["state"], found["try_number"])
            if not seen or seen[-1] != now:
                seen.append(now)
            fits = found["state"] in states and try_number in (None, found["try_number"])
            over = found["state"] in OVER and found["state"] not in states
            return found if fits or over else None

        try:
            found: dict[str, Any] = eventually_in_airflow(look)
            assert found["state"] in states
        except AssertionError as e:
            raise AssertionError(f"{self.task_id} went {seen}, not to {states}\n{self.log()}") from e
        return found

    def set_state(self, state: str) -> None:
        self._ask("PATCH", self.path, {"new_state": state})

    def clear(self) -> None:
        body = {
            "dry_run": False,
            "dag_run_id": self.run.run_id,
            "task_ids": [self.task_id if self.map_index < 0 else [self.task_id, self.map_index]],
            "only_failed": False,
            "only_running": False,
            "reset_dag_runs": True,
        }
        self._ask("POST", f"/api/v2/dags/{self.run.dag_id}/clearTaskInstances", body)

    def xcom(self, key: str = "return_value") -> Any:
        query = {"map_index": self.map_index, "deserialize": "true"}
        return self._ask("GET", f"{self._of_all}/xcomEntries/{key}", **query)["value"]

    def links(self) -> dict[str, str]:
        found: dict[str, str] = self._ask("GET", f"{self._of_all}/links", map_index=self.map_index)["extra_links"]
        return found

    def log(self, try_number: int | None = None) -> str:
        """The text of a try's log, of all tries if none is named."""
        tries = [try_number] if try_number is not None else range(1, self.get()["try_number"] + 1)
        lines = []
        for each in tries:
            query = {"map_index": self.map_index, "full_content": "true"}
            with contextlib.suppress(AssertionError):
                content = self._ask("GET", f"{self._of_all}/logs/{each}", **query)["content"]
                lines += [f"-- try {each}", *(line for entry in content for line in _lines(entry))]
        return "\n".join(lines)

    @property
    def _of_all(self) -> str:
        return f"{self.run.path}/taskInstances/{self.task_id}"


def _lines(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return [str(entry)]
    details = entry.get("error_detail") or ()
    return [entry["event"], *(f"{each.get('exc_type')}: {each.get('exc_value')}" for each in details)]


@contextlib.contextmanager
def airflow_server(home: Path, dags: Path, **environment: str) -> Iterator[AirflowServer]:
    """A running Airflow; every process of it is gone when the context ends."""
    server = AirflowServer(home, dags, **environment)
    server.run("db", "migrate")
    try:
        for part in PARTS:
            server.start(part)
        server.ready()
        yield server
    finally:
        server.stop_all()


def eventually_in_airflow(check: Callable[[], Any]) -> Any:
    """Call until it returns something true; fails with its last answer or error in the end."""
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(SECONDS), wait=tenacity.wait_fixed(_LOOK), reraise=True
    ):
        with attempt:
            found = check()
            assert found, f"still {found!r}"
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
