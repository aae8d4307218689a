"""Argo on a node, as an administrator installs it for a whole cluster: its manifests, and images of its programs."""

import json
from typing import Any

from deployment import one, rendered
from kubernetes_programs import source_of
from node_world import NodeWorld
from waiting import eventually

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


def submit(world: NodeWorld, workflow: Any) -> str:
    """Create a workflow, a Hera object or a manifest; its name."""
    manifest = workflow if isinstance(workflow, dict) else workflow.to_dict()
    manifest["metadata"].pop("namespace", None)
    words = ("create", "-f", "-", "-o", "jsonpath={.metadata.name}")
    return world.kubectl(*words, text=json.dumps(manifest))


def job_of(world: NodeWorld, workflow: str) -> str:
    """The name of a run's only job, once there is one."""
    selector = f"workflows.argoproj.io/workflow={workflow}"
    (job,) = eventually(lambda: world.get("mxjobs", "-l", selector)["items"])
    name: str = job["metadata"]["name"]
    return name


def finished(world: NodeWorld, workflow: str) -> dict[str, Any]:
    """The workflow, once it is over."""
    world.wait(f"workflow/{workflow}", "condition=Completed")
    return world.get("workflow", workflow)


def _manifests() -> list[dict[str, Any]]:
    """Argo's own for a whole cluster, without its server and its user interface, which need an image more."""
    folder = source_of("workflow-controller") / "manifests" / "cluster-install"
    found = [each for each in rendered(folder) if "argo-server" not in each["metadata"]["name"]]
    (container,) = one(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    container |= {"image": WORKFLOW_CONTROLLER.name, "args": [f"--executor-image={ARGOEXEC.name}"]}
    # Or a retry after a lost executor is sometimes not noticed for 20 minutes (docs/facts/argo.md, retries).
    container["env"].append({"name": "INFORMER_WRITE_BACK", "value": "false"})
    return found
