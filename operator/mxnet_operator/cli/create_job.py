"""The job of a manifest on a server: made, or found again where an earlier run of the same command has made it."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.kinds import Kind
from mxnet_operator.cli.connection import Target
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.job_kinds import in_v1_words, kind_of_job, not_served
from mxnet_operator.cli.jobs import PATIENCE, Patience, until_gone
from mxnet_operator.cli.terminal import say
from mxnet_operator.kube.resources import Resource

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

Job = dict[str, Any]


def check_adoptable(manifest: Job, label: str) -> None:
    """Refuse a manifest by which a job can't be found again.

    Raises:
        CommandError: it has no name, or doesn't have the label.
    """
    metadata = manifest["metadata"]
    if not metadata.get("name"):
        raise CommandError(
            "--adopt finds a job by its name, and metadata.generateName makes another each time",
            hint="give metadata.name, the same whenever the same run starts this again",
            code=Exit.USAGE,
        )
    if not _labels(manifest).get(label):
        raise CommandError(
            f"--adopt {label}: the manifest doesn't have this label, so nothing says whose job it is",
            hint=f"give it one under metadata.labels, with a value that only this run has: {label}: RUN",
            code=Exit.USAGE,
        )


async def create_job(client: "Client", manifest: Job, target: Target) -> Job:
    """Make the job; in v1's words.

    Raises:
        CommandError: one of its name is there, or the server lacks the kind.
        ApiError, ApiUnavailable: what else the server says.
    """
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    kind, namespace = kind_of_job(manifest), _namespace(client, manifest, target)
    try:
        return await _post(client, manifest, kind, namespace)
    except ApiError as error:
        if not _is_taken(error):
            raise
        name = manifest["metadata"].get("name") or manifest["metadata"]["generateName"]
        raise CommandError(
            f"a job {name} is there already in namespace {namespace}",
            hint=f"follow it: mxjob logs -f {name}; or delete it first: mxjob delete {name};"
            " or give metadata.generateName instead of a name",
            code=Exit.API,
        ) from error


async def create_or_adopt(
    client: "Client", manifest: Job, target: Target, label: str, *, patience: float = PATIENCE
) -> Job:
    """Make the job, or find it, where one of its name is there that has the manifest's value of `label` and owners.

    One that is being deleted, whosever it is, counts as gone, and is waited for. One that is finished and was made from
    other replicas is refused: its result would be taken for theirs. Goes on through absences of the
    server, also where it doesn't say whether it has made the job: it is asked again, by the same name.

    Raises:
        CommandError: a job of the name is there that isn't this run's, or ended with other replicas.
        ApiError, ApiUnavailable: the server refuses, or stayed away for longer than `patience` (seconds).
    """
    from mxnet_operator.kube.client import ApiError, ApiUnavailable  # noqa: PLC0415

    manifest = _with_digest(manifest)
    with_server = Patience(patience)
    while True:
        try:
            try:
                return await _post(client, manifest, kind_of_job(manifest), _namespace(client, manifest, target))
            except ApiError as error:
                if not _is_taken(error):
                    raise
            found = await find_job_of(client, manifest, target)
            with_server.answered()
            if found is None:
                continue
            if "deletionTimestamp" in found["metadata"]:
                say(f"job {found['metadata']['name']} is there already and being deleted: waiting until it is gone")
                await until_gone(client, found)
                continue
            if not is_own(found, manifest, label):
                raise _foreign(found, manifest, label)
            if job_state(found) in TERMINAL and _digest(found) not in {None, _digest(manifest)}:
                raise _of_other_replicas(found)
            say(f"{found['kind']} {found['metadata']['name']} is there already and this run's: following it")
            return found
        except (ApiUnavailable, ApiError) as error:
            if isinstance(error, ApiError) and not error.is_transient:
                raise
            await with_server.bear(error)


async def find_job_of(client: "Client", manifest: Job, target: Target) -> Job | None:
    """The job of the manifest's name, in v1's words; None where there is none.

    Raises:
        ApiError, ApiUnavailable: the server doesn't tell.
    """
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    path = _resource(manifest, kind_of_job(manifest)).path(_namespace(client, manifest, target))
    try:
        found = await client.get(f"{path}/{manifest['metadata']['name']}")
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    return in_v1_words(found)


def is_own(job: Job, manifest: Job, label: str) -> bool:
    """Whether a job has the manifest's value of the label, and its owners, by uid."""
    return _labels(job).get(label) == _labels(manifest)[label] and _owners(manifest) <= _owners(job)


async def _post(client: "Client", manifest: Job, kind: Kind, namespace: str) -> Job:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    path = _resource(manifest, kind).path(namespace)
    try:
        job = await client.create(path, manifest, {"fieldManager": "mxjob", "fieldValidation": "Strict"})
    except ApiError as error:
        if error.code == 404 and not error.details.get("name"):  # else it is the namespace that isn't there
            raise not_served(kind, client.server) from error
        raise
    say(f"{kind.kind} {job['metadata']['name']} created in namespace {job['metadata']['namespace']}")
    return in_v1_words(job)


def _resource(manifest: Job, kind: Kind) -> Resource:
    """Where the server takes the manifest, in the version in which it is written."""
    return Resource(kind.group, manifest["apiVersion"].rpartition("/")[2], kind.plural)


def _namespace(client: "Client", manifest: Job, target: Target) -> str:
    given: str | None = manifest["metadata"].get("namespace")
    namespace = target.namespace or given or client.namespace
    if given is not None and given != namespace:
        raise CommandError(f"the manifest names the namespace {given}, --namespace {namespace}", code=Exit.USAGE)
    return namespace


def _is_taken(error: Any) -> bool:
    return bool(error.code == 409 and error.reason == "AlreadyExists")


def _foreign(job: Job, manifest: Job, label: str) -> CommandError:
    name, theirs, ours = job["metadata"]["name"], _labels(job).get(label), _labels(manifest)[label]
    differs = f"its label {label} is {theirs!r}, not {ours!r}" if theirs != ours else "its owner is another"
    return CommandError(
        f"a job {name} is there already, and isn't this run's: {differs}",
        hint="it was left as it is. Delete it, or give this job another name",
        code=Exit.API,
    )


def _of_other_replicas(job: Job) -> CommandError:
    name = job["metadata"]["name"]
    return CommandError(
        f"the job {name} is finished ({job_state(job)}), and had other replicas than this manifest: how it ended says"
        " nothing about these",
        hint=f"delete it, and the same command makes another: mxjob delete {name}",
        code=Exit.API,
    )


def _with_digest(manifest: Job) -> Job:
    """The manifest with a mark of the replicas that it asks for; the server's copy may differ by what webhooks add."""
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
