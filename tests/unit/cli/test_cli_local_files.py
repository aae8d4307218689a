"""Whether a cluster is this machine's own, of which `mxjob run` names the files: no home is never an error."""

import pytest

from mxnet_operator.cli.running.local_files import is_local
from mxnet_operator.cli.server.connection import Target, credentials_of


@pytest.mark.parametrize("home", ["~no-such-user-here/mxjob", "/dev/null/mxjob", "/proc/1/mxjob"])
def test_a_user_without_a_usable_home_has_no_local_cluster(monkeypatch, home):
    monkeypatch.setenv("MXJOB_HOME", home)
    assert is_local("https://127.0.0.1:6443") is False


def test_a_pod_of_any_uid_reaches_its_server_without_a_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "")  # as for a uid that the image's /etc/passwd lacks
    monkeypatch.delenv("MXJOB_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, users: [],"
        " clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}]}"
    )
    assert credentials_of(Target(kubeconfig=str(kubeconfig))).server == "http://127.0.0.1:1"
