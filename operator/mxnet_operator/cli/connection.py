"""The API server that a command talks to, and its refusals in words that say what to do next."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mxnet_operator.cli.errors import CommandError, Exit, extra_needed

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client
    from mxnet_operator.kube.observers import RequestObserver


def complete_job_name(context: typer.Context, incomplete: str) -> list[str]:
    """Names of jobs for the shell's completion; nothing, rather than an error, where the server can't be asked."""
    options = context.params
    target = Target(options.get("kubeconfig"), options.get("context"), options.get("namespace"))
    with contextlib.suppress(Exception):
        names = asyncio.run(asyncio.wait_for(_job_names(target), 3))
        return [name for name in names if name.startswith(incomplete) and name.isprintable()]
    return []


KubeconfigOption = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig; default: $KUBECONFIG, else ~/.kube/config.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="A context of the kubeconfig.", show_default=False)
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Default: the context's.", show_default=False),
]
JobNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The job's name, or TYPE/NAME, as mxnetjob/digits.", autocompletion=complete_job_name
    ),
]
JobNamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="The jobs' names, or TYPE/NAME, as mxnetjob/digits.", autocompletion=complete_job_name
    ),
]


@dataclass(frozen=True)
class Target:
    """Which server, as whom, and which namespace, as far as the options say."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


@contextlib.asynccontextmanager
async def connect(
    target: Target, *, max_connections: int = 100, observer: "RequestObserver | None" = None
) -> "AsyncIterator[Client]":
    """A client of the server that the options, the environment or the default kubeconfig name.

    `observer` hears of every request.

    Raises:
        CommandError: there is no such server, it can't be reached, or it refuses a request made in the body of the
            `async with` (exit code 3).
    """
    with extra_needed("controller"):
        from mxnet_operator.kube.client import ApiError, ApiUnavailable, Client  # noqa: PLC0415
        from mxnet_operator.kube.credentials import load_credentials  # noqa: PLC0415
        from mxnet_operator.kube.errors import CredentialsError, NoKubeconfigError  # noqa: PLC0415

        try:
            credentials = await asyncio.to_thread(load_credentials, target.kubeconfig, target.context)
        except NoKubeconfigError as error:
            raise CommandError(
                str(error),
                hint="for the cluster on this machine: mxjob local up --detach;"
                " export KUBECONFIG=$(mxjob local kubeconfig)",
                code=Exit.API,
            ) from error
        except CredentialsError as error:
            raise CommandError(str(error), code=Exit.API) from error
    try:
        async with Client(credentials, max_connections=max_connections, observer=observer) as client:
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
            hint = "the token is not valid (any more): is this the kubeconfig of a cluster that was restarted?"
        raise CommandError(f"the API server refused: {error.message}", hint=hint, code=Exit.API) from error


async def _job_names(target: Target) -> list[str]:
    from mxnet_operator.cli.job_kinds import stored_jobs  # noqa: PLC0415

    async with connect(target) as client:
        jobs = await stored_jobs(client, target.namespace or client.namespace, {})
        return sorted({job["metadata"]["name"] for job in jobs})
