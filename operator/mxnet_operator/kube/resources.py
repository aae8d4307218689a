"""Where each kind of object lives in the API: group, version, plural, and the URL paths made of them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API's paths name it; the core group is the empty string."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of one object, of the objects of a namespace, or (no namespace) of those of all namespaces."""
        parts = ["/api" if not self.group else f"/apis/{self.group}", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        """As kubectl writes it: `mxjobs.kubeflow.org`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS: Final = Resource("", "v1", "pods")
SERVICES: Final = Resource("", "v1", "services")
EVENTS: Final = Resource("", "v1", "events")
CONFIGMAPS: Final = Resource("", "v1", "configmaps")
NAMESPACES: Final = Resource("", "v1", "namespaces", namespaced=False)
NODES: Final = Resource("", "v1", "nodes", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
WORKFLOWS: Final = Resource("argoproj.io", "v1alpha1", "workflows")
WORKFLOW_TASK_RESULTS: Final = Resource("argoproj.io", "v1alpha1", "workflowtaskresults")
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
