"""Credentials as the official loader reads them, and what is said where it can't."""

import asyncio
import base64
import ssl
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import trustme
import yaml

from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import CredentialsError, NoKubeconfigError

AUTHORITY = trustme.CA()


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch, tmp_path):
    """No kubeconfig but the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def kubeconfig(path, user=None, cluster=None, namespace=None):
    context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    authority = base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "first",
        "contexts": [
            {"name": "first", "context": context},
            {"name": "second", "context": {"cluster": "c", "user": "u", "namespace": "elsewhere"}},
        ],
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": "https://127.0.0.1:6443/",
                    **(cluster or {"certificate-authority-data": authority}),
                },
            }
        ],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_a_token_and_the_clusters_own_authority(tmp_path):
    credentials = load_credentials(kubeconfig(tmp_path / "k"))
    assert credentials.server == "https://127.0.0.1:6443"
    assert credentials.headers() == {"Authorization": "Bearer secret"}
    assert credentials.namespace == "default"
    assert credentials.ssl.verify_mode is ssl.CERT_REQUIRED
    assert len(credentials.ssl.get_ca_certs()) == 1


def test_several_threads_load_one_cluster_at_once(tmp_path):
    """The official loader remembers the file that it has written for some content; another thread may delete it."""
    path = kubeconfig(tmp_path / "k")
    with ThreadPoolExecutor(8) as threads:
        loaded = list(threads.map(lambda _: load_credentials(path), range(200)))
    assert all(each.ssl is not None for each in loaded)


def test_a_context_is_chosen_by_name(tmp_path):
    assert load_credentials(kubeconfig(tmp_path / "k"), "second").namespace == "elsewhere"


def test_an_unknown_context_is_named(tmp_path):
    with pytest.raises(CredentialsError, match="third"):
        load_credentials(kubeconfig(tmp_path / "k"), "third")


def test_the_environment_variable_names_the_kubeconfig(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "k", namespace="mine"))
    assert load_credentials().namespace == "mine"


def test_an_exec_plugin_gives_the_token_relative_to_the_kubeconfig(tmp_path):
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\necho \'{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",'
        ' "status": {"token": "\'$SAID\'"}}\'\n'
    )
    plugin.chmod(0o700)
    run = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plugin",
        "env": [{"name": "SAID", "value": "from-plugin"}],
        "interactiveMode": "Never",
    }
    credentials = load_credentials(kubeconfig(tmp_path / "k", {"exec": run}))
    assert credentials.headers() == {"Authorization": "Bearer from-plugin"}


def test_an_exec_plugin_that_fails_is_an_error_that_names_it(tmp_path):
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false", "interactiveMode": "Never"}
    with pytest.raises(CredentialsError, match="/bin/false"):
        load_credentials(kubeconfig(tmp_path / "k", {"exec": run}))


def test_a_client_certificate_is_used_and_leaves_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    issued = AUTHORITY.issue_cert("me")
    user = {
        "client-certificate-data": base64.b64encode(issued.cert_chain_pems[0].bytes()).decode(),
        "client-key-data": base64.b64encode(issued.private_key_pem.bytes()).decode(),
    }
    credentials = load_credentials(kubeconfig(tmp_path / "k", user))
    assert credentials.headers() == {}
    assert credentials.ssl is not None
    assert list((tmp_path / "tmp").iterdir()) == []
    assert asyncio.run(credentials.reload()).ssl is not None


def test_verification_can_be_turned_off_and_the_servers_name_given(tmp_path):
    cluster = {"insecure-skip-tls-verify": True, "tls-server-name": "other.name"}
    credentials = load_credentials(kubeconfig(tmp_path / "k", cluster=cluster))
    assert credentials.ssl.verify_mode is ssl.CERT_NONE
    assert credentials.server_hostname == "other.name"


def test_servers_of_other_names_are_connected_to_by_another_context(tmp_path):
    """Older releases of aiohttp don't tell pooled connections apart by the server's name."""
    cluster = {"insecure-skip-tls-verify": True}
    first, same, other = (
        load_credentials(kubeconfig(tmp_path / f"k{number}", cluster={**cluster, "tls-server-name": name}))
        for number, name in enumerate(("a.example", "a.example", "b.example"))
    )
    assert first.ssl is same.ssl
    assert first.ssl is not other.ssl


@pytest.fixture
def read_only(monkeypatch, tmp_path):
    """No folder for temporary files, as on a read-only root without /tmp."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))


