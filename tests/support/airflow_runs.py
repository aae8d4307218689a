"""Runs of DAGs and their tasks on a whole Airflow: how they stand, and what a user does to them."""

import json
import urllib.parse
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value
from waiting import MINUTES, eventually

if TYPE_CHECKING:
    from airflow_server import AirflowServer

OVER = ("success", "failed", "skipped", "upstream_failed")


class Run:
    """One run of a DAG."""

    def __init__(self, server: "AirflowServer", dag_id: str, run_id: str) -> None:
        self.server = server
        self.dag_id = dag_id
        self.run_id = run_id

    @property
    def path(self) -> str:
        return f"{self.server.api}/dags/{self.dag_id}/dagRuns/{urllib.parse.quote(self.run_id)}"

    @property
    def selector(self) -> str:
        """What finds the MXJobs of its tasks by their labels."""
        return f"run_id={make_safe_label_value(self.run_id)},dag_id={self.dag_id}"

    def task(self, task_id: str = "train", map_index: int = -1) -> "Task":
        return Task(self, task_id, map_index)

    def states(self, *columns: str) -> dict[tuple[str, int], tuple[Any, ...]]:
        """The state, or other columns, of the run's task instances, by task and map index."""
        chosen = ", ".join(("task_id", "map_index", *(columns or ("state",))))
        return {(task, index): tuple(rest) for task, index, *rest in self._read(f"select {chosen} from task_instance")}

    def wait(self, state: str) -> None:
        """Wait until the run itself is in this state, which the scheduler writes a moment after its last task's."""

        def look() -> bool:
            self.server.check()
            ((found,),) = self._read("select state from dag_run")
            if found in ("success", "failed") and found != state:
                pytest.fail(f"the run of {self.dag_id} ended as {found}: {self.states()}")
            return bool(found == state)

        eventually(look, within=MINUTES)

    def began_long_ago(self) -> None:
        """Have Airflow find that the run takes longer than its `dagrun_timeout`."""
        query = "update dag_run set start_date = start_date - interval '1 day' where run_id = %s and dag_id = %s"
        self.server.database.rows(f"{query} returning 1", [self.run_id, self.dag_id])

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        """From Airflow's database: each question to its API server costs a twentieth of a second of processor time."""
        return self.server.database.rows(f"{query} where run_id = %s and dag_id = %s", [self.run_id, self.dag_id])


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
        """The task instance as Airflow's REST API shows it."""
        found: dict[str, Any] = self._ask("GET", self.path)
        return found

    def look(self) -> "Seen":
        """How the task stands."""
        found = self.run.states("state", "try_number", "pid").get((self.task_id, self.map_index))
        return Seen(*found) if found else Seen(None, 0, None)

    def wait(self, *states: str, try_number: int | None = None) -> "Seen":
        """How the task stands, once it is in one of these states."""
        seen: list[tuple[str | None, int]] = []

        def look() -> Seen | None:
            self.run.server.check()
            found = self.look()
            now = (found.state, found.try_number)
            if not seen or seen[-1] != now:
                seen.append(now)
            fits = found.state in states and try_number in (None, found.try_number)
            over = found.state in OVER and found.state not in states
            return found if fits or over else None

        try:
            found: Seen = eventually(look, within=MINUTES)
            assert found.state in states
        except AssertionError as e:
            raise AssertionError(f"{self.task_id} went {seen}, not to {states}\n{self.story()}") from e
        return found

    def is_given_up_on(self) -> None:
        """Have Airflow find that nothing was heard of the task for longer than it waits."""
        where = "where run_id = %s and dag_id = %s and task_id = %s and map_index = %s"
        key = [self.run.run_id, self.run.dag_id, self.task_id, self.map_index]
        set_back = "set last_heartbeat_at = last_heartbeat_at - interval '1 day'"
        self.run.server.database.rows(f"update task_instance {set_back} {where} returning 1", key)

    def deferred(self, times: int = 1) -> None:
        """Wait until the task is deferred, and the scheduler has noticed: this try's first, or a later time.

        Airflow's scheduler fails a task that resumes before that (apache/airflow#72716).
        """
        found = self.wait("deferred")
        key = f"dag_id={self.run.dag_id!r}, task_id={self.task_id!r}, run_id={self.run.run_id!r}"
        key += f", try_number={found.try_number}, map_index={self.map_index}"
        eventually(lambda: self.run.server.noticed(key) >= times, within=MINUTES)

    def set_state(self, state: str) -> None:
        self._ask("PATCH", self.path, {**self.run.server.change, "new_state": state})

    def clear(self) -> None:
        self.run.server.clear(self)

    def xcom(self, key: str = "return_value") -> Any:
        query = {"map_index": self.map_index, **self.run.server.xcom_query}
        return self._ask("GET", f"{self._of_all}/xcomEntries/{key}", **query)["value"]

    def shown_job(self) -> Any:
        """The MXJob among the rendered templates of the task's page; None where there is none yet."""
        return yaml.safe_load(self.get()["rendered_fields"].get("mxjob") or "null")

    def links(self) -> dict[str, str]:
        found = self._ask("GET", f"{self._of_all}/links", map_index=self.map_index)
        links: dict[str, str] = found.get("extra_links", found)  # Airflow 2 answers with the links alone
        return links

    def log(self, try_number: int | None = None) -> str:
        """The text of a try's log, of all tries if none is named; from its files, as states are from the database.

        What a trigger says that takes longer to end than Airflow waits is in the triggerer's own log instead.
        """
        folder = self.run.server.home / "logs" / f"dag_id={self.run.dag_id}" / f"run_id={self.run.run_id}"
        folder /= f"task_id={self.task_id}"
        if self.map_index >= 0:
            folder /= f"map_index={self.map_index}"
        lines = []
        for each in [try_number] if try_number is not None else range(1, self.look().try_number + 1):
            lines.append(f"-- try {each}")
            for path in sorted(folder.glob(f"attempt={each}.log*")):
                lines += [text for line in path.read_text(errors="replace").splitlines() for text in _lines(line)]
            its_own = (f"run_id={self.run.run_id} ", f"task_id={self.task_id} ", f"try_number={each}")
            strays = (self.run.server.home / "triggerer.log").read_text(errors="replace").splitlines()
            lines += [line for line in strays if all(part in f"{line} " for part in its_own)]
        return "\n".join(lines)

    def story(self) -> str:
        """How the task stands, and what its log, scheduler and triggerer say: for the error of a wait in vain."""
        scheduler, triggerer = (
            (self.run.server.home / f"{part}.log").read_text(errors="replace").splitlines()
            for part in ("scheduler", "triggerer")
        )
        said = [line for line in scheduler if self.run.run_id in line]
        lines = [f"{self.task_id}: {self.look()}", self.log(), "-- scheduler", *said, "-- triggerer", *triggerer[-100:]]
        return "\n".join(lines)

    def shown_log(self) -> str:
        """The text of the newest try's log as Airflow's REST API shows it."""
        query = {"map_index": self.map_index, "full_content": "true"}
        content = self._ask("GET", f"{self._of_all}/logs/{self.look().try_number}", **query)["content"]
        return "\n".join(entry["event"] if isinstance(entry, dict) else str(entry) for entry in content)

    @property
    def _of_all(self) -> str:
        return f"{self.run.path}/taskInstances/{self.task_id}"


class Seen(NamedTuple):
    """How a task stands."""

    state: str | None
    try_number: int
    pid: int | None


def _lines(line: str) -> list[str]:
    try:
        entry = json.loads(line)
    except ValueError:  # half of a line
        return [line]
    details = entry.get("error_detail") or ()
    return [str(entry.get("event")), *(f"{each.get('exc_type')}: {each.get('exc_value')}" for each in details)]
