"""The manifests that deploy the controller, as kubectl renders them, and the controller as its Deployment starts it."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from control_plane import Server
from control_plane_fixtures import real_api
from kubernetes_programs import kubectl
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from waiting import SECONDS

from mxnet_operator.api.structural import clone

OPERATOR = Path(__file__).parents[2] / "operator"
MANIFESTS = OPERATOR / "manifests"
OVERLAYS = ("standalone", "namespaced")
POLICIES = ("mxnet-operator-pods", "mxnet-operator-services", "mxnet-operator-configmaps")


class Administrator:
    """The administrator of a server, at a kubectl."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kubeconfig = server.kubeconfig()

    async def __call__(self, *arguments: object, fails: bool | None = False, cache: str = "cache") -> str:
        """What kubectl prints; `fails` is None where both are fine. It remembers in `cache` which kinds there are."""
        options = (f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._server.folder}/{cache}")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            kubectl(), *options, *map(str, arguments), stdout=pipe, stderr=pipe
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert fails in {None, process.returncode != 0}, (arguments, out, err)
        return out.decode() + err.decode()

    async def wait(self, condition: str, *what: object) -> None:
        """Wait as `kubectl wait --for` does, which says in vain for what before its process is given up on."""
        await self("wait", f"--for={condition}", f"--timeout={SECONDS - 10}s", *what)


def locked(name: str) -> dict[str, Version]:
    """A lock's versions for this platform, by normalized name."""
    lines = re.findall(
        r"^(\S+==[^\\\n]+?)\s*\\$", (OPERATOR.parent / "requirements" / name).read_text(), flags=re.MULTILINE
    )
    pins = [Requirement(line) for line in lines]
    return {
        str(canonicalize_name(pin.name)): Version(next(iter(pin.specifier)).version)
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def rendered(overlay: str | Path) -> list[dict[str, Any]]:
    """The objects of an overlay: one of ours by name, or any by its folder."""
    objects: list[dict[str, Any]] = clone(_ours(overlay)) if isinstance(overlay, str) else _kustomized(overlay)
    return objects


@cache
def _ours(overlay: str) -> list[dict[str, Any]]:
    return _kustomized(MANIFESTS / "overlays" / overlay)


def _kustomized(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([kubectl(), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, yaml.CSafeLoader))  # the CRDs take the loader in Python half a second


def with_components(folder: Path, *components: str, overlay: str = "standalone", **fields: str) -> list[dict[str, Any]]:
    """The objects of a user's overlay over one of ours, written into the folder."""
    parts = {
        "resources": [os.path.relpath(MANIFESTS / "overlays" / overlay, folder)],
        "components": [os.path.relpath(MANIFESTS / "components" / each, folder) for each in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(parts | fields))
    return rendered(folder)


def of_kind(objects: Iterable[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    """Those of these kinds."""
    return [each for each in objects if each["kind"] in kinds]


def one(objects: Iterable[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The only one of a kind."""
    (found,) = of_kind(objects, kind)
    return found


def roles_of_controller(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Roles and ClusterRoles that are bound to the controller's ServiceAccount."""
    account = one(objects, "ServiceAccount")["metadata"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    bindings = of_kind(objects, "RoleBinding", "ClusterRoleBinding")
    bound = {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings if subject in b["subjects"]}
    return [r for r in of_kind(objects, "Role", "ClusterRole") if (r["kind"], r["metadata"]["name"]) in bound]


def user_name(objects: list[dict[str, Any]]) -> str:
    """What the API server calls the controller's ServiceAccount."""
    account = one(objects, "ServiceAccount")["metadata"]
    return f"system:serviceaccount:{account['namespace']}:{account['name']}"


def token_of(server: Server, objects: list[dict[str, Any]]) -> str:
    """A token of the controller's ServiceAccount, as the kubelet asks for one."""
    account = one(objects, "ServiceAccount")["metadata"]
    path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts/{account['name']}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token: str = server.ask("POST", path, request)["status"]["token"]
    return token


async def policies_in_force(server: Server, objects: list[dict[str, Any]]) -> None:
    """Wait until the API server enforces the admission policies, which is some time after their creation."""
    probes: dict[str, tuple[str, dict[str, Any]]] = {
        "mxnet-operator-pods": ("pods", {"spec": {"containers": [{"name": "a", "image": "i"}]}}),
        "mxnet-operator-services": ("services", {"spec": {"ports": [{"port": 80}]}}),
        "mxnet-operator-configmaps": ("configmaps", {}),
    }
    as_controller: dict[str, Any] = {"headers": {"Impersonate-User": user_name(objects)}, "dryRun": "All"}
    async with real_api(server) as api, asyncio.timeout(SECONDS):
        for policy, (resource, probe) in probes.items():
            path, body = f"/api/v1/namespaces/default/{resource}", {"metadata": {"name": "probe"}, **probe}
            enforced = f"ValidatingAdmissionPolicy '{policy}'"
            while enforced not in (await api.ask("POST", path, body, **as_controller)).text:  # noqa: ASYNC110
                await asyncio.sleep(0.2)


@contextlib.contextmanager
def started(server: Server, objects: list[dict[str, Any]], folder: Path) -> Iterator[None]:
    """The controller with its Deployment's arguments and its ServiceAccount's token, until the context ends."""
    namespace = one(objects, "ServiceAccount")["metadata"]["namespace"]
    kubeconfig = server.kubeconfig(f"mxnet-operator-{namespace}", token_of(server, objects))
    config = yaml.safe_load(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(config))
    log = folder / "controller.log"
    command = [sys.executable, "-m", "mxnet_operator.cli.mxnet_operator", *arguments(objects, namespace)]
    with log.open("wb") as output:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
    try:
        try:
            yield
        except BaseException:
            print(log.read_text())
            raise
        assert process.poll() is None, log.read_text()
        process.terminate()
        assert process.wait(SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def arguments(objects: list[dict[str, Any]], namespace: str) -> list[str]:
    """The Deployment's arguments; the addresses are loopback's, with any free ports."""
    text = json.dumps(one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"])
    for theirs, ours in ((":8080", "127.0.0.1:0"), (":8081", "127.0.0.1:0"), ("$(POD_NAMESPACE)", namespace)):
        text = text.replace(theirs, ours)
    decoded: list[str] = json.loads(text)
    return decoded
