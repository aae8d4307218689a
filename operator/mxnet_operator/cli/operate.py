"""What `mxnet-operator run` does: a controller, its election and its HTTP servers, until a signal."""

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from mxnet_operator.api.kinds import ALL
from mxnet_operator.cli.connection import Target, connect
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.interrupts import first_signal
from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.endpoints import Address, Handler, guarded, health_pages, metrics_pages, served
from mxnet_operator.controller.health import Health
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.controller.serving_certificate import CERTIFICATE, KEY, ServingCertificate
from mxnet_operator.kube.lease import Elector, LeaseTimes, own_identity
from mxnet_operator.kube.reviews import AccessReviewer

_CONNECTIONS = 100
_CONNECTIONS_OF_THE_LEASE = 2
"""Its own, so that a renewal waits for no other request: one, and one to try again on while that gets no answer."""
_CONNECTIONS_PER_NAMESPACE = len(ALL) + 2
"""One for each watch, all the time: of the jobs of each kind, of pods and of Services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Which Lease is taken part in, and as whom.

    No namespace means the one of the credentials, no member the host's name.
    """

    name: str
    namespace: str | None
    times: LeaseTimes
    member: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the flags say; no election means that this process always leads."""

    target: Target
    namespaces: tuple[str, ...]
    workers: int
    election: Election | None
    metrics: Address | None
    health: Address | None
    metrics_certificate: Path | None = None
    """A folder; with it, metrics are served over TLS and to authorized clients only."""


def lease_times(duration: float, renew_deadline: float, retry_period: float) -> LeaseTimes:
    """The times of an election, if they fit together.

    Raises:
        typer.BadParameter: they don't.
    """
    if not duration.is_integer():
        raise typer.BadParameter(f"the lease duration is kept in whole seconds, not as {duration:g} s")
    try:
        return LeaseTimes(int(duration), renew_deadline, retry_period)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def address(given: str | None, default_port: int) -> Address | None:
    """Where to listen: as given, else on loopback, or in a pod on every address, since the kubelet comes from outside.

    Raises:
        typer.BadParameter: what was given is no address.
    """
    if given is None:
        return Address(None if os.environ.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1", default_port)
    try:
        return Address.parse(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def names_in(values: Iterable[str]) -> tuple[str, ...]:
    """The names in a flag that may be given several times and hold several, each once and in their order."""
    return tuple(dict.fromkeys(name for value in values for name in re.split(r"[,\s]+", value) if name))


async def operate(options: Options) -> None:
    """Run the controller until a signal asks to stop; the lease is given back then."""
    metrics = Metrics()
    connections = _CONNECTIONS + _CONNECTIONS_PER_NAMESPACE * len(options.namespaces)
    with first_signal() as asked_to_stop:
        async with (
            connect(options.target, max_connections=connections, observer=metrics.requested) as client,
            connect(
                options.target, max_connections=_CONNECTIONS_OF_THE_LEASE, observer=metrics.requested
            ) as lease_client,
            contextlib.AsyncExitStack() as servers,
        ):
            elector = None
            if options.election is not None:
                election = options.election
                elector = Elector(
                    lease_client,
                    election.namespace or client.namespace,
                    election.name,
                    identity=own_identity(election.member),
                    times=election.times,
                )
            controller = Controller(
                client,
                options.namespaces,
                workers=options.workers,
                elector=elector,
                observer=metrics,
                fail_fast_hook=True,
            )
            metrics.watch(controller)
            pages, tls = metrics_pages(metrics), None
            if options.metrics_certificate is not None:
                certificate = _certificate(options.metrics_certificate)
                pages, tls = guarded(pages, AccessReviewer(client)), certificate.context
                freshness = asyncio.create_task(certificate.keep_fresh())
                servers.callback(freshness.cancel)
            await _serve(servers, "metrics", "--metrics-bind-address", options.metrics, pages, tls=tls)
            pages = health_pages(Health(controller, client))
            await _serve(servers, "health", "--health-probe-bind-address", options.health, pages)
            running = asyncio.create_task(controller.run())
            either: set[asyncio.Future[Any]] = {running, asked_to_stop}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not asked_to_stop.done():
                await running  # Raises what it died of.
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def _certificate(folder: Path) -> ServingCertificate:
    try:
        return ServingCertificate(folder)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(
            f"metrics can't be served over TLS with the certificate in {folder}: {error}",
            hint=f"--metrics-cert-path takes a folder with {CERTIFICATE} and {KEY}, like a kubernetes.io/tls Secret",
        ) from error


async def _serve(
    servers: contextlib.AsyncExitStack,
    what: str,
    flag: str,
    where: Address | None,
    pages: Mapping[str, Handler],
    *,
    tls: ssl.SSLContext | None = None,
) -> None:
    try:
        await servers.enter_async_context(served(what, where, pages, tls))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise CommandError(
            f"{what} can't be served at {where}: {reason}", hint=f"choose another address with {flag}, or 0 for none"
        ) from error
