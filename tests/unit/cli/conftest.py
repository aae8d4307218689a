"""`mxjob` in the test's own process."""

import io
import sys

import pytest

from mxnet_operator.cli.mxjob import main


@pytest.fixture
def mxjob(monkeypatch, capsys):
    """Runs `mxjob` as a user runs it; returns its exit code, stdout and stderr."""

    def run(*args, stdin=""):
        monkeypatch.setattr(sys, "argv", ["mxjob", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code, *capsys.readouterr()

    return run
