"""Resources of the Kubernetes API: group, version, plural, and their URL paths."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from mxnet_operator.kube.errors import EmptyNameError


@dataclass(frozen=True, slots=True)
class Resource:
    """Resource as the API's URL paths name it; the core group is the empty string."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Build the URL path of one object, of the objects of a namespace, or (no namespace) of all namespaces.

        Raises:
            EmptyNameError: the name is empty: the path would be that of all objects.
        """
        parts = ["/api" if not self.group else f"/apis/{self.group}", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(self.plural)
        if name is not None:
            if not name:
                raise EmptyNameError(f"the name of one of {self} can't be empty")
            parts.append(_quoted(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        """Format as kubectl does: `mxjobs.kubeflow.org`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def is_path_segment(text: str) -> bool:
    """Whether a name or namespace can be one segment of a URL path; client-go asks for the same."""
    return text not in {"", ".", ".."} and "/" not in text


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


PODS: Final = Resource("", "v1", "pods")
SERVICES: Final = Resource("", "v1", "services")
EVENTS: Final = Resource("", "v1", "events")
CONFIGMAPS: Final = Resource("", "v1", "configmaps")
SECRETS: Final = Resource("", "v1", "secrets")
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims")
NAMESPACES: Final = Resource("", "v1", "namespaces", namespaced=False)
NODES: Final = Resource("", "v1", "nodes", namespaced=False)
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
WORKFLOWS: Final = Resource("argoproj.io", "v1alpha1", "workflows")
WORKFLOW_TASK_RESULTS: Final = Resource("argoproj.io", "v1alpha1", "workflowtaskresults")
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
