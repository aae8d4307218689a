"""Folders whose files share servers that are costly to start, and have them for themselves.

What a fixture of theirs with the scope `package` starts ends with the last of their tests, before others come.
"""

from pathlib import Path

import pytest

SHARED = ("tests/airflow", "tests/argo", "tests/node")


class SharedFolder(pytest.Package):
    """A package to pytest, though nothing imports it: for a mere folder the scope `package` means the whole session."""

    def setup(self) -> None:
        """Import nothing."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> SharedFolder | None:
    """Collect a shared folder as one."""
    if path.relative_to(parent.config.rootpath).as_posix() in SHARED:
        return SharedFolder.from_parent(parent, path=path)
    return None