@pytest.mark.usefixtures("read_only")
def test_keys_as_data_without_a_place_for_files_are_an_error_that_names_tmpdir(tmp_path):
    with pytest.raises(CredentialsError, match=r"k: .*TMPDIR.*emptyDir at /tmp"):
        load_credentials(kubeconfig(tmp_path / "k"))


def test_no_kubeconfig_says_how_to_name_one(tmp_path):
    with pytest.raises(NoKubeconfigError, match=r"no kubeconfig at .*: name one with --kubeconfig .* KUBECONFIG"):
        load_credentials()


def test_a_kubeconfig_that_is_no_yaml_names_the_file(tmp_path):
    (tmp_path / "k").write_text("{")
    with pytest.raises(CredentialsError, match=str(tmp_path / "k")):
        load_credentials(str(tmp_path / "k"))


def test_a_pod_without_a_service_account_is_told_so(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(CredentialsError, match="service account"):
        load_credentials()


def test_a_user_without_a_home_has_no_kubeconfig_there(monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**31)  # nobody's: as in a container
    with pytest.raises(NoKubeconfigError):
        load_credentials()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(CredentialsError, match="service account"):
        load_credentials()


def test_the_environments_proxy_is_used_but_never_for_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert load_credentials(kubeconfig(tmp_path / "k")).proxy is None
    far = kubeconfig(tmp_path / "far", cluster={"server": "https://far.invalid"})
    assert load_credentials(far).proxy == "http://proxy.invalid:3128"
    monkeypatch.setenv("NO_PROXY", ".invalid")
    assert load_credentials(far).proxy is None


def test_loading_imports_none_of_the_official_clients_models_and_leaves_the_package_usable(tmp_path):
    program = (
        "import sys\n"
        "from mxnet_operator.kube.credentials import load_credentials\n"
        f"load_credentials({kubeconfig(tmp_path / 'k')!r})\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'kubernetes']\n"
        "import kubernetes\n"
        "assert kubernetes.client.CoreV1Api and kubernetes.config.load_kube_config\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_proxy_of_the_kubeconfigs_cluster_is_used(tmp_path):
    cluster = {"proxy-url": "http://proxy.invalid:3128"}
    assert load_credentials(kubeconfig(tmp_path / "k", cluster=cluster)).proxy == "http://proxy.invalid:3128"


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:99999", "https://[::1:1", "https://a:b", "https://", 5, "a b", "127.0.0.1:6443", ""]
)
def test_a_server_that_is_no_url_is_an_error_that_names_the_file(tmp_path, monkeypatch, server):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    with pytest.raises(CredentialsError, match=str(tmp_path / "k")):
        load_credentials(kubeconfig(tmp_path / "k", cluster={"server": server}))


def test_an_empty_variable_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(CredentialsError, match="service account"):
        load_credentials()


def test_threads_that_load_credentials_at_once_get_the_same_loaders() -> None:
    script = (
        "import sys, threading; from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from mxnet_operator.kube.loader import loaders\n"
        "sys.setswitchinterval(1e-5); barrier = threading.Barrier(8)\n"
        "def load(_): barrier.wait(); return loaders()\n"
        "assert len(set(map(id, Pool(8).map(load, range(8))))) == 1\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_only_oidc_needs_is_imported_when_a_token_is_refreshed() -> None:
    script = (
        "import sys\n"
        "from mxnet_operator.kube.loader import loaders\n"
        "loader = loaders().kube_config\n"
        "assert 'requests_oauthlib' not in sys.modules\n"
        "session = loader.OAuth2Session(client_id='a')\n"
        "import requests_oauthlib; assert type(session) is requests_oauthlib.OAuth2Session\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
