"""Which proxy a server is reached by: hosts, domains, addresses and ranges as kubectl reads them."""

import pytest

from mxnet_operator.kube.errors import CredentialsError
from mxnet_operator.kube.proxies import proxy_for

NO_PROXY = "whole.test, .below.test, *.star.test, 192.168.7.1, 192.168.7.3:80, 10.9.0.0/30, 2001:db8::7:1, /8, a/99"
PROXIED = {
    "localhost": False,
    "127.0.0.2": False,
    "[::1]": False,
    "[::2]": True,
    "192.168.7.1": False,
    "192.168.7.3:80": False,
    "192.168.7.3:81": True,
    "192.168.7.4": True,
    "10.9.0.2": False,
    "10.9.0.4": True,
    "[2001:db8::7:1]": False,
    "www.below.test": False,
    "WHOLE.test": False,
    "www.whole.test": False,
    "foowhole.test": True,
    "localhost.test": True,
    "nested.star.test": False,
    "astar.test": True,
}


@pytest.mark.parametrize("host", PROXIED)
def test_no_proxy_lists_hosts_domains_addresses_ranges_and_ports(host):
    environment = {"HTTP_PROXY": "http://proxy:1", "NO_PROXY": NO_PROXY}
    assert proxy_for(f"http://{host}", None, environment) == ("http://proxy:1" if PROXIED[host] else None)
    assert proxy_for(f"http://{host}", None, environment | {"NO_PROXY": "*"}) is None


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("http://a.test", {"HTTP_PROXY": "127.0.0.1:8080"}, "http://127.0.0.1:8080"),
        ("http://a.test", {"HTTP_PROXY": "cache.test"}, "http://cache.test"),
        ("http://a.test", {"HTTP_PROXY": "https://cache.test"}, "https://cache.test"),
        ("https://a.test", {"HTTP_PROXY": "http", "HTTPS_PROXY": "secure"}, "http://secure"),
        ("https://a.test", {"HTTPS_PROXY": "https://secure"}, "https://secure"),
        ("https://a.test", {"https_proxy": "secure"}, "http://secure"),
        ("https://a.test", {"HTTPS_PROXY": "upper", "https_proxy": "lower"}, "http://upper"),
        ("https://a.test", {"HTTPS_PROXY": "", "https_proxy": "lower"}, "http://lower"),
        ("https://a.test", {"HTTP_PROXY": "http", "http_proxy": "http"}, None),
        ("https://a.test", {"ALL_PROXY": "all"}, None),
        ("https://a.test", {"HTTPS_PROXY": "user:word@secure:3128"}, "http://user:word@secure:3128"),
        ("https://a.test", {"HTTPS_PROXY": "secure", "no_proxy": "a.test"}, None),
        ("https://a.test:6443", {"HTTPS_PROXY": "secure", "NO_PROXY": "a.test:443"}, "http://secure"),
    ],
)
def test_the_proxy_is_that_of_the_servers_own_scheme(server, environment, proxy):
    assert proxy_for(server, None, environment) == proxy


@pytest.mark.parametrize("server", ["https://a.test", "https://127.0.0.1:6443"])
def test_the_kubeconfigs_own_proxy_comes_first_and_has_no_exceptions(server):
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert proxy_for(server, "http://own:3128", environment) == "http://own:3128"


@pytest.mark.parametrize(
    "text",
    ["socks5://secret@proxy:1", "foo://secret", "http://", "http://secret@proxy:99999", "[::1", "://", "secret:x"],
)
def test_a_proxy_that_can_not_be_used_is_said_to_be_wrong_without_its_password(text):
    for configured, environment in ((text, {}), (None, {"HTTPS_PROXY": text})):
        with pytest.raises(CredentialsError, match=r"proxy-url|HTTPS_PROXY") as caught:
            proxy_for("https://a.test", configured, environment)
        assert "secret" not in str(caught.value)
