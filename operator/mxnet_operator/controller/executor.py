"""Carry out a plan's actions, many at a time; what each came to is read from the server's answer, never assumed."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.api.types import MXJob
from mxnet_operator.build.environment import has_mx_config
from mxnet_operator.build.fail_fast import can_take_hook, wants_hook
from mxnet_operator.build.metadata import pod_labels
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.fail_fast import provide_hook
from mxnet_operator.controller.own_writes import OwnWrites
from mxnet_operator.controller.resources import resource_of
from mxnet_operator.controller.turns import Turns
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan.actions import (
    Action,
    CreateChild,
    CreatePod,
    DeleteChild,
    DeleteJob,
    DeletePod,
    Event,
    RestoreLabels,
    StopPod,
    SuspendJob,
)
from mxnet_operator.plan.refusal import Refused
from mxnet_operator.plan.taken_names import Found, Holder, holder_of_name

_NO_HOOK: Final = "FailFastHookMissing"
_REMEDY: Final = (
    "A worker whose Python raises will hang until a deadline, as MXNet has it: set the container's command, or"
    " spec.runPolicy.activeDeadlineSeconds; spec.runPolicy.failFast: false ends this warning"
)

_NO_MX_CONFIG: Final = (
    "The replicas get no variable MX_CONFIG: with the names of all of them it would be longer than Linux takes"
    " (128 KiB). MXNet itself needs only DMLC_*, which they have; a script that reads MX_CONFIG needs fewer replicas,"
    " or a job with a shorter name"
)

_Ending = StopPod | RestoreLabels | DeletePod | DeleteChild | DeleteJob | SuspendJob


class Outcome:
    """What carrying out came to: Events to tell, and the first error if something is left to do."""

    def __init__(self) -> None:
        """Nothing went wrong yet."""
        self.events: dict[Event, None] = {}
        self.refused: Refused | None = None
        self.error: KubeError | None = None

    def refuse(self, refused: Refused) -> None:
        """Note that a child can't be created, and have it told; what can never be created is kept over what may be."""
        self.events[refused.event] = None
        if self.refused is None or (refused.is_final and not self.refused.is_final):
            self.refused = refused

    def tell(self, reason: str, message: str) -> None:
        """Have a warning told, once however often it comes."""
        self.events[Event("Warning", reason, message)] = None


