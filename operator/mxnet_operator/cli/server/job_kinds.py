"""Jobs of every kind on a server: list them, find one by its name, and read it in the v1 format."""

import asyncio
import contextlib
import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from mxnet_operator.api.kinds import ALL, LEGACY, Kind
from mxnet_operator.api.names import REPLICA_TYPES
from mxnet_operator.cli.errors import CommandError, Exit, UsageError, show_error
from mxnet_operator.cli.server.connection import Client
from mxnet_operator.client.jobs import in_v1_words, kind_of_job, main_replica, replicas
from mxnet_operator.client.stored_jobs import stored_job, stored_jobs
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, KubeError
from mxnet_operator.kube.resources import NAMESPACES, is_path_segment
from mxnet_operator.readers.enumeration import first_names

Job = dict[str, Any]

_SHOWN: Final = 5
_REPLICA: Final = re.compile(rf"(?:{'|'.join(REPLICA_TYPES)})-\d+", re.IGNORECASE)


def type_name(kind: Kind) -> str:
    """Format a kind as kubectl writes it before a name: `mxjob.kubeflow.org`."""
    return f"{kind.singular}.{kind.group}"


async def find_job(client: Client, namespace: str, name: str) -> Job:
    """Find the job named by `NAME`, or `TYPE/NAME` such as `mxnetjob/digits`, as stored.

    Raises:
        CommandError: it doesn't exist, jobs of several kinds have the name, or the name is empty.
    """
    type_given, slash, bare = name.rpartition("/")
    if not bare:
        raise UsageError("a job's name can't be empty", hint="list all jobs: mxjob get")
    if slash and _REPLICA.fullmatch(bare):
        raise UsageError(
            f"{name} names a replica, which this command takes as an option, if at all",
            hint=f"for its log: mxjob logs {type_given} --replica {bare}",
        )
    kinds = _kinds_named(type_given) if slash else ALL
    if not is_path_segment(bare):
        raise job_not_found(namespace, name)
    found = [job for job in await asyncio.gather(*(stored_job(client, kind, namespace, bare) for kind in kinds)) if job]
    if len(found) > 1:
        named = [f"{type_name(kind_of_job(job))}/{bare}" for job in found]
        raise UsageError(
            f"{len(found)} jobs in namespace {namespace} are named {bare}",
            hint=f"name one of them: {' or '.join(named)}",
        )
    if not found:
        raise job_not_found(namespace, name, await _meant(client, namespace, bare))
    return found[0]


async def _meant(client: Client, namespace: str, name: str) -> list[str]:
    """Return the names of the jobs that may be meant: those that begin so, else one that is like it.

    None where there are none, or the jobs can't be listed.
    """
    with contextlib.suppress(KubeError):
        known = [job["metadata"]["name"] for job in await stored_jobs(client, namespace, {})]
        begin_so = sorted(each for each in known if each.startswith(name))
        return begin_so or difflib.get_close_matches(name, known, n=1)
    return []


async def for_each(
    client: Client, namespace: str, names: Sequence[str], work: Callable[[str, Job], Awaitable[None]]
) -> Exit:
    """Do something with every job that is named, at the same time; show an error for each that doesn't exist.

    What the server rejects is raised once all are done.
    """

    async def code_of(name: str) -> Exit:
        try:
            await work(name, await get_job(client, namespace, name))
        except CommandError as error:
            show_error(error)
            return error.code
        return Exit.OK

    codes = await asyncio.gather(*map(code_of, dict.fromkeys(names)), return_exceptions=True)
    for error in codes:
        if isinstance(error, BaseException):
            raise error
    return max(code for code in codes if isinstance(code, Exit))


async def namespace_missing(client: Client, namespace: str) -> bool:
    """Whether the server says that there is no such namespace; False where it doesn't tell."""
    try:
        return await client.find(NAMESPACES.path(name=namespace)) is None
    except (ApiError, ApiUnavailable):
        return False


def job_not_found(namespace: str, name: str, meant: Sequence[str] = ()) -> CommandError:
    """Build the error for a job that doesn't exist; `meant` are the names of some that do."""
    hint = f"did you mean {first_names(meant, _SHOWN)}?" if meant else "list all jobs: mxjob get -A"
    return CommandError(f"no MXJob {name} in namespace {namespace}", hint=hint)


def kind_not_served(kind: Kind, server: str) -> CommandError:
    legacy = kind in LEGACY
    option = " --legacy" if legacy else ""
    here = "; for the cluster on this machine: mxjob local up --legacy" if legacy else ""
    return CommandError(
        f"the server {server} does not serve {kind.name}",
        hint=f"install the CRDs: mxnet-operator crd{option} | kubectl apply -f -{here}",
        code=Exit.API,
    )


def _kinds_named(text: str) -> Sequence[Kind]:
    kinds = [
        kind
        for kind in ALL
        if text.lower() in {kind.singular, kind.plural, type_name(kind), kind.name, *kind.short_names}
    ]
    if not kinds:
        given = text or "an empty text"
        types = ", ".join(map(type_name, ALL))
        raise UsageError(f"{given} is not a kind of job", hint=f"the kinds are {types}")
    return kinds


async def get_job(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Read a job, in the v1 format.

    Raises:
        CommandError: it doesn't exist, or jobs of several kinds have the name.
    """
    return in_v1_words(await find_job(client, namespace, name))


def replica_of(job: Job, wanted: str | None, or_else: str = "") -> str:
    """Return the replica that was named, by default the main one.

    Raises:
        CommandError: the job has no such replica; `or_else` follows those that it has.
    """
    if wanted is None:
        return main_replica(job)
    there = replicas(job)
    if wanted.lower() not in there:
        raise UsageError(
            f"job {job['metadata']['name']} has no replica {wanted}", hint=f"it has {', '.join(there)}{or_else}"
        )
    return wanted.lower()
