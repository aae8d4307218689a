"""After an edit without `make install`, tests would run against the old code in silence: they stop instead."""

from pathlib import Path

import pytest
import stale_wheel
from stale_wheel import differences, installed


def package(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.py").write_text(content)
    return folder


@pytest.mark.parametrize(
    ("ours", "theirs", "stale"),
    [
        ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, []),
        ({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, ["b.py"]),
        ({"a": "1", "b": "2"}, {"a": "1"}, ["b.py"]),
        ({"a": "1"}, {"a": "1", "gone": "2"}, ["gone.py"]),
    ],
    ids=["the same", "edited", "added", "deleted"],
)
def test_what_differs_is_found(tmp_path: Path, ours: dict[str, str], theirs: dict[str, str], stale: list[str]) -> None:
    checkout, wheel = package(tmp_path / "ours", **ours), package(tmp_path / "theirs", **theirs)
    (wheel / "a.pyc").touch()
    assert list(differences(checkout, wheel)) == stale


def test_pytest_stops_with_what_to_do(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = package(tmp_path / "operator", edited="1")
    monkeypatch.setattr(stale_wheel, "ROOT", tmp_path)
    monkeypatch.setattr(stale_wheel, "PACKAGES", {"mxnet_operator": checkout})
    monkeypatch.setattr(stale_wheel, "installed", lambda _: package(tmp_path / "wheel", edited="0"))
    monkeypatch.delattr(pytestconfig, "workerinput", raising=False)
    with pytest.raises(pytest.UsageError, match=r"^operator/edited\.py is not what is installed.*: run make install$"):
        stale_wheel.pytest_configure(pytestconfig)


def test_a_copy_with_a_mistake_is_no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package(tmp_path / "mutated", __init__="")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed("mutated") is None
    assert installed("mxnet_operator") is not None
