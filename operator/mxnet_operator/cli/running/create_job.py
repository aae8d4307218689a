"""Creation of a job and of the claims that it lacks, or adoption of the job that an earlier run created."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.manifest_text import dump_all
from mxnet_operator.cli.errors import CommandError, Exit, UsageError
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.local_files import claim_folder, is_local
from mxnet_operator.cli.server.connection import Client, Target
from mxnet_operator.cli.server.job_kinds import kind_not_served
from mxnet_operator.client.job_client import JobClient
from mxnet_operator.client.jobs import in_v1_words, kind_of_job, until_gone
from mxnet_operator.client.outage import RETRY_SECONDS, Outage, Retries
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, Resource
from mxnet_operator.readers.volumes import claims_needed

Job = dict[str, Any]

_CLAIM: Final = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "10Gi"}}}
"""A claim that the pods of a job can share, on whichever nodes they run."""


def check_adoptable(manifest: Job, label: str) -> None:
    """Reject a manifest whose job could not be found again by `--adopt`.

    Raises:
        CommandError: it has no name, or doesn't have the label.
    """
    metadata = manifest["metadata"]
    if not metadata.get("name"):
        raise UsageError(
            "--adopt finds a job by its name, but metadata.generateName generates a new name each time",
            hint="set metadata.name, to the same value whenever this run is repeated",
        )
    if not _labels(manifest).get(label):
        raise UsageError(
            f"--adopt {label}: the manifest doesn't have this label, so this run's job could not be recognized",
            hint=f"set it under metadata.labels, to a value that only this run has: {label}: RUN",
        )


async def create_job(client: Client, manifest: Job, target: Target, objects: Sequence[Job] = ()) -> Job:
    """Create the objects beside the job, the claims that the local cluster lacks, then the job; return it as v1.

    Raises:
        CommandError: a job of its name exists, or the server doesn't serve the kind.
        ApiError, ApiUnavailable: the request fails otherwise.
    """
    namespace = _namespace(client, manifest, target)
    await _apply(client, [*objects, *await _missing_claims(client, manifest, namespace, objects)], namespace)
    try:
        return await _post(client, manifest, namespace)
    except ApiError as error:
        if not _is_taken(error):
            raise
        name = manifest["metadata"].get("name") or manifest["metadata"]["generateName"]
        raise CommandError(
            f"job {name} already exists in namespace {namespace}",
            hint=f"follow it: mxjob logs -f {name}; or delete it first: mxjob delete {name};"
            " or set metadata.generateName instead of a name",
            code=Exit.API,
        ) from error


async def create_or_adopt(
    client: Client,
    manifest: Job,
    target: Target,
    label: str,
    objects: Sequence[Job] = (),
    *,
    retry_timeout: float = RETRY_SECONDS,
) -> Job:
    """Create the job, or adopt the existing one of its name if its `label` and owners are the manifest's.

    An existing job that is terminating counts as absent: its deletion is waited for. A finished job with a different
    spec.mxReplicaSpecs is rejected, since its result is not this manifest's. An outage of the server is waited out,
    also where it is unknown whether the job was created: the request is repeated with the same name.

    Raises:
        CommandError: the existing job belongs to another run, or finished with a different spec.mxReplicaSpecs; or a
            quota is exceeded (TRY_AGAIN).
        ApiError, ApiUnavailable: the server rejects the request, or is away for longer than `retry_timeout` s.
    """
    manifest = _with_digest(manifest)
    retries = Retries(Outage(retry_timeout, say=say))
    while True:
        try:
            try:
                namespace = _namespace(client, manifest, target)
                is_here = is_local(client.server)  # elsewhere a runner has no right to look for claims
                claims = await _missing_claims(client, manifest, namespace, objects) if is_here else []
                await _apply(client, [*objects, *claims], namespace)
                return await _post(client, manifest, namespace)
            except ApiError as error:
                if not _is_taken(error):
                    raise
            found = await find_job_of(client, manifest, target)
            retries.answered()
            if found is None:
                continue
            if "deletionTimestamp" in found["metadata"]:
                say(f"job {found['metadata']['name']} exists and is being deleted: waiting until it is gone")
                await until_gone(client, found)
                continue
            if not is_own(found, manifest, label):
                raise _foreign(found, manifest, label)
            if job_state(found) in TERMINAL and _digest(found) not in {None, _digest(manifest)}:
                raise _of_other_replicas(found)
            say(f"{found['kind']} {found['metadata']['name']} already exists and belongs to this run: following it")
            return found
        except (ApiUnavailable, ApiError) as error:
            if isinstance(error, ApiError) and error.is_quota:
                raise CommandError(
                    f"the job can't be created now: {error}",
                    hint="run the same command again once the quota has room",
                    code=Exit.TRY_AGAIN,
                ) from error
            await retries.pause_or_raise(error)


async def find_job_of(client: Client, manifest: Job, target: Target) -> Job | None:
    """Find the job of the manifest's name, in the v1 format; None where there is none.

    Raises:
        ApiError, ApiUnavailable: the server doesn't tell.
    """
    resource, namespace = _resource(manifest), _namespace(client, manifest, target)
    found = await client.find(resource.path(namespace, manifest["metadata"]["name"]), shape=Stored)
    return None if found is None else in_v1_words(found)


def is_own(job: Job, manifest: Job, label: str) -> bool:
    """Whether a job has the manifest's value of the label and, by uid, the manifest's owners."""
    return _labels(job).get(label) == _labels(manifest)[label] and _owners(manifest) <= _owners(job)


async def _apply(client: Client, objects: Sequence[Job], namespace: str) -> None:
    """Create objects, or patch the ones that exist: a claim keeps its volume, a ConfigMap gets its new content."""
    for each in objects:
        kind, name = each["kind"], each["metadata"]["name"]
        place = each["metadata"].get("namespace") or namespace
        try:
            is_new = await JobClient(client).apply_object(each, place)
        except ApiError as error:
            if error.is_transient:
                raise
            raise CommandError(
                f"{kind} {name} of the manifest: {error}",
                hint="no job was created. Create the object in another way, and leave it out of the manifest",
                code=Exit.API,
            ) from error
        if is_new:
            say(f"{kind} {name} created in namespace {place}")
        else:
            say(f"{kind} {name} already exists in namespace {place}; it has what the manifest says")


async def _post(client: Client, manifest: Job, namespace: str) -> Job:
    kind, path = kind_of_job(manifest), _resource(manifest).path(namespace)
    try:
        job = await client.create(path, manifest, {"fieldManager": "mxjob", "fieldValidation": "Strict"})
    except ApiError as error:
        if error.code == 404 and not error.details.get("name"):  # else the namespace doesn't exist
            raise kind_not_served(kind, client.server) from error
        raise
    say(f"{kind.kind} {job['metadata']['name']} created in namespace {job['metadata']['namespace']}")
    return in_v1_words(job)


def _resource(manifest: Job) -> Resource:
    kind = kind_of_job(manifest)
    return Resource(kind.group, manifest["apiVersion"].rpartition("/")[2], kind.plural)


def _namespace(client: Client, manifest: Job, target: Target) -> str:
    given: str | None = manifest["metadata"].get("namespace")
    namespace = target.namespace or given or client.namespace
    if given is not None and given != namespace:
        raise UsageError(f"the manifest's namespace is {given}, but --namespace is {namespace}")
    return namespace


def _is_taken(error: Any) -> bool:
    return bool(error.code == 409 and error.reason == "AlreadyExists")


def _foreign(job: Job, manifest: Job, label: str) -> CommandError:
    name, theirs, ours = job["metadata"]["name"], _labels(job).get(label), _labels(manifest)[label]
    differs = f"its label {label} is {theirs!r}, not {ours!r}" if theirs != ours else "its owner is another"
    return CommandError(
        f"job {name} already exists and belongs to another run: {differs}",
        hint="it was not changed. Delete it, or give this job another name",
        code=Exit.API,
    )


def _of_other_replicas(job: Job) -> CommandError:
    name = job["metadata"]["name"]
    return CommandError(
        f"job {name} has already finished ({job_state(job)}), with another spec.mxReplicaSpecs than this manifest's",
        hint=f"delete it, then run the same command again: mxjob delete {name}",
        code=Exit.API,
    )


def _with_digest(manifest: Job) -> Job:
    """Annotate the manifest with a digest of its replica specs, which on the server webhooks may change."""
    asked = json.dumps(in_v1_words(manifest)["spec"].get("mxReplicaSpecs"), sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.REPLICAS_DIGEST_ANNOTATION: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _digest(job: Job) -> str | None:
    annotations: dict[str, str] = job["metadata"].get("annotations") or {}
    return annotations.get(names.REPLICAS_DIGEST_ANNOTATION)


def _labels(job: Job) -> dict[str, str]:
    return job["metadata"].get("labels") or {}


def _owners(job: Job) -> set[str]:
    return {owner["uid"] for owner in job["metadata"].get("ownerReferences") or ()}


async def _missing_claims(client: Client, job: Job, namespace: str, objects: Sequence[Job]) -> list[Job]:
    """Return the claims to create for `job` on the local cluster; on another, print them for the user to create.

    `objects` are created before the job. On other clusters a claim that this user may not read counts as present.
    """
    local = is_local(client.server)
    given = {each["metadata"]["name"] for each in objects if each["kind"] == "PersistentVolumeClaim"}
    specs = (in_v1_words(job)["spec"].get("mxReplicaSpecs") or {}).values()
    mounted = {name for each in specs for name in claims_needed(each["template"]["spec"])}
    missing = []
    for name in sorted(mounted - given):
        try:
            if await client.find(PERSISTENT_VOLUME_CLAIMS.path(namespace, name)) is not None:
                continue
        except ApiError:
            if local:
                raise
            continue
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": _CLAIM}
        if local:
            say(f"there is no PersistentVolumeClaim {name} yet; its folder is {claim_folder(namespace, name)}")
            missing.append(claim)
        else:
            say(f"there is no PersistentVolumeClaim {name}, and the job waits for it; to create it:")
            say(f"kubectl apply -n {namespace} -f - <<'EOF'\n{dump_all([claim])}EOF")
    return missing