class Executor:
    """Does what plans say for the jobs of one kind."""

    def __init__(
        self,
        client: Client,
        writes: OwnWrites,
        turns: Turns | None = None,
        *,
        kind: Kind = MXJOB,
        fail_fast_hook: bool = False,
        children: Sequence[ChildKind] = KINDS,
    ) -> None:
        """`writes` learns the version of everything written; `turns` is for executors that share their limit.

        With `fail_fast_hook`, workers get the hook by a ConfigMap; without, whoever runs the pods sees to it.
        """
        self._client = client
        self._writes = writes
        self._turns = turns or Turns()
        job = resource_of(kind)
        self._resources: dict[type, Resource] = {DeleteJob: job, SuspendJob: job}
        self._resources |= {action: kind.resource for kind in children for action in kind.end}
        self._kinds = {kind.create: kind for kind in children}
        self._fail_fast_hook = fail_fast_hook

    async def carry_out(self, job: MXJob, actions: Iterable[Action]) -> Outcome:
        """Carry out the actions for a job with defaults: what pods rely on first (Services: names), then all the rest.

        Of a gang the pod that its others connect to comes last, and only if all of them could be created.
        """
        outcome = Outcome()
        ordered = list(actions)
        first = [action for action in ordered if isinstance(action, CreateChild)]
        await asyncio.gather(*(self._create(job, action, outcome) for action in first))
        pods = [action for action in ordered if isinstance(action, CreatePod)]
        if pods and not has_mx_config(job):
            outcome.tell("MXConfigTooLong", _NO_MX_CONFIG)
        has_hook = await self._provide_hook(job, pods, outcome)
        if outcome.error is None:
            await asyncio.gather(
                *(self._create(job, pod, outcome, has_hook=has_hook) for pod in pods if not pod.is_last),
                *(self._end(job, action, outcome) for action in ordered if isinstance(action, _Ending)),
            )
        if outcome.error is None:
            await asyncio.gather(*(self._create(job, pod, outcome, has_hook=has_hook) for pod in pods if pod.is_last))
        return outcome

    async def _provide_hook(self, job: MXJob, pods: list[CreatePod], outcome: Outcome) -> bool:
        """Whether the workers among these pods can have the fail-fast hook; if not, the user is told why."""
        wanting = next((pod.type for pod in pods if wants_hook(job, pod.type)), None)
        if wanting is None or not self._fail_fast_hook or outcome.error is not None:
            return False
        if not can_take_hook(job.spec.mx_replica_specs[wanting].template["spec"]):
            outcome.tell(_NO_HOOK, f"{wanting}: the template names no command to put the hook before. {_REMEDY}")
            return False
        try:
            async with self._turns.turn(job.metadata.key):
                problem = await provide_hook(self._client, job.metadata.namespace)
        except KubeError as error:
            outcome.error = error
            return False
        if problem:
            outcome.tell(_NO_HOOK, f"{wanting}: {problem}. {_REMEDY}")
        return not problem

    async def _create(
        self, job: MXJob, action: CreatePod | CreateChild, outcome: Outcome, *, has_hook: bool = False
    ) -> None:
        async with self._turns.turn(job.metadata.key):
            if outcome.error is not None:  # What refused one pod (a quota, a bad template) will refuse the next.
                return
            kind = self._kinds[type(action)]
            resource, manifest = kind.resource, kind.build(job, action, has_hook)
            warnings: list[str] = []
            try:
                stored = await self._client.create(resource.path(job.metadata.namespace), manifest, warnings=warnings)
                self._writes.record(job.metadata.key, resource, stored)
            except ApiError as error:
                if error.code == 409 and error.reason == "AlreadyExists":
                    await self._check_existing(job, action, resource, manifest, outcome)
                else:
                    _note_failed_create(manifest, error, outcome)
            except KubeError as error:
                outcome.error = outcome.error or error
            for text in warnings:
                outcome.tell("ServerWarning", f"{manifest['kind']}: {text}")

    async def _check_existing(
        self,
        job: MXJob,
        action: CreatePod | CreateChild,
        resource: Resource,
        manifest: dict[str, Any],
        outcome: Outcome,
    ) -> None:
        """Do with what has the name already as `plan` judges: take it for ours, wait for it to go, or tell the user."""
        name = manifest["metadata"]["name"]
        try:
            metadata = (await self._client.get(resource.path(job.metadata.namespace, name)))["metadata"]
        except KubeError as error:
            outcome.error = outcome.error or error
            return
        found = _found(metadata)
        holder = holder_of_name(job, _attempt(manifest["metadata"]), found)
        if holder is Holder.THE_JOB:
            self._writes.record(job.metadata.key, resource, {"metadata": metadata})
            if isinstance(action, CreatePod) and not found.is_watched:
                labels = RestoreLabels(name, metadata["uid"], action.type, action.index, action.attempt)
                if not await self._request(job, labels, outcome):
                    outcome.error = outcome.error or ApiError(404, "NotFound", f'{resource} "{name}" has gone')
            return
        outcome.error = outcome.error or ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists')
        if holder is Holder.ANOTHER:
            message = (
                f'{manifest["kind"]} "{name}" exists already and does not belong to this job: delete it, or name the'
                " job otherwise"
            )
            outcome.refuse(Refused(kind=manifest["kind"], name=name, message=message))

    async def _end(self, job: MXJob, action: _Ending, outcome: Outcome) -> None:
        async with self._turns.turn(job.metadata.key):
            await self._request(job, action, outcome)

    async def _request(self, job: MXJob, action: _Ending, outcome: Outcome) -> bool:
        """Stop, change or delete a child, or the job; gone, or another one by now (409 on its uid), is as good.

        A job that has changed since the version that an action names is left as it is, which is an error. Returns
        whether the object was still there.
        """
        resource = self._resources[type(action)]
        path = resource.path(job.metadata.namespace, action.name)
        version = action.resource_version if isinstance(action, DeleteJob | SuspendJob) else ""
        try:
            if isinstance(action, StopPod):
                body = {"metadata": {"uid": action.uid}, "spec": {"activeDeadlineSeconds": 1}}
                stored = await self._client.patch(path, body)
            elif isinstance(action, RestoreLabels):
                labels = pod_labels(job, action.type, action.index, action.attempt)
                stored = await self._client.patch(path, {"metadata": {"uid": action.uid, "labels": labels}})
            elif isinstance(action, SuspendJob):
                stored = await self._client.patch(path, _suspension(action))
            else:
                stored = await self._client.delete(path, _only(action))
        except ApiError as error:
            has_changed = error.code == 409 and bool(version)
            if error.code not in {404, 409} or has_changed:
                outcome.error = outcome.error or error
        except KubeError as error:
            outcome.error = outcome.error or error
        else:
            if stored.get("kind") != "Status":
                self._writes.record(job.metadata.key, resource, stored)
            return True
        return False


def _found(metadata: dict[str, Any]) -> Found:
    """The facts of an object that has the name of a child that was to be created."""
    owner: dict[str, Any] = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), {})
    is_labelled = (metadata.get("labels") or {}).get(names.LABEL_OPERATOR_NAME) == names.OPERATOR_NAME
    return Found(
        owner_api_version=owner.get("apiVersion", ""),
        owner_kind=owner.get("kind", ""),
        owner_name=owner.get("name", ""),
        owner_uid=owner.get("uid", ""),
        attempt=_attempt(metadata),
        deleting="deletionTimestamp" in metadata,
        is_watched=is_labelled or names.REPLICA_ANNOTATION not in (metadata.get("annotations") or {}),
    )


def _attempt(metadata: dict[str, Any]) -> str:
    """The attempt that a child is of; a Service is of all."""
    _, _, annotated = (metadata.get("annotations") or {}).get(names.REPLICA_ANNOTATION, "").rpartition("/")
    return annotated or (metadata.get("labels") or {}).get(names.LABEL_ATTEMPT) or "0"


def _only(action: DeletePod | DeleteChild | DeleteJob) -> dict[str, Any]:
    """Options of a deletion that must not hit a namesake, nor a job that has changed since it was decided about."""
    preconditions = {"uid": action.uid}
    if isinstance(action, DeleteJob) and action.resource_version:
        preconditions["resourceVersion"] = action.resource_version
    grace = action.grace if isinstance(action, DeletePod) else None  # None: the object's own
    return {
        **({} if grace is None else {"gracePeriodSeconds": grace}),
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": "Background",
    }


def _suspension(action: SuspendJob) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": action.uid,
            "resourceVersion": action.resource_version,
            "annotations": {names.SUSPENDED_BY_AIRFLOW_ANNOTATION: "true"},
        },
        "spec": {"runPolicy": {"suspend": True}},
    }


def _note_failed_create(manifest: dict[str, Any], error: ApiError, outcome: Outcome) -> None:
    outcome.error = outcome.error or error
    namespace_is_going = any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes", ()))
    if not error.is_transient and error.code != 404 and not namespace_is_going:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        outcome.refuse(Refused(kind=kind, name=name, code=error.code, reason=error.reason, message=error.message))
