"""The parameter reference of the documentation is what the docstrings say."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def written():
    return runpy.run_path(str(ROOT / "tools" / "airflow_reference.py"))


def test_the_reference_is_up_to_date(written):
    found = (ROOT / "docs" / "airflow-reference.md").read_text(encoding="utf-8")
    assert found == written["reference"](), "run: make generate"


def test_every_parameter_is_described(written):
    for cls in written["CLASSES"]:
        described = {name for name, _ in written["described"](cls)}
        inherited = {name for base in cls.__mro__[1:-1] for name in written["_parameters"](base)}
        assert set(written["_parameters"](cls)) - {"self"} <= described | inherited, cls
        section = written["reference"]().partition(f"## {cls.__name__}\n")[2].partition("\n## ")[0]
        assert {name for name in described if f"`{name}`" not in section} <= {"args", "kwargs"}, cls
