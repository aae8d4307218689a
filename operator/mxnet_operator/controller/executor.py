"""Executor of a plan's actions, many at a time; each result is read from the server's response, never assumed."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Final, assert_never

from mxnet_operator.api import names
from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.environment import has_mx_config
from mxnet_operator.builders.fail_fast import can_take_hook, wants_hook
from mxnet_operator.client.resources import resource_of
from mxnet_operator.controller.children import KINDS, ChildKind, Patch
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.fail_fast import provide_hook
from mxnet_operator.controller.fair_semaphore import FairSemaphore
from mxnet_operator.integrations.child_kinds import StoredChild
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan.actions import (
    Action,
    AnnotatePod,
    ChangeChild,
    CreateChild,
    CreatePod,
    DeleteChild,
    DeleteJob,
    DeletePod,
    Event,
    ReleaseChild,
    RestoreLabels,
    StopPod,
    SuspendJob,
    TouchChild,
)
from mxnet_operator.plan.rejection import Found, Holder, RejectedCreation, holder_of_name
from mxnet_operator.readers.metadata import has_watched_label

_DROPPED: Final = "FieldDropped"
_NO_HOOK: Final = "FailFastHookMissing"
_REMEDY: Final = (
    "A worker that raises a Python exception will hang in MXNet until a deadline: set the container's command, or"
    " spec.runPolicy.activeDeadlineSeconds; spec.runPolicy.failFast: false ends this warning"
)

_NO_MX_CONFIG: Final = (
    "The replicas get no variable MX_CONFIG: with the names of all of them it would be longer than Linux takes"
    " (128 KiB). MXNet itself needs only DMLC_*, which they have; a script that reads MX_CONFIG needs fewer replicas,"
    " or a job with a shorter name"
)

_Deletion = DeletePod | DeleteChild | DeleteJob
_Change = StopPod | RestoreLabels | AnnotatePod | ReleaseChild | TouchChild | ChangeChild | SuspendJob
_Ending = _Deletion | _Change


@dataclass
class Outcome:
    """Result of carrying out a plan: Events to post, and the first error if something is left to do."""

    events: dict[Event, None] = field(default_factory=dict)
    rejected: RejectedCreation | None = None
    error: KubeError | None = None

    def reject(self, rejected: RejectedCreation) -> None:
        """Record that a child can't be created, with its Event; a final rejection takes precedence over others."""
        self.events[rejected.event] = None
        if self.rejected is None or (rejected.is_final and not self.rejected.is_final):
            self.rejected = rejected

    def add_warning(self, reason: str, message: str) -> None:
        """Record a Warning Event, once however often it occurs."""
        self.events[Event("Warning", reason, message)] = None


