"""Import of the official client's configuration loader without its 60 MB of models.

`import kubernetes` imports every model and API class of Kubernetes: 70 MB and 1.4 s (36.0.3, measured), most of what a
controller may weigh. Its configuration loader needs none of them, and `requests` for OIDC alone: 3 MB and 0.03 s
without both. So its modules are imported under bare stand-ins for these packages, which are removed from `sys.modules`
again, so that a later import gets the whole package.
"""

import importlib
import importlib.util
import sys
import threading
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

_OAUTH: Final = "requests_oauthlib"


@dataclass(frozen=True, slots=True)
class Loaders:
    """Modules `kube_config` and `incluster_config` of `kubernetes.config`, and the class `Configuration`."""

    kube_config: Any
    incluster_config: Any
    configuration: Any


_loaders: Loaders | None = None
_lock = threading.Lock()


def loaders() -> Loaders:
    """Import the official loader's modules once; use the whole package's where that is imported already."""
    global _loaders  # noqa: PLW0603 - an import happens once per process
    with _lock:  # another thread would take the stand-in for the package
        if _loaders is None:
            _loaders = _from_imported_package() if "kubernetes" in sys.modules else _without_models()
        return _loaders


def _from_imported_package() -> Loaders:
    return Loaders(
        kube_config=importlib.import_module("kubernetes.config.kube_config"),
        incluster_config=importlib.import_module("kubernetes.config.incluster_config"),
        configuration=importlib.import_module("kubernetes.client").Configuration,
    )


def _without_models() -> Loaders:
    spec = importlib.util.find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'kubernetes'", name="kubernetes")
    package, client, oauth = (ModuleType(each) for each in ("kubernetes", "kubernetes.client", _OAUTH))
    package.__path__ = list(spec.submodule_search_locations)
    client.__path__ = [f"{package.__path__[0]}/client"]
    client.ApiClient = _api_client  # type: ignore[attr-defined]
    oauth.OAuth2Session = _oauth2_session  # type: ignore[attr-defined]
    sys.modules |= {"kubernetes": package, "kubernetes.client": client, _OAUTH: sys.modules.get(_OAUTH, oauth)}
    try:
        configuration = importlib.import_module("kubernetes.client.configuration").Configuration
        client.Configuration = configuration  # type: ignore[attr-defined]
        return Loaders(
            kube_config=importlib.import_module("kubernetes.config.kube_config"),
            incluster_config=importlib.import_module("kubernetes.config.incluster_config"),
            configuration=configuration,
        )
    finally:
        for name in [n for n in sys.modules if n == "kubernetes" or n.startswith("kubernetes.")]:
            del sys.modules[name]
        if sys.modules[_OAUTH] is oauth:
            del sys.modules[_OAUTH]


def _api_client(*args: Any, **kwargs: Any) -> Any:
    """Create the real ApiClient, imported only when the loader refreshes an OIDC token with it."""
    return importlib.import_module("kubernetes.client").ApiClient(*args, **kwargs)


def _oauth2_session(*args: Any, **kwargs: Any) -> Any:
    """Create the real OAuth2Session, imported only when the loader refreshes an OIDC token: it imports `requests`."""
    return importlib.import_module(_OAUTH).OAuth2Session(*args, **kwargs)
