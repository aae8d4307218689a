"""State of the local cluster for `mxjob local status`, running or not."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.filesize import decimal

from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.daemons.local_prune import home_use
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.output.progress import elapsed_text
from mxnet_operator.cli.server.connection import Target, connect
from mxnet_operator.client.jobs import in_v1_words
from mxnet_operator.client.stored_jobs import stored_jobs
from mxnet_operator.dashboard.server import page_template
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import ClusterFiles, ClusterState, last_state, process_use
from mxnet_operator.local.kubelet.processes import left_over

_SHOWN_FIRST = ("cpu", "memory")
_SHOWN = 10
START = "mxjob local up --detach"


def collect(files: ClusterFiles, state: ClusterState) -> dict[str, Any]:
    """Collect the state of a running cluster, for `--json`.

    Raises:
        CommandError: its API server doesn't answer.
    """
    try:
        node, jobs = asyncio.run(_ask(files))
        use = process_use(state.pid)
    except OSError as error:
        raise CommandError("the local cluster has just stopped") from error
    return {
        "state": "Running",
        "pid": state.pid,
        "uptimeSeconds": round(max(0.0, time.time() - state.started_at), 1),
        "server": state.server,
        "dashboard": state.dashboard,
        "jobPages": page_template(state.pages_port),
        "kubeconfig": str(files.kubeconfig),
        "log": str(files.log),
        "subnet": f"{state.subnet}.0.0/16",
        "capacity": {
            name: node[name] for name in (*_SHOWN_FIRST, *sorted(node.keys() - {*_SHOWN_FIRST})) if name in node
        },
        "jobs": dict(sorted(jobs.items())),
        "residentBytes": use.resident_bytes,
        "cpuSeconds": round(use.cpu_seconds, 2),
        "diskBytes": home_use(files),
    }


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "state", f"{found['state']} for {elapsed_text(found['uptimeSeconds'])} (pid {found['pid']})"
    yield "API", found["server"]
    yield "kubeconfig", found["kubeconfig"]
    yield "dashboard", found["dashboard"]
    yield "node", ", ".join(f"{name} {amount}" for name, amount in found["capacity"].items())
    yield "jobs", ", ".join(f"{count} {state}" for state, count in found["jobs"].items()) or "none"
    yield "memory", f"{found['residentBytes'] / 2**20:.0f} MiB"
    yield "CPU", f"{found['cpuSeconds']:.1f} s"
    yield "disk", disk_text(found["diskBytes"])


def disk_text(parts: dict[str, int]) -> str:
    """Format what a home takes on disk: `1.2 GB (images 0.9 GB, ...)`, with the command that frees some of it."""
    own = {name: size for name, size in parts.items() if name != "sharedWithUv"}
    named = ", ".join(f"{name} {decimal(size)}" for name, size in own.items() if size)
    shared = f", and {decimal(parts['sharedWithUv'])} shared with uv's cache" if parts["sharedWithUv"] else ""
    return f"{decimal(sum(own.values()))} ({named}){shared}; mxjob local prune deletes what no unfinished job needs"


def not_running(files: ClusterFiles) -> dict[str, Any]:
    """Describe a cluster that is not ready, for `--json`: starting, stopping, or stopped with leftover processes."""
    pid = lock_holder(files.lock)
    if pid is not None:
        last = last_state(files)
        stopping = last is not None and last.stopping and last.pid == pid
        return {"state": "Stopping" if stopping else "Starting", "pid": pid}
    return {"state": "Stopped", "pid": None, "leftOver": left_over(files.pods), "diskBytes": home_use(files)}


def not_running_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield lines that describe what `not_running` found."""
    if found["state"] != "Stopped":
        yield f"the local cluster is {found['state'].lower()} (pid {found['pid']})"
        return
    yield f"the local cluster is not running; start it with: {START}"
    if any(found["diskBytes"].values()):
        yield f"disk: {disk_text(found['diskBytes'])}"
    if pids := found["leftOver"]:
        shown = ", ".join(str(pid) for pid in pids[:_SHOWN]) + (", ..." if len(pids) > _SHOWN else "")
        yield f"{len(pids)} processes of its jobs still run (pid {shown}): the cluster and its reaper were killed"
        yield f"stop them with: {START}"


async def _ask(files: ClusterFiles) -> tuple[dict[str, str], Counter[str]]:
    async with connect(Target(kubeconfig=str(files.kubeconfig))) as client:
        nodes, jobs = await asyncio.gather(client.list(NODES.path()), stored_jobs(client, None, {}))
        capacity: dict[str, str] = nodes["items"][0]["status"]["capacity"] if nodes["items"] else {}
        return capacity, Counter(job_state(in_v1_words(job)) or "new" for job in jobs)
