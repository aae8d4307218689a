"""Day that the git history of a script's folder proposes for `--as-of`."""

import os
import subprocess
from datetime import UTC, date, datetime

import pytest

from mxnet_operator.cli.running.proposed_day import proposed_day


@pytest.fixture
def commit(tmp_path):
    """Commits a file below a repository, with a date."""
    ours = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*words, **variables):
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, env=ours | variables, capture_output=True)

    def commit(path, day):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
        git("init", "--quiet")
        git("add", path)
        git("commit", "--quiet", "--message", path, GIT_COMMITTER_DATE=f"{day}T12:00:00Z")

    return commit


def test_the_last_commit_of_the_folder_itself_proposes_the_day(commit, tmp_path):
    commit("old/train.py", "2018-03-04")
    commit("new/train.py", datetime.now(UTC).date().isoformat())
    assert proposed_day(tmp_path / "old") == date(2018, 3, 4)
    assert proposed_day(tmp_path / "new") is None


@pytest.mark.parametrize("folder", [".", "nothing"])
def test_a_folder_without_history_proposes_none(tmp_path, folder):
    assert proposed_day(tmp_path / folder) is None


def test_without_git_no_day_is_proposed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert proposed_day(tmp_path) is None
