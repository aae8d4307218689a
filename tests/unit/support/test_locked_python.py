"""Environments that several of pytest's workers need at once."""

from concurrent.futures import ThreadPoolExecutor

import locked_python


def test_workers_that_need_the_same_environment_at_once_get_one_that_is_complete(tmp_path, monkeypatch):
    lock = tmp_path / "tools" / "nothing" / "requirements.txt"
    lock.parent.mkdir(parents=True)
    lock.touch()
    monkeypatch.setattr(locked_python, "_TOOLS", tmp_path / "tools")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path))
    monkeypatch.setenv("CI", "true")
    asked = locked_python.locked_python.__wrapped__  # without what this process remembers, as other processes are
    with ThreadPoolExecutor(4) as workers:
        found = set(workers.map(asked, ["nothing"] * 4))
    (python,) = found
    assert python.exists()
