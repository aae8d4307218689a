"""How tests are dealt out to pytest's workers: a file at a time, since a file's tests share what they start.

Unit tests come first, then what starts MXNet, TVM or Airflow, then what needs programs that Go may still be building.
Of each of these three, the file that took longest when it ran last comes first: else everybody would wait for it at
the end. Folders whose files share costly servers go to one worker; files that share a control plane go to few.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARED = ("tests/airflow", "tests/argo", "tests/node")
"""Folders whose files share servers. What their fixtures with the scope `package` start ends with their last test."""
SECONDS_OF_FILES = "mxjob/seconds"
"""Where pytest's cache has how long each scope took when it ran last."""
AIRFLOW_COMMANDS = "tests/airflow, airflow dags test"
"""What shares a database and a local cluster, and no server of Airflow's."""


def _airflow(*names: str) -> list[str]:
    return [f"tests/airflow/test_airflow_{name}.py" for name in names]


_ALONE = [
    *_airflow("connections", "database", "holder", "older_releases", "operator", "provider", "reference"),
    *_airflow("side_by_side", "storable", "trigger"),
    "tests/node/test_node_images.py",
    "tests/node/test_three_nodes.py",
]
APART = {
    **dict.fromkeys(_airflow("examples", "sweep", "train_digits"), AIRFLOW_COMMANDS),
    **{path: path for path in _ALONE},
}
"""Scopes of files of shared folders that use none of the servers that their folder shares."""
START_LITTLE = ("tests/unit/", "tests/simulation/", "tests/conformance/", "tests/local/apiserver/")
NEED_PROGRAMS = ("tests/argo", "tests/cluster/", "tests/node")
WITH_CONTROL_PLANES = 2
"""Workers that start one, as long as there is something else for the others."""
_WHERE_NOTHING_RAN = {
    "tests/node": 700.0,
    "tests/airflow": 900.0,
    "tests/argo": 850.0,
    "tests/airflow/test_airflow_older_releases.py": 400.0,
    "tests/node/test_node_images.py": 440.0,
    "tests/node/test_three_nodes.py": 400.0,
    AIRFLOW_COMMANDS: 300.0,
    "tests/cluster/test_cluster_rbac.py": 120.0,
    "tests/local/test_failure_matrix.py": 80.0,
    "tests/cluster/test_cluster_gangs.py": 150.0,
    "tests/cluster/test_cluster_node_loss.py": 140.0,
    "tests/cluster/test_cluster_outages.py": 100.0,
    "tests/cluster/test_cluster_kueue.py": 90.0,
    "tests/local/test_known_hangs.py": 75.0,
    "tests/cluster/test_cluster_seed_documents.py": 70.0,
}
"""Seconds of the scopes that took longer than a minute in a run of TIER=all on 2026-11-24; of tests/node, later.

A fresh clone, as CI's, has no earlier run, and one worker would be left with the longest at the end.
"""

_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reject ids that differ from worker to worker, with which no test would run at all."""
    if named := [item.nodeid for item in items if _ADDRESS.search(item.nodeid)]:
        raise pytest.UsageError("\n".join(["an object's address is in the id, so give the parameters ids:", *named]))


def scope_of(nodeid: str) -> str:
    """The file of a test, or its shared folder, or its scope in APART: what one worker runs alone.

    The cells of tests/conformance on a real API server are a scope of their own, beside their file's.
    """
    path = nodeid.partition("::")[0]
    if path in APART:
        return APART[path]
    if path.startswith("tests/conformance/") and "[kubernetes" in nodeid:
        return f"{path}, on Kubernetes"
    return next((folder for folder in SHARED if nodeid.startswith(f"{folder}/")), path)


@functools.cache
def phase_of(scope: str) -> int:
    """0 of what starts little, 1 of what starts MXNet, TVM or Airflow, 2 of what needs programs that Go builds."""
    if scope.startswith(NEED_PROGRAMS) or scope.endswith(", on Kubernetes") or _is_marked(scope):
        return 2
    return 0 if scope.startswith(START_LITTLE) else 1


def _is_marked(scope: str) -> bool:
    path = Path(scope)
    return path.is_file() and re.search(r"mark\.(programs|kubernetes)", path.read_text()) is not None


class SharedFolder(pytest.Package):
    """A package to pytest, though nothing imports it: for a mere folder the scope `package` means the whole session."""

    def setup(self) -> None:
        """Import nothing."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> SharedFolder | None:
    """Collect a shared folder as one."""
    if path.relative_to(parent.config.rootpath).as_posix() in SHARED:
        return SharedFolder.from_parent(parent, path=path)
    return None


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """xdist's own `loadfile`, but all files of a shared folder go to one worker, and the longest scope goes first."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._seconds: dict[str, float] = _WHERE_NOTHING_RAN | _last(config)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if self.workqueue:
            having = [each for each, given in self.assigned_work.items() if any(map(_is_on_a_control_plane, given))]
            first = min(map(phase_of, self.workqueue))
            scopes = {scope: tests for scope, tests in self.workqueue.items() if phase_of(scope) == first}
            best = preferred(scopes, has_control_plane=node in having, control_planes=len(having))
            self.workqueue.move_to_end(longest(best, self._seconds), last=False)
        super()._assign_work_unit(node)


def preferred(scopes: Mapping[str, Sized], *, has_control_plane: bool, control_planes: int) -> dict[str, Sized]:
    """The scopes from which a worker takes its next: one with a control plane uses it, the others start few more."""
    if not has_control_plane and control_planes < WITH_CONTROL_PLANES:
        return dict(scopes)
    alike = {scope: tests for scope, tests in scopes.items() if _is_on_a_control_plane(scope) == has_control_plane}
    return alike or dict(scopes)


def _is_on_a_control_plane(scope: str) -> bool:
    """The one control plane of a worker: 5 CPU seconds to start it, 1.6 a minute to keep it."""
    return scope.startswith("tests/cluster/") or scope.endswith(", on Kubernetes")


def longest(scopes: Mapping[str, Sized], seconds: Mapping[str, float]) -> str:
    """The scope that took most seconds when it ran last; one that is new is taken for short, by its number of tests."""
    return max(scopes, key=lambda scope: seconds.get(scope, len(scopes[scope]) / 10))


def _last(config: pytest.Config) -> dict[str, float]:
    cache = getattr(config, "cache", None)
    return dict(cache.get(SECONDS_OF_FILES, {})) if cache is not None else {}


class Seconds:
    """Keeps how long each scope took, for the next run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._took: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        self._took[scope_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep the sums beside those of files that did not run."""
        cache = getattr(self._config, "cache", None)
        if cache is not None and self._took and not hasattr(self._config, "workerinput"):
            cache.set(SECONDS_OF_FILES, _last(self._config) | {k: round(v, 1) for k, v in self._took.items()})


def pytest_configure(config: pytest.Config) -> None:
    """Watch how long tests take."""
    config.pluginmanager.register(Seconds(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal tests out so; xdist asks for it where it runs them in several processes."""
    return ByFile(config, log)
