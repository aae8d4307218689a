"""What a shared folder has for itself ends with it, or its servers would go on beside all later tests of the worker."""

from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[2] / "support"
FIXTURE = """
import pytest

@pytest.fixture(scope="package")
def server():
    print("started")
    yield
    print("stopped")
"""


def test_what_a_shared_folder_starts_is_stopped_before_tests_of_other_folders(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    tests = pytester.path / "tests"
    for name in ("airflow", "other"):
        (tests / name).mkdir(parents=True)
    (tests / "airflow" / "conftest.py").write_text(FIXTURE)
    for name in ("test_first.py", "test_second.py"):
        (tests / "airflow" / name).write_text("def test(server): print('asked')")
    (tests / "other" / "test_other.py").write_text("def test(): print('another')")
    done = pytester.runpytest_subprocess("-p", "shared_folders", "--import-mode=importlib", "-s", "-q", "tests")
    done.assert_outcomes(passed=3)
    words = ("started", "asked", "stopped", "another")
    said = [word for line in done.outlines for word in words if word in line]
    assert said == ["started", "asked", "asked", "stopped", "another"]
