"""Whether a cluster is this machine's own, of which `mxjob run` names the files: no home is never an error."""

import pytest

from mxnet_operator.cli.running.local_files import is_local


@pytest.mark.parametrize("home", ["~no-such-user-here/mxjob", "/dev/null/mxjob", "/proc/1/mxjob"])
def test_a_user_without_a_usable_home_has_no_local_cluster(monkeypatch, home):
    monkeypatch.setenv("MXJOB_HOME", home)
    assert is_local("https://127.0.0.1:6443") is False