@dataclass
class Executor:
    """Executor of plans for the jobs of one kind."""

    client: Client
    writes: OwnWrites
    requests: FairSemaphore = field(default_factory=FairSemaphore)
    """Shared by all executors."""
    _: KW_ONLY
    kind: InitVar[Kind] = MXJOB
    fail_fast_hook: bool = False
    """Whether workers get the hook by a ConfigMap; without it, the kubelet provides it."""
    served: Callable[[], Sequence[ChildKind]] = lambda: KINDS
    """Returns the kinds of children that are served now; of kinds that share an action one is served at a time."""

    def __post_init__(self, kind: Kind) -> None:
        job = resource_of(kind)
        self._job_actions: dict[type, Resource] = {DeleteJob: job, SuspendJob: job}

    async def carry_out(self, job: MXJob, actions: Iterable[Action]) -> Outcome:
        """Carry out the actions for a job with defaults: what pods rely on first, then all the rest.

        Kinds of children come in the order of their table, since one may refer to another. Of a gang the pod that its
        others connect to comes last, and only if all of them could be created.
        """
        outcome = Outcome()
        children, pods, rest = _sorted_out(actions)
        for kind in self.served():
            of_kind = (action for action in children if type(action) is kind.create)
            await asyncio.gather(*(self._create(job, action, outcome) for action in of_kind))
        if pods and not has_mx_config(job):
            outcome.add_warning("MXConfigTooLong", _NO_MX_CONFIG)
        has_hook = await self._provide_hook(job, pods, outcome)
        if outcome.error is None:
            await asyncio.gather(
                *(self._create(job, pod, outcome, has_hook=has_hook) for pod in pods if not pod.is_last),
                *(self._end(job, action, outcome) for action in rest),
            )
        if outcome.error is None:
            await asyncio.gather(*(self._create(job, pod, outcome, has_hook=has_hook) for pod in pods if pod.is_last))
        return outcome

    async def _provide_hook(self, job: MXJob, pods: list[CreatePod], outcome: Outcome) -> bool:
        """Return whether the pods that want the fail-fast hook can have it; where workers lack it, record an Event."""
        types = {pod.type: job.spec.mx_replica_specs[pod.type].template for pod in pods if wants_hook(job, pod.type)}
        wanting = {name: can_take_hook(template["spec"]) for name, template in types.items()}
        if not wanting or not self.fail_fast_hook or outcome.error is not None:
            return False
        failing_fast = next((name for name in wanting if TYPES[name].fails_fast), None)
        if failing_fast and not wanting[failing_fast]:
            outcome.add_warning(
                _NO_HOOK, f"{failing_fast}: the template names no command to put the hook before. {_REMEDY}"
            )
        if not any(wanting.values()):
            return False
        try:
            async with self.requests.turn(job.metadata.key):
                problem = await provide_hook(self.client, job.metadata.namespace)
        except KubeError as error:
            outcome.error = error
            return False
        if problem and failing_fast and wanting[failing_fast]:
            outcome.add_warning(_NO_HOOK, f"{failing_fast}: {problem}. {_REMEDY}")
        return not problem

    async def _create(
        self, job: MXJob, action: CreatePod | CreateChild, outcome: Outcome, *, has_hook: bool = False
    ) -> None:
        async with self.requests.turn(job.metadata.key):
            if outcome.error is not None:  # What rejected one pod (a quota, a bad template) will reject the next.
                return
            try:
                kind = self._kind_of(action)
            except ApiError as error:  # raised, it would leave the other requests of this job under way
                outcome.error = error
                return
            resource, manifest = kind.resource, kind.build(job, action, has_hook)
            if isinstance(action, CreatePod):
                for each in self.served():
                    manifest = manifest if each.decorate is None else each.decorate(job, manifest)
            warnings: list[str] = []
            try:
                path = resource.path(job.metadata.namespace)
                stored = await self.client.create_as(path, manifest, StoredChild, warnings=warnings)
                self.writes.record(job.metadata.key, resource, stored.metadata.resource_version)
                self._note_dropped(job, kind, stored, outcome)
            except ApiError as error:
                if error.code == 409 and error.reason == "AlreadyExists":
                    await self._check_existing(job, action, resource, manifest, outcome)
                else:
                    _note_failed_create(manifest, error, outcome)
            except KubeError as error:
                outcome.error = outcome.error or error
            for text in warnings:
                outcome.add_warning("ServerWarning", f"{manifest['kind']}: {text}")

    def _kind_of(self, action: Action) -> ChildKind:
        """Return the kind of child that an action is about.

        Raises:
            ApiError: the server no longer serves it.
        """
        for kind in self.served():
            if type(action) in (kind.create, *kind.end):
                return kind
        raise ApiError(404, "NotFound", f"{type(action).__name__}: the API server no longer serves its kind")

    def _note_dropped(self, job: MXJob, created: ChildKind, stored: StoredChild, outcome: Outcome) -> None:
        """Record what the server dropped in silence: a field of a feature that is off there."""
        describe = [created.dropped] if created.rule else [kind.dropped_of_pod for kind in self.served()]
        for dropped in describe:
            if dropped is not None and (words := dropped(job, stored)):
                outcome.add_warning(_DROPPED, words)

    async def _check_existing(
        self,
        job: MXJob,
        action: CreatePod | CreateChild,
        resource: Resource,
        manifest: dict[str, Any],
        outcome: Outcome,
    ) -> None:
        """Resolve a name conflict as `plan` judges: adopt the object, wait for its deletion, or record a rejection."""
        name = manifest["metadata"]["name"]
        try:
            metadata = (await self.client.get(resource.path(job.metadata.namespace, name)))["metadata"]
        except KubeError as error:
            outcome.error = outcome.error or error
            return
        found = _found(metadata)
        if found.owner_uid == job.metadata.uid and not found.is_watched:
            await self._resolve_unwatched(job, action, resource, metadata, outcome)
            return
        holder = holder_of_name(job, _attempt(manifest["metadata"]), found)
        if holder is Holder.THE_JOB:
            self.writes.record(job.metadata.key, resource, metadata.get("resourceVersion", ""))
            return
        outcome.error = outcome.error or ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists')
        if holder is Holder.ANOTHER:
            message = (
                f'{manifest["kind"]} "{name}" exists already and does not belong to this job: delete it, or choose'
                " another name for the job"
            )
            outcome.reject(RejectedCreation(kind=manifest["kind"], name=name, message=message))

    async def _resolve_unwatched(
        self,
        job: MXJob,
        action: CreatePod | CreateChild,
        resource: Resource,
        metadata: dict[str, Any],
        outcome: Outcome,
    ) -> None:
        """Give a pod of the job's its labels back, and `plan` sees it; delete another child of an older operator.

        Whatever the plan was, it didn't know of that object: the rest waits until the watch has shown the change.
        """
        name, uid = metadata["name"], metadata["uid"]
        if isinstance(action, CreatePod):
            await self._request(
                job, RestoreLabels(name, uid, action.type, action.index, int(_attempt(metadata))), outcome
            )
        elif action.beside_pods:
            return
        else:
            path = resource.path(job.metadata.namespace, name)
            try:
                await self.client.delete(path, {"preconditions": {"uid": uid}})
            except KubeError as error:
                outcome.error = outcome.error or error
        words = f'{resource} "{name}" already exists, and lacked the labels by which this controller watches it'
        outcome.error = outcome.error or ApiError(409, "AlreadyExists", words)

    async def _end(self, job: MXJob, action: _Ending, outcome: Outcome) -> None:
        async with self.requests.turn(job.metadata.key):
            await self._request(job, action, outcome)

    def _patch(self, job: MXJob, action: _Change) -> Patch:
        if isinstance(action, SuspendJob):
            annotations = {names.SUSPENDED_BY_AIRFLOW_ANNOTATION: "true"}
            return Patch({"metadata": {"annotations": annotations}, "spec": {"runPolicy": {"suspend": True}}})
        kind = self._kind_of(action)
        if kind.patch is None:
            raise TypeError(f"{kind.resource}: nothing says how {type(action).__name__} changes one")
        return kind.patch(job, action)

    async def _request(self, job: MXJob, action: _Ending, outcome: Outcome) -> None:
        """Stop, change or delete a child, or the job; a missing or replaced one (409 on its uid) counts as done.

        An object that has changed since the version that an action names is left as it is, which is an error.
        """
        try:
            resource = self._job_actions.get(type(action)) or self._kind_of(action).resource
        except ApiError as error:  # as in `_create`
            outcome.error = outcome.error or error
            return
        try:
            if isinstance(action, _Deletion):
                path = resource.path(job.metadata.namespace, action.name)
                stored = await self.client.delete(path, _only(action))
            else:
                patch = self._patch(job, action)
                path = resource.path(job.metadata.namespace, action.name, patch.subresource)
                stored = await self.client.patch(path, _precondition(action, patch.body))
        except ApiError as error:
            has_changed = error.code == 409 and bool(_version(action))
            if error.code not in {404, 409} or has_changed:
                outcome.error = outcome.error or error
        except KubeError as error:
            outcome.error = outcome.error or error
        else:
            metadata = stored["metadata"]
            if type(action) in self._job_actions or has_watched_label(metadata.get("labels")):
                self.writes.record(job.metadata.key, resource, metadata.get("resourceVersion", ""))


