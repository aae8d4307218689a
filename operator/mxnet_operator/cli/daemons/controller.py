"""The process behind `mxnet-operator run`: a controller, its leader election and its HTTP servers."""

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.api.kinds import ALL
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.interrupts import beside, first_signal
from mxnet_operator.cli.server.connection import Target, connect
from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.endpoints import Address, Handler, guarded, health_pages, metrics_pages, served
from mxnet_operator.controller.health import Health
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.controller.serving_certificate import CERTIFICATE, KEY, ServingCertificate
from mxnet_operator.integrations.integration import Integration
from mxnet_operator.kube.lease import LeaderElector, LeaseTimes, own_identity
from mxnet_operator.kube.reviews import AccessReviewer
from mxnet_operator.plan import Policy

_CONNECTIONS = 100
_CONNECTIONS_OF_THE_LEASE = 2
"""Connections for the Lease alone, so that no other request delays a renewal: one, and one for a retry."""
_CONNECTIONS_PER_NAMESPACE = len(ALL) + 4
"""Connections held by the watches of one namespace: each kind of job, pods, Services, Workloads, pod groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Leader election of the controller: the Lease, its times, and the candidate's name.

    `namespace` None means that of the credentials, `member` None the host's name.
    """

    name: str
    namespace: str | None
    times: LeaseTimes
    member: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `mxnet-operator run`; `election` None means that this process always leads."""

    target: Target
    namespaces: tuple[str, ...]
    workers: int
    election: Election | None
    metrics: Address | None
    health: Address | None
    integrations: tuple[Integration, ...] = ()
    job_url_template: str = ""
    """Address of a job's page; empty where jobs have none."""
    metrics_certificate: Path | None = None
    """Folder of the serving certificate; with it, metrics are served over TLS and to authorized clients only."""


def lease_times(duration: float, renew_deadline: float, retry_period: float) -> LeaseTimes:
    """Build the times of a leader election, in seconds.

    Raises:
        ValueError: they don't fit together.
    """
    if not duration.is_integer():
        raise ValueError(f"--leader-elect-lease-duration must be whole seconds, not {duration:g} s")
    return LeaseTimes(int(duration), renew_deadline, retry_period)


def address(given: str | None, default_port: int) -> Address | None:
    """Parse a bind address; default to loopback, or in a pod to every address, since the kubelet's probes need it.

    Raises:
        ValueError: `given` is not HOST:PORT.
    """
    if given is not None:
        return Address.parse(given)
    return Address(None if os.environ.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1", default_port)


def names_in(values: Iterable[str]) -> tuple[str, ...]:
    """Split the values of a repeatable, comma-separated flag into names, each once and in order."""
    return tuple(dict.fromkeys(name for value in values for name in re.split(r"[,\s]+", value) if name))


async def run(options: Options) -> None:
    """Run the controller until the first signal or until cancelled, then release the Lease."""
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
                elector = LeaderElector(
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
                integrations=options.integrations,
                policy=Policy(job_url_template=options.job_url_template),
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
            async with beside(controller.run()) as (running,):
                either: set[asyncio.Future[Any]] = {running, asked_to_stop}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not asked_to_stop.done():
                    await running  # Raises what it died of.


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
