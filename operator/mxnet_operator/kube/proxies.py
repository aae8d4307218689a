"""The proxy to an API server, as kubectl finds it: that of the kubeconfig, or that of the environment."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

from mxnet_operator.kube.errors import CredentialsError


def proxy_for(server: str, configured: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to a server's URL; `configured` is the kubeconfig's own, which has no exceptions.

    NO_PROXY may list ranges of addresses, as for kubectl.

    Raises:
        CredentialsError: the proxy's URL is none, or of another kind than HTTP.
    """
    if configured:
        return _proxy_url(configured, "proxy-url")
    url = urlsplit(server)
    name = f"{url.scheme.upper()}_PROXY"
    proxy = environment.get(name) or environment.get(name.lower())
    if not proxy or _is_exempt(url, environment.get("NO_PROXY") or environment.get("no_proxy") or ""):
        return None
    return _proxy_url(proxy, name)


def _proxy_url(text: str, origin: str) -> str:
    proxy = text if "://" in text else f"http://{text}"
    try:
        url = urlsplit(proxy)
        is_url = bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:  # the text may hold a password
        raise CredentialsError(f"{origin} is not the URL of a proxy, such as http://proxy:3128")
    if url.scheme not in {"http", "https"}:
        raise CredentialsError(f"{origin} names a proxy of the kind {url.scheme}: only http and https can be used")
    return proxy


def _is_exempt(url: SplitResult, exceptions: str) -> bool:
    """Whether a server is reached without a proxy: one on this machine, and what NO_PROXY lists."""
    host = url.hostname or ""
    if host == "localhost" or proxy_bypass_environment(url.netloc, {"no": exceptions.replace("*.", ".")}):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or any(_holds(each.strip(), address) for each in exceptions.split(","))


def _holds(addresses: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an entry of NO_PROXY is this address or a range with it."""
    try:
        return address in ipaddress.ip_network(addresses, strict=False)
    except ValueError:
        return False