def _sorted_out(actions: Iterable[Action]) -> tuple[list[CreateChild], list[CreatePod], list[_Ending]]:
    """Return the children to create, the pods to create, and all else; mypy knows by this that no action is dropped."""
    children: list[CreateChild] = []
    pods: list[CreatePod] = []
    rest: list[_Ending] = []
    for action in actions:
        if isinstance(action, CreateChild):
            children.append(action)
        elif isinstance(action, CreatePod):
            pods.append(action)
        elif isinstance(action, _Ending):
            rest.append(action)
        else:
            assert_never(action)
    return children, pods, rest


def _found(metadata: dict[str, Any]) -> Found:
    """Return the facts of an object that has the name of a child to be created."""
    owner: dict[str, Any] = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), {})
    return Found(
        owner_api_version=owner.get("apiVersion", ""),
        owner_kind=owner.get("kind", ""),
        owner_name=owner.get("name", ""),
        owner_uid=owner.get("uid", ""),
        attempt=_attempt(metadata),
        deleting="deletionTimestamp" in metadata,
        is_watched=has_watched_label(metadata.get("labels")),
    )


def _attempt(metadata: dict[str, Any]) -> str:
    """Return the attempt that a child is of; a Service belongs to all."""
    _, _, annotated = (metadata.get("annotations") or {}).get(names.REPLICA_ANNOTATION, "").rpartition("/")
    return annotated or (metadata.get("labels") or {}).get(names.LABEL_ATTEMPT) or "0"


def _only(action: _Deletion) -> dict[str, Any]:
    """Return delete options with preconditions: the object's uid, and the resource version if the action names one."""
    preconditions = {"uid": action.uid}
    if version := _version(action):
        preconditions["resourceVersion"] = version
    grace = action.grace if isinstance(action, DeletePod) else None  # None: the object's own
    return {
        **({} if grace is None else {"gracePeriodSeconds": grace}),
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": action.propagation if isinstance(action, DeleteChild) else "Background",
    }


def _precondition(action: _Change, body: dict[str, Any]) -> dict[str, Any]:
    """Return a patch with preconditions: the object's uid, and the resource version if the action names one."""
    version = _version(action)
    required = {"uid": action.uid, **({"resourceVersion": version} if version else {})}
    return {**body, "metadata": {**body.get("metadata", {}), **required}}


def _version(action: _Ending) -> str:
    """Return the resource version that an action requires; empty where it holds for any."""
    return getattr(action, "resource_version", "")


def _note_failed_create(manifest: dict[str, Any], error: ApiError, outcome: Outcome) -> None:
    outcome.error = outcome.error or error
    namespace_is_going = any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes", ()))
    if not error.is_transient and error.code != 404 and not namespace_is_going:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        outcome.reject(
            RejectedCreation(kind=kind, name=name, code=error.code, reason=error.reason, message=error.message)
        )
