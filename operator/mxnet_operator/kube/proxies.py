"""The proxy to an API server, as kubectl finds it: that of the kubeconfig, or by Go's rules that of the environment."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from mxnet_operator.kube.errors import CredentialsError

_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, configured: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to a server's URL; `configured` is the kubeconfig's own, which has no exceptions.

    The rules of the environment are those of golang.org/x/net/http/httpproxy.

    Raises:
        CredentialsError: the proxy's URL is none, or of another kind than HTTP.
    """
    if configured:
        return _proxy_url(configured, "proxy-url")
    url = urlsplit(server)
    name = f"{url.scheme.upper()}_PROXY"
    proxy = environment.get(name) or environment.get(name.lower())
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _is_exempt(url.hostname or "", url.port or _PORTS.get(url.scheme, 0), exceptions):
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
    if url.scheme not in _PORTS:
        raise CredentialsError(f"{origin} names a proxy of the kind {url.scheme}: only http and https can be used")
    return proxy


def _is_exempt(host: str, port: int, exceptions: str) -> bool:
    """Whether a host is to be reached without a proxy: this machine, and what NO_PROXY lists."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(each.strip().lower(), host.lower(), address, port) for each in exceptions.split(","))


def _matches(pattern: str, host: str, address: "_Address | None", port: int) -> bool:
    """Whether an entry of NO_PROXY is this host; `foo.com` is that of its subdomains, too."""
    if pattern in {"", "*"}:
        return pattern == "*"
    if "/" in pattern:
        try:
            return address is not None and address in ipaddress.ip_network(pattern, strict=False)
        except ValueError:
            return False
    name, only_port = _split_port(pattern)
    if not name or (only_port and only_port != str(port)):
        return False
    if (wanted := _address(name)) is not None:
        return wanted == address
    if address is not None:
        return False
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(pattern: str) -> tuple[str, str]:
    """Split `host:port` and `[IPv6]:port`; an IPv6 address without brackets has no port."""
    if pattern.startswith("["):
        name, _, rest = pattern[1:].partition("]")
        return name, rest.removeprefix(":")
    return (pattern, "") if pattern.count(":") != 1 else (pattern.partition(":")[0], pattern.partition(":")[2])


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
