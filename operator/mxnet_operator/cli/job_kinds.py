"""Jobs of every kind on a server: where those of each live, which one a name means, and each in v1's words."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mxnet_operator.api import forms
from mxnet_operator.api.forms.v1 import V1
from mxnet_operator.api.kinds import ALL, LEGACY, MXJOB, Kind, kind_of
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.controller.resources import resource_of
from mxnet_operator.kube.resources import Resource

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

Job = dict[str, Any]


def kind_of_job(job: Job) -> Kind:
    """The kind of a job that a server returned, or of a manifest that is valid."""
    kind = kind_of(job["apiVersion"], job["kind"])
    if kind is None:
        raise CommandError(f"{job['kind']} in {job['apiVersion']} is no kind of job", code=Exit.USAGE)
    return kind


def resource_of_job(job: Job) -> Resource:
    """Where a job lives."""
    return resource_of(kind_of_job(job))


def type_name(kind: Kind) -> str:
    """The kind as kubectl writes it before a name: `mxjob.kubeflow.org`."""
    return f"{kind.singular}.{kind.group}"


def in_v1_words(job: Job) -> Job:
    """A job with the spec and the status that it means in v1; apiVersion and kind stay its own."""
    form = forms.form_of(job)
    if form is V1:
        return job
    spec = {"jobMode": "", "mxReplicaSpecs": {}} if forms.errors(job) else forms.to_v1(job)["spec"]
    return {**job, "spec": spec, "status": msgspec.to_builtins(forms.status_from_wire(form, job.get("status") or {}))}


async def stored_jobs(client: "Client", namespace: str | None, params: dict[str, str]) -> list[Job]:
    """The jobs of every kind, as they are stored, by namespace and name.

    Raises:
        ApiError: those of kubeflow.org can't be listed; other kinds may be absent, or not ours to see.
    """
    found = await asyncio.gather(*(_list(client, kind, namespace, params) for kind in ALL))
    jobs = [job for of_kind in found for job in of_kind]
    return sorted(jobs, key=lambda job: (job["metadata"]["namespace"], job["metadata"]["name"]))


async def find_job(client: "Client", namespace: str, name: str) -> Job:
    """The job that `NAME`, or `TYPE/NAME` as `mxnetjob/digits`, means, as it is stored.

    Raises:
        CommandError: it isn't there, or several kinds have one of the name.
    """
    type_given, _, bare = name.rpartition("/")
    kinds = _kinds_named(type_given) if type_given else ALL
    found = [job for job in await asyncio.gather(*(_get(client, kind, namespace, bare) for kind in kinds)) if job]
    if len(found) > 1:
        named = [f"{type_name(kind_of_job(job))}/{bare}" for job in found]
        raise CommandError(
            f"{len(found)} jobs in namespace {namespace} are named {bare}",
            hint=f"say which: {' or '.join(named)}",
            code=Exit.USAGE,
        )
    if not found:
        raise not_there(namespace, name)
    return found[0]


def not_there(namespace: str, name: str) -> CommandError:
    """What to say where there is no such job."""
    return CommandError(f"no MXJob {name} in namespace {namespace}", hint="the jobs that are there: mxjob get -A")


def not_served(kind: Kind, server: str) -> CommandError:
    """What to say where a server lacks the kind of a manifest."""
    legacy = kind in LEGACY
    option = " --legacy" if legacy else ""
    here = "; for the cluster on this machine: mxjob local up --legacy" if legacy else ""
    return CommandError(
        f"the server {server} doesn't know {kind.name}",
        hint=f"install them: mxnet-operator crd{option} | kubectl apply -f -{here}",
        code=Exit.API,
    )


def _kinds_named(text: str) -> Sequence[Kind]:
    kinds = [
        kind
        for kind in ALL
        if text.lower() in {kind.singular, kind.plural, type_name(kind), kind.name, *kind.short_names}
    ]
    if not kinds:
        types = ", ".join(map(type_name, ALL))
        raise CommandError(f"{text} is no kind of job", hint=f"the kinds are {types}", code=Exit.USAGE)
    return kinds


async def _list(client: "Client", kind: Kind, namespace: str | None, params: dict[str, str]) -> list[Job]:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    try:
        listed = await client.list(resource_of(kind).path(namespace), params)
    except ApiError as error:
        if kind is MXJOB or error.code not in {403, 404}:
            raise
        return []
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **job} for job in listed["items"]]


async def _get(client: "Client", kind: Kind, namespace: str, name: str) -> Job | None:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    try:
        return await client.get(resource_of(kind).path(namespace, name))
    except ApiError as error:
        if error.code == 404 or (error.code == 403 and kind is not MXJOB):
            return None
        raise
