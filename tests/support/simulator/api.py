"""The API server of a simulation: the local cluster's own store and verbs, asked without HTTP."""

import random
from functools import cache
from typing import Any

import msgspec
from simulator.clock import Clock

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.gangs import child_kinds, coscheduling
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.transport import Request as Sent
from mxnet_operator.local.apiserver import resources
from mxnet_operator.local.apiserver.garbage_collection import GarbageCollector
from mxnet_operator.local.apiserver.patch import MERGE_PATCH
from mxnet_operator.local.apiserver.requests import Request
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.routing import find_target
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.apiserver.store import DeleteOptions, Store
from mxnet_operator.local.apiserver.verbs import Verbs

NAMESPACE = "default"
GANGS = coscheduling.backend()
"""The gang scheduler whose pod groups the server serves: the local API server has none of its own."""
CHILDREN = (*KINDS, *child_kinds(GANGS))
"""The table of child kinds of this world; its controllers and its invariants follow it."""
JOB = "job"
KEY = f"{NAMESPACE}/{JOB}"
PODS, SERVICES, NODES = resources.PODS, resources.SERVICES, resources.NODES
Object = dict[str, Any]


class Api:
    """One namespace's objects, with the shortcuts that users and kubelets of a simulation take."""

    def __init__(self, clock: Clock) -> None:
        self.store = _empty_store().fork(clock.wall("server"), random.Random(0))
        jobs = self.store.catalog.find("kubeflow.org", "v1", "mxjobs")
        assert jobs is not None
        self.jobs: Resource = jobs
        self.collector = GarbageCollector(self.store)
        self._verbs = Verbs(self.store)

    def answer(self, sent: Sent, warnings: list[str]) -> bytes:
        """Answer a request of kube's client as the server does over HTTP."""
        target = find_target(self.store.catalog, sent.path)
        assert target is not None, sent.path
        query = {name: str(value) for name, value in sent.params.items()}
        request = Request(sent.method, query, {"Content-Type": sent.content_type}, sent.body or b"")
        try:
            answer = self._verbs.answer(request, target)
        except StatusError as error:
            raise ApiError.from_status(error.status, error.code) from error
        warnings.extend(answer.warnings)
        return msgspec.json.encode(answer.value)

    @property
    def job(self) -> Object | None:
        """The job that there is now."""
        return self.store.storage.find(self.jobs.key, (NAMESPACE, JOB))

    def pod(self, name: str) -> Object | None:
        return self.store.storage.find(PODS.key, (NAMESPACE, name))

    def children(self) -> list[Object]:
        """The objects of every kind of child but pods."""
        others = (self.resource_of(row) for row in CHILDREN if row.rule is not None)
        return [found for resource in others for found in self.store.storage.objects(resource.key)]

    def resource_of(self, row: ChildKind) -> Resource:
        """Where the server has the objects of a row."""
        resource = row.resource
        found = self.store.catalog.find(resource.group, resource.version, resource.plural)
        assert found is not None, resource
        return found

    @property
    def child_keys(self) -> set[object]:
        """The storage keys of every kind of child."""
        return {self.resource_of(row).key for row in CHILDREN}

    def groups(self) -> list[Object]:
        return self.store.storage.objects(self.resource_of(CHILDREN[-1]).key)

    def pods(self) -> list[Object]:
        return self.store.storage.objects(PODS.key)

    def services(self) -> list[Object]:
        return self.store.storage.objects(SERVICES.key)

    def node(self, name: str) -> Object | None:
        return self.store.storage.find(NODES.key, ("", name))

    def patch_status(self, pod: Object, status: Object) -> None:
        name = pod["metadata"]["name"]
        self.store.patch(PODS, NAMESPACE, name, MERGE_PATCH, {"status": status}, subresource="status")

    def patch_job(self, spec: Object) -> None:
        self.store.patch(self.jobs, NAMESPACE, JOB, MERGE_PATCH, {"spec": spec})

    def delete(self, resource: Resource, name: str, grace: int | None = None) -> None:
        self.store.delete(resource, NAMESPACE, name, DeleteOptions(grace=grace))


@cache
def _empty_store() -> Store:
    """What every schedule begins with: the namespaces and the CRDs, made once."""
    rng = random.Random(1)
    return Store((custom_resource_definition(), _pod_groups()), clock=Clock().wall("server"), rng=rng, first_revision=1)


def _pod_groups() -> Object:
    """The CRD of the gang scheduler's pod groups, without its schema."""
    resource = GANGS.resources[-1]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": "PodGroup",
                "listKind": "PodGroupList",
                "plural": resource.plural,
                "singular": "podgroup",
            },
            "scope": "Namespaced",
            "versions": [
                {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
