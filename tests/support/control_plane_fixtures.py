"""The real Kubernetes control plane of a test run: started when the first test needs it, stopped after the last.

Tests that need it are marked `kubernetes`. Its programs are built before the first test, not on a test's clock.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import Server, control_plane
from kubernetes_programs import CONTROL_PLANE, MissingProgramError, programs, programs_or_skip

from mxnet_operator.api.crd import custom_resource_definition


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the collected tests need."""
    if not session.config.option.collectonly and any(item.get_closest_marker("kubernetes") for item in session.items):
        with contextlib.suppress(MissingProgramError):  # the tests say it
            programs(CONTROL_PLANE)


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Server]:
    """A real Kubernetes API that serves our CRDs."""
    paths = programs_or_skip(CONTROL_PLANE)
    with (
        tempfile.TemporaryDirectory(prefix="mxjob-test-") as folder,
        control_plane(paths, Path(folder), [custom_resource_definition()]) as server,
    ):
        yield server
