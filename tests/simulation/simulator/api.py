"""The API server of a simulation: the local cluster's own store and verbs, asked without HTTP."""

import copy
import random
from collections.abc import Callable
from datetime import datetime
from functools import cache, cached_property
from typing import Any

import msgspec
from simulator.clock import Clock

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.integrations.gangs import coscheduling
from mxnet_operator.integrations.gangs.backend import child_kinds
from mxnet_operator.integrations.kueue.objects import QUEUE_WORKLOADS, V1BETA2
from mxnet_operator.integrations.kueue.workload import GROUP
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import Resource as Served
from mxnet_operator.kube.transport import Request as Sent
from mxnet_operator.local.apiserver import resources
from mxnet_operator.local.apiserver.garbage_collection import GarbageCollector
from mxnet_operator.local.apiserver.patch import MERGE_PATCH
from mxnet_operator.local.apiserver.requests import Request, Verbs, find_target
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.apiserver.storage import Journal
from mxnet_operator.local.apiserver.store import DeleteOptions, Store, WriteOptions

NAMESPACE = "default"
GANGS = coscheduling.backend()
"""The gang scheduler whose pod groups the server serves: the local API server has none of its own."""
CHILDREN = (*KINDS, *child_kinds(GANGS))
"""The table of child kinds of this world; its controllers and its invariants follow it."""
QUEUE_WORKLOAD = QUEUE_WORKLOADS[0]
"""The kind of child that a job which names a queue has besides."""
FLAVORS = ("old", "new")
"""The kinds of nodes that Kueue has quota for, each with a label of its name."""
URGENT = "urgent"
"""The one WorkloadPriorityClass."""
JOB = "job"
KEY = f"{NAMESPACE}/{JOB}"
PODS, SERVICES, NODES = resources.PODS, resources.SERVICES, resources.NODES
Object = dict[str, Any]


class Api:
    """One namespace's objects, with the shortcuts that users and kubelets of a simulation take."""

    def __init__(self, clock: Clock) -> None:
        self.store = _forked(_empty_store(), clock.wall("server"), random.Random(0))
        jobs = self.store.catalog.find("kubeflow.org", "v1", "mxjobs")
        assert jobs is not None
        self.jobs: Resource = jobs
        self.workloads = self.resource_of(QUEUE_WORKLOAD)
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
        """The objects of every kind of child but pods and Workloads."""
        others = (self.resource_of(row) for row in CHILDREN if row.rule is not None)
        return [found for resource in others for found in self._objects(resource)]

    def resource_of(self, row: ChildKind) -> Resource:
        """Where the server has the objects of a row."""
        resource = row.resource
        found = self.store.catalog.find(resource.group, resource.version, resource.plural)
        assert found is not None, resource
        return found

    @cached_property
    def child_keys(self) -> set[object]:
        """The storage keys of every kind of child but Workloads."""
        return {self.resource_of(row).key for row in CHILDREN}

    def queue_workloads(self) -> list[Object]:
        """The Workloads of Kueue, those of others than the job too."""
        return self.store.storage.objects(self.workloads.key)

    def groups(self) -> list[Object]:
        return self._objects(self.resource_of(CHILDREN[-1]))

    def pods(self) -> list[Object]:
        return self._objects(PODS)

    def services(self) -> list[Object]:
        return self._objects(SERVICES)

    def _objects(self, resource: Resource) -> list[Object]:
        return self.store.storage.objects(resource.key)

    def node(self, name: str) -> Object | None:
        return self.store.storage.find(NODES.key, ("", name))

    def patch_status(self, pod: Object, status: Object) -> None:
        name = pod["metadata"]["name"]
        self.store.patch(PODS, NAMESPACE, name, MERGE_PATCH, {"status": status}, options=WriteOptions("status"))

    def patch_job(self, spec: Object) -> None:
        self.store.patch(self.jobs, NAMESPACE, JOB, MERGE_PATCH, {"spec": spec})

    def label_job(self, label: str, value: str | None) -> None:
        self.store.patch(self.jobs, NAMESPACE, JOB, MERGE_PATCH, {"metadata": {"labels": {label: value}}})

    def delete(self, resource: Resource, name: str, grace: int | None = None) -> None:
        self.store.delete(resource, NAMESPACE, name, DeleteOptions(grace=grace))


@cache
def _empty_store() -> Store:
    """What every schedule begins with: the namespaces, the CRDs, and what Kueue's administrator made."""
    definitions = (
        custom_resource_definition(),
        _definition(GANGS.resources[-1], "PodGroup"),
        _definition(QUEUE_WORKLOAD.resource, "Workload", "status"),
        _definition(_FLAVORS, "ResourceFlavor"),
        _definition(_CLASSES, "WorkloadPriorityClass"),
        _definition(_POD_CLASSES, "PriorityClass"),
    )
    store = Store(definitions, clock=Clock().wall("server"), rng=random.Random(1), first_revision=1)
    objects: list[tuple[Served, str, Object]] = [
        (_FLAVORS, name, {"spec": {"nodeLabels": {"flavor": name}}}) for name in FLAVORS
    ]
    for resource, name, fields in (*objects, (_CLASSES, URGENT, {"value": 20})):
        found = store.catalog.find(resource.group, resource.version, resource.plural)
        assert found is not None, resource
        body = {"apiVersion": found.api_version, "kind": found.kind, "metadata": {"name": name}, **fields}
        store.create(found, "", body)
    return store


def _forked(store: Store, clock: Callable[[], datetime], rng: random.Random) -> Store:
    """Make an independent copy with the same objects and without their history, faster than creating them again."""
    fork, storage = copy.copy(store), copy.copy(store.storage)
    fork.clock, fork._rng, fork.storage = clock, rng, storage
    storage._objects = {key: dict(objects) for key, objects in storage._objects.items()}
    storage._journals = {key: Journal(storage.revision, storage._history) for key in storage._journals}
    storage._observers = []
    return fork


_FLAVORS = Served(GROUP, V1BETA2, "resourceflavors", namespaced=False)
_CLASSES = Served(GROUP, V1BETA2, "workloadpriorityclasses", namespaced=False)
_POD_CLASSES = Served("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)


def _definition(resource: Served, kind: str, *subresources: str) -> Object:
    """The CRD of somebody else's resource, without its schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": kind.lower(),
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [{**version, "subresources": {each: {} for each in subresources}}],
        },
    }
