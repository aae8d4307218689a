"""The objects of a cluster by the project's own client, for what a test does beside what it tests: without kubectl."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from waiting import SECONDS, patience

from mxnet_operator.api.kinds import ALL, kind_of
from mxnet_operator.client.jobs import collections
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.resources import MXJOBS, resource_of
from mxnet_operator.kube import resources
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import Resource

Object = dict[str, Any]
T = TypeVar("T")

_BUILTIN = {
    "ConfigMap": resources.CONFIGMAPS,
    "Event": resources.EVENTS,
    "Lease": resources.LEASES,
    "Namespace": resources.NAMESPACES,
    "Node": resources.NODES,
    "Pod": resources.PODS,
    "PriorityClass": resources.PRIORITY_CLASSES,
    "Service": resources.SERVICES,
}
_BY_NAME = (
    {name: each for kind, each in _BUILTIN.items() for name in (kind.lower(), each.plural)}
    | {f"{name}.{kind.group}": resource_of(kind) for kind in ALL for name in (kind.singular, kind.plural)}
    | {"mxjob": MXJOBS, "mxjobs": MXJOBS}
)


class ClusterObjects:
    """Objects of the cluster that a kubeconfig names, which may be another one by the next call.

    A `type_` is written as for kubectl: `pod`, `pods`, `mxjob`, `mxjob.mxnet.mlkube.io`.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def get(self, type_: str, name: str, namespace: str = "default") -> Any:
        """One object; None where it isn't there."""
        return self._ask(lambda client: client.find(_BY_NAME[type_].path(namespace, name)))

    def find(self, type_: str, namespace: str = "default", *, labels: str = "", fields: str = "") -> list[Object]:
        """The objects in a namespace ("" is all of them) that match the selectors."""
        return self._ask(lambda client: _listed(client, _BY_NAME[type_].path(namespace), labels, fields))

    def pods_of(self, job: str, namespace: str = "default") -> list[Object]:
        return self.find("pods", namespace, labels=f"training.kubeflow.org/job-name={job}")

    def create(self, manifest: Object, namespace: str = "default", *, strict: bool = False) -> Object:
        """Create an object; where `strict`, the server rejects fields that it doesn't know, as kubectl asks it to."""
        path, params = _resource_of(manifest).path(namespace), {"fieldValidation": "Strict"} if strict else {}
        return self._ask(lambda client: client.create(path, manifest, params))

    def patch(self, type_: str, name: str, change: Object, namespace: str = "default") -> Object:
        """Merge a change into an object."""
        return self._ask(lambda client: client.patch(_BY_NAME[type_].path(namespace, name), change))

    def delete(self, type_: str, name: str, namespace: str = "default", *, wait: bool = True) -> None:
        """Delete an object; unless told otherwise, until it is gone."""
        self._ask(lambda client: client.delete(_BY_NAME[type_].path(namespace, name)))
        if wait:
            self.wait_until(type_, name, lambda obj: obj is None, namespace)

    def log(self, pod: str, namespace: str = "default") -> str:
        """What the pod's container has written so far."""
        path = resources.PODS.path(namespace, pod, "log")
        return self._ask(lambda client: client.get_bytes(path)).decode()

    def wait_until(
        self,
        type_: str,
        name: str,
        holds: Callable[[Object | None], object],
        namespace: str = "default",
        *,
        within: float = SECONDS,
    ) -> Object | None:
        """The object, once something holds of it; None stands for one that isn't there."""
        path, seconds = _BY_NAME[type_].path(namespace), patience(within)
        return self._ask(lambda client: _until(client, path, name, holds, seconds))

    @contextlib.contextmanager
    def events(self, type_: str, namespace: str = "default") -> Iterator[list[Object]]:
        """The events of a watch of a type, as they come until the context ends; not of what is there already."""
        path, found, begun = _BY_NAME[type_].path(namespace), list[Object](), threading.Event()
        loop = asyncio.new_event_loop()

        async def watched() -> None:
            async with Client(load_credentials(str(self.kubeconfig))) as client:
                since = (await client.list(path, {}))["metadata"]["resourceVersion"]
                begun.set()
                params = {"resourceVersion": since, "timeoutSeconds": "3600"}
                async with contextlib.aclosing(client.watch(path, params)) as lines:
                    async for line in lines:
                        found.append(json.loads(line))

        task = loop.create_task(watched())
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(loop.run_until_complete, asyncio.wait({task}))
            assert begun.wait(SECONDS)
            try:
                yield found
            finally:
                loop.call_soon_threadsafe(task.cancel)
                running.result(SECONDS)
                loop.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def _ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        async def asked() -> T:
            async with Client(load_credentials(str(self.kubeconfig))) as client:
                return await work(client)

        with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own
            return thread.submit(asyncio.run, asked()).result()


def _resource_of(manifest: Object) -> Resource:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    if kind is None:
        return _BUILTIN[manifest["kind"]]
    return Resource(kind.group, manifest["apiVersion"].rpartition("/")[2], kind.plural)


async def _listed(client: Client, path: str, labels: str, fields: str) -> list[Object]:
    found: list[Object] = (await client.list(path, {"labelSelector": labels, "fieldSelector": fields}))["items"]
    return found


async def _until(
    client: Client, path: str, name: str, holds: Callable[[Object | None], object], seconds: float
) -> Object | None:
    found = None
    named = collections(client, path, {"fieldSelector": f"metadata.name={name}"}, outage=Outage(seconds))
    try:
        async with asyncio.timeout(seconds), contextlib.aclosing(named) as looks:
            async for objects in looks:
                found = next(iter(objects.values()), None)
                if holds(found):
                    return found
    except TimeoutError:
        pass
    raise AssertionError(f"waited in vain for {seconds:g} s: {name} is {json.dumps(found, indent=1)}")
