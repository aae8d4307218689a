"""Credentials for an API server, loaded from a kubeconfig or a service account by the official client's loader."""

import asyncio
import contextlib
import os
import ssl
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mxnet_operator.kube.errors import CredentialsError, NoKubeconfigError
from mxnet_operator.kube.loader import loaders
from mxnet_operator.kube.proxies import proxy_for
from mxnet_operator.kube.tls import PromptTls

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_LOADING: Final = threading.Lock()
_contexts: Final[weakref.WeakValueDictionary[tuple[Any, ...], ssl.SSLContext]] = weakref.WeakValueDictionary()
"""TLS contexts in use, by what they are made of."""
_NO_FOLDER: Final = (
    "Its keys are given as data and pass through files: name a folder for them with the environment variable TMPDIR (in"
    " a pod with a read-only root, mount an emptyDir at /tmp), or name the keys' files in the kubeconfig"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """API server, its trusted certificates, and the user's credentials.

    `headers` may block (a token file is read, an exec plugin is run): call it off the event loop. `reload` reads
    everything anew.
    `ssl` is None for a server on plain HTTP; `server_hostname` is the kubeconfig's `tls-server-name`.
    """

    server: str
    ssl: ssl.SSLContext | None
    server_hostname: str | None
    proxy: str | None
    namespace: str
    headers: Callable[[], Mapping[str, str]]
    reload: Callable[[], Awaitable["Credentials"]]


def load_credentials(kubeconfig: str | None = None, context: str | None = None) -> Credentials:
    """Load the credentials of a kubeconfig, else of the pod that this process runs in.

    The kubeconfig is the argument, else `$KUBECONFIG` (several files joined by `:` are merged), else `~/.kube/config`:
    kubectl's order.

    Raises:
        NoKubeconfigError: there is none, and this process runs in no pod.
        CredentialsError: it can't be read, lacks the context, or its exec plugin fails.
    """
    paths = named_cluster(kubeconfig, context)
    return _in_cluster() if paths == "" else _from_kubeconfig(paths or _DEFAULT_KUBECONFIG, context)


def named_cluster(kubeconfig: str | None = None, context: str | None = None) -> str | None:
    """Return the kubeconfig that names a cluster, empty for a pod's service account; None where nothing does."""
    if paths := kubeconfig or os.environ.get("KUBECONFIG"):
        return paths
    if context is not None or _expanded(_DEFAULT_KUBECONFIG).exists():
        return _DEFAULT_KUBECONFIG
    return "" if os.environ.get("KUBERNETES_SERVICE_HOST") else None


def _from_kubeconfig(paths: str, context: str | None) -> Credentials:
    if not any(_expanded(p).is_file() for p in paths.split(os.pathsep) if p):
        raise NoKubeconfigError(
            f"no kubeconfig at {paths}: name one with --kubeconfig or the environment variable KUBECONFIG"
        )
    api = loaders()
    configuration = api.configuration()
    # keys given as data pass through files, which the loader remembers by their content for the whole process
    with _LOADING, _folder_for_keys() as folder:
        try:
            config = api.kube_config.KubeConfigMerger(paths).config
            _check_context(paths, config, context)
            loader = api.kube_config.KubeConfigLoader(config, context, temp_file_path=folder, config_base_path=None)
            loader.load_and_set(configuration)
            chosen = loader.current_context["context"]
            user = config["users"].get_with_name(chosen["user"], safe=True) if chosen.get("user") else None
        except Exception as error:  # the loader raises whatever a malformed file leads it to
            if isinstance(error, CredentialsError):
                raise
            if folder is None and isinstance(error, OSError):
                raise CredentialsError(f"kubeconfig {paths}: {error}. {_NO_FOLDER}") from error
            raise CredentialsError(f"kubeconfig {paths}: {error}") from error
        token, certificate = configuration.api_key.get("BearerToken"), configuration.cert_file
        if user is not None and "exec" in user["user"].value and not token and not certificate:
            command = user["user"]["exec"].value.get("command")
            raise CredentialsError(
                f"kubeconfig {paths}: the exec plugin {command!r} gave neither token nor certificate; its own message"
                " is in the log"
            )
        cluster = config["clusters"].get_with_name(chosen["cluster"])["cluster"].value
        _check_server(paths, cluster.get("server"))
        return from_configuration(
            configuration,
            namespace=str(chosen.get("namespace") or "default"),
            proxy=proxy_for(configuration.host, cluster.get("proxy-url"), os.environ),
            reload=lambda: asyncio.to_thread(_from_kubeconfig, paths, context),
        )


def _check_context(paths: str, config: Any, context: str | None) -> None:
    contexts = [each["name"] for each in config.value.get("contexts") or ()]
    if context is not None and context not in contexts:
        known = f"the contexts are {', '.join(contexts)}" if contexts else "the file has none"
        raise CredentialsError(f"kubeconfig {paths}: no context {context}: {known}")


def _check_server(paths: str, server: object) -> None:
    try:
        url = urlsplit(server if isinstance(server, str) else "")
        is_url = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise CredentialsError(f"kubeconfig {paths}: the server {server!r} is no URL, such as https://HOST:6443")


@contextlib.contextmanager
def _folder_for_keys() -> Iterator[str | None]:
    """Make a folder for keys given as data; None where none can be made, as many a kubeconfig needs none."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kubeconfig-"))
        except OSError:
            folder = None
        yield folder


def _expanded(path: str) -> Path:
    """Expand ~ in a path; leave it for a user without a home, such as a container's numeric user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises where there is no home


def _in_cluster() -> Credentials:
    api = loaders()
    configuration = api.configuration()
    try:
        api.incluster_config.load_incluster_config(configuration)
        namespace = _SERVICE_ACCOUNT_NAMESPACE.read_text("utf-8").strip()
    except Exception as error:
        raise CredentialsError(f"this pod's service account can't be used: {error}") from error
    return from_configuration(
        configuration,
        namespace=namespace or "default",
        proxy=proxy_for(configuration.host, None, os.environ),
        reload=lambda: asyncio.to_thread(_in_cluster),
    )


def from_configuration(
    configuration: Any, *, namespace: str, proxy: str | None, reload: Callable[[], Awaitable[Credentials]]
) -> Credentials:
    """Make credentials of a `kubernetes.client.Configuration`, whose own proxy isn't looked at. Reads certificates.

    Raises:
        CredentialsError: something of it can't be used.
    """

    def headers() -> Mapping[str, str]:
        try:
            value = configuration.get_api_key_with_prefix("BearerToken")  # runs the loader's refresh hook
        except Exception as error:
            raise CredentialsError(f"the token for {configuration.host} can't be renewed: {error}") from error
        return {"Authorization": value.strip()} if value else {}  # a token file may end in a newline

    try:
        context = _ssl_context(configuration) if configuration.host.startswith("https:") else None
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"the certificates for {configuration.host} can't be used: {error}") from error
    return Credentials(
        server=configuration.host.rstrip("/"),
        ssl=context,
        server_hostname=configuration.tls_server_name,
        proxy=proxy,
        namespace=namespace,
        headers=headers,
        reload=reload,
    )


def _ssl_context(configuration: Any) -> ssl.SSLContext:
    """Return the TLS context of a configuration, the same for the same certificates: connections are shared by it."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    contents = [Path(file).read_bytes() if file else None for file in files]
    bundle = ssl.get_default_verify_paths().cafile
    changed = Path(bundle).stat().st_mtime if bundle else None
    key = (bool(configuration.verify_ssl), configuration.tls_server_name, *contents, changed)
    context = _contexts.get(key)
    if context is None:
        context = _contexts[key] = _new_ssl_context(configuration)
    return context


def _new_ssl_context(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.sslobject_class = PromptTls
    # Many a cluster's own authority lacks the key identifier that Python 3.13 began to ask for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
