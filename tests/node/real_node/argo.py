"""Argo on a node, as an administrator installs it for a whole cluster: its manifests, and images of its programs."""

import json
from typing import Any

from deployment import one, rendered
from kubernetes_programs import source_of

from real_node.images import ARGOEXEC, WORKFLOW_CONTROLLER, archives
from real_node.node import RealNode

NAMESPACE = "argo"
_DEPLOYMENT = "workflow-controller"


def install(node: RealNode) -> None:
    """Deploy Argo's controller, and wait until it is ready.

    Raises:
        MissingProgramError: Its programs or manifests can't be had here.
    """
    node.load(archives((ARGOEXEC, WORKFLOW_CONTROLLER)))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    items = [namespace, *_manifests()]
    node.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    node.rolled_out(_DEPLOYMENT, NAMESPACE)


def remove(node: RealNode) -> None:
    """Take the controller away; what was defined stays."""
    node.kubectl("delete", "deployment", _DEPLOYMENT, f"--namespace={NAMESPACE}")


def _manifests() -> list[dict[str, Any]]:
    """Argo's own for a whole cluster, without its server and its user interface, which need an image more."""
    folder = source_of("workflow-controller") / "manifests" / "cluster-install"
    found = [each for each in rendered(folder) if "argo-server" not in each["metadata"]["name"]]
    (container,) = one(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    container |= {"image": WORKFLOW_CONTROLLER.name, "args": [f"--executor-image={ARGOEXEC.name}"]}
    return found
