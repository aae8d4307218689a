"""Connection of a command to the API server: its options, and errors with a hint at the next step."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mxnet_operator.cli.command import option
from mxnet_operator.cli.errors import CommandError, Exit, UsageError, extra_needed
from mxnet_operator.client.stored_jobs import stored_jobs
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, CredentialsError, NoKubeconfigError
from mxnet_operator.kube.resources import is_path_segment
from mxnet_operator.local.home import (
    ClusterFiles,
    ClusterState,
    HomeError,
    cluster_files,
    last_state,
    mxjob_home,
    running_state,
)

if TYPE_CHECKING:
    from mxnet_operator.kube import client as kube_client
    from mxnet_operator.kube.credentials import Credentials
    from mxnet_operator.kube.transport import RequestObserver

    Client = kube_client.Client
else:
    Client = Any
    """For annotations alone: aiohttp takes a third of a second to import, which no help text needs."""

REPLY_SECONDS = 30.0
"""Seconds that an answer of the API server may take."""
_COMPLETION_SECONDS = 3.0
"""Seconds for which a shell waits for the API server."""
_LOOK_SECONDS = 0.5
_PANEL = "Cluster"


def completed(
    context: typer.Context, incomplete: str, read: Callable[[Client, str], Awaitable[Iterable[str]]]
) -> list[str]:
    """Return what `read` offers a shell from a namespace; nothing, rather than an error, without a server's answer."""

    async def offered() -> Iterable[str]:
        from mxnet_operator.kube import client, credentials  # noqa: F401, PLC0415 - loaded before the time counts

        target = Target(*(context.params.get(name) for name in ("kubeconfig", "context", "namespace")))
        async with asyncio.timeout(_COMPLETION_SECONDS), connect(target) as server:
            return await read(server, target.namespace or server.namespace)

    with contextlib.suppress(Exception):
        return [each for each in asyncio.run(offered()) if each.startswith(incomplete) and each.isprintable()]
    return []


def complete_job_name(context: typer.Context, incomplete: str) -> list[str]:
    async def names(client: Client, namespace: str) -> list[str]:
        return sorted({job["metadata"]["name"] for job in await stored_jobs(client, namespace, {})})

    return completed(context, incomplete, names)


ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Kubeconfig context; default: the current one.", rich_help_panel=_PANEL
    ),
]


def _argument(metavar: str, what: str) -> Any:
    kinds = "or TYPE/NAME such as mxnetjob/digits."
    return typer.Argument(metavar=metavar, help=f"{what}, {kinds}", autocompletion=complete_job_name)


JobNameArgument = Annotated[str, _argument("NAME", "Job name")]
JobNamesArgument = Annotated[list[str], _argument("NAME...", "Job names")]


@dataclass(frozen=True)
class Target:
    """Connection options of a command: kubeconfig, context and namespace, None where not given."""

    kubeconfig: str | None = option(
        metavar="FILE",
        help="Kubeconfig; default: $KUBECONFIG, else ~/.kube/config, else that of the running local cluster.",
        panel=_PANEL,
    )
    context: ContextOption = None
    namespace: str | None = option(
        "--namespace", "-n", metavar="NAME", help="Namespace; default: the context's.", panel=_PANEL
    )


def local_files() -> ClusterFiles | None:
    """Return the paths of this user's local cluster, running or not; None where there can be none."""
    # Without the extra `local`, or for a user without a home, as a pod's of any uid.
    with contextlib.suppress(ModuleNotFoundError, HomeError):
        return cluster_files(mxjob_home())
    return None


def local_cluster() -> tuple[ClusterFiles, ClusterState] | None:
    """Return the files and state of this user's running local cluster; None where none runs, or none can."""
    with contextlib.suppress(OSError):  # a home that can't be read
        if (files := local_files()) is not None and (state := running_state(files)) is not None:
            return files, state
    return None


async def until_cluster_stops(server: str) -> None:
    """Wait until the local cluster with the API server of this URL is stopped or replaced; else for ever.

    One that was killed may start again; only then are its jobs gone.
    """
    running = local_cluster()
    if running is None or running[1].server != server:
        await asyncio.Event().wait()
        return
    files, first = running
    while (now := last_state(files)) and not now.stopping and now.started_at == first.started_at:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)


def uses_local(target: Target) -> bool:
    """Whether the options and the environment name the local cluster's kubeconfig, or no cluster at all."""
    with extra_needed("controller"):
        from mxnet_operator.kube.credentials import named_cluster  # noqa: PLC0415

    named, files = named_cluster(target.kubeconfig, target.context), local_files()
    return named is None or (files is not None and os.path.abspath(named) == str(files.kubeconfig))  # noqa: PTH100


def credentials_of(target: Target) -> "Credentials":
    """Load the credentials for the API server that the options, the environment or the default kubeconfig name.

    Raises:
        CommandError: there is none, or its kubeconfig can't be used (exit code 3).
    """
    with extra_needed("controller"):
        from mxnet_operator.kube.credentials import load_credentials  # noqa: PLC0415

        running = local_cluster()
        kubeconfig = str(running[0].kubeconfig) if running and uses_local(target) else target.kubeconfig
        try:
            return load_credentials(kubeconfig, target.context)
        except NoKubeconfigError as error:
            message, hint = str(error), "or start the cluster on this machine: mxjob local up --detach"
            if target.context is not None:
                message = f"no context {target.context}: {error}"
                hint = "without --context, mxjob uses the local cluster"
            elif (files := local_files()) is not None and files.state.exists():
                message = "the local cluster is stopped, its jobs are gone with it, and no other cluster is chosen"
                hint = (
                    "start it: mxjob local up --detach; or choose another: --kubeconfig FILE; "
                    "files of its last jobs: mxjob cp JOB:PATH ."
                )
            raise CommandError(message, hint, code=Exit.API) from error
        except CredentialsError as error:
            raise CommandError(str(error), code=Exit.API) from error


@contextlib.asynccontextmanager
async def connect(
    target: Target, *, max_connections: int = 100, observer: "RequestObserver | None" = None
) -> "AsyncIterator[Client]":
    """Connect to the API server that the options, the environment or the default kubeconfig name.

    `observer` is called for every request.

    Raises:
        CommandError: there is no such server, it can't be reached, or it rejects a request made in the body of the
            `async with` (exit code 3); or the namespace can't be one (2).
    """
    with extra_needed("controller"):
        from mxnet_operator.kube.client import Client  # noqa: PLC0415
    credentials = await asyncio.to_thread(credentials_of, target)
    if not is_path_segment(namespace := target.namespace or credentials.namespace):
        raise UsageError(f"{namespace} is not a valid namespace")
    try:
        async with Client(
            credentials, request_timeout=REPLY_SECONDS, max_connections=max_connections, observer=observer
        ) as client:
            yield client
    except ApiUnavailable as error:
        raise CommandError(
            f"the API server can't be reached: {error}",
            hint="is it running? For the cluster on this machine: mxjob local status",
            code=Exit.API,
        ) from error
    except ApiError as error:
        hint = ""
        if error.code == 401:
            hint = "the token is invalid or expired: is this the kubeconfig of a cluster that was restarted since?"
        raise CommandError(f"the API server rejected the request: {error.message}", hint=hint, code=Exit.API) from error
