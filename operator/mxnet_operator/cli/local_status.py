"""What `mxjob local status` tells of a cluster, running or not."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.connection import Target, connect
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.job_kinds import in_v1_words, stored_jobs
from mxnet_operator.cli.progress import elapsed_text
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import ClusterFiles
from mxnet_operator.local.job_pages import page_template
from mxnet_operator.local.kubelet.processes import left_over
from mxnet_operator.local.state import ClusterState, process_use, uptime

_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")
_SHOWN = 10


def collect(files: ClusterFiles, state: ClusterState) -> dict[str, Any]:
    """Everything, for `--json`.

    Raises:
        CommandError: its API doesn't answer.
    """
    try:
        node, jobs = asyncio.run(_ask(files))
        uses = [process_use(pid) for pid in (state.pid, *state.programs)]
    except OSError as error:
        raise CommandError("the local cluster has just stopped") from error
    return {
        "state": "Running",
        "pid": state.pid,
        "uptimeSeconds": round(uptime(state), 1),
        "server": state.server,
        "controlPlane": state.control_plane,
        "jobPages": page_template(state.pages_port),
        "kubeconfig": str(files.kubeconfig),
        "log": str(files.log),
        "subnet": f"{state.subnet}.0.0/16",
        "capacity": {name: node[name] for name in _RESOURCES if name in node},
        "jobs": dict(sorted(jobs.items())),
        "residentBytes": sum(use.resident_bytes for use in uses),
        "cpuSeconds": round(sum(use.cpu_seconds for use in uses), 2),
    }


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The same for people, as labels and values."""
    yield "state", f"{found['state']} for {elapsed_text(found['uptimeSeconds'])} (pid {found['pid']})"
    yield "API", f"{found['server']} ({found['controlPlane']} control plane)"
    yield "kubeconfig", found["kubeconfig"]
    yield "job pages", found["jobPages"]
    yield "node", ", ".join(f"{name} {amount}" for name, amount in found["capacity"].items())
    yield "jobs", ", ".join(f"{count} {state}" for state, count in found["jobs"].items()) or "none"
    yield "memory", f"{found['residentBytes'] / 2**20:.0f} MiB"
    yield "CPU", f"{found['cpuSeconds']:.1f} s"


def not_running(files: ClusterFiles) -> dict[str, Any]:
    """What there is of a cluster that isn't up, for `--json`."""
    pid = lock_holder(files.lock)
    if pid is not None:
        return {"state": "Starting", "pid": pid}
    return {"state": "Stopped", "pid": None, "leftOver": left_over(files.pods)}


def not_running_lines(found: dict[str, Any], start: str) -> Iterator[str]:
    """The same for people; `start` is the command that starts a cluster."""
    if found["state"] == "Starting":
        yield f"the local cluster is starting or stopping (pid {found['pid']})"
        return
    yield f"the local cluster is not running; start it with: {start}"
    if pids := found["leftOver"]:
        shown = ", ".join(str(pid) for pid in pids[:_SHOWN]) + (", ..." if len(pids) > _SHOWN else "")
        yield f"{len(pids)} of its jobs' processes still run (pid {shown}): it was killed, and so was its reaper"
        yield f"{start} ends them"


async def _ask(files: ClusterFiles) -> tuple[dict[str, str], Counter[str]]:
    async with connect(Target(kubeconfig=str(files.kubeconfig))) as client:
        nodes, jobs = await asyncio.gather(client.list(NODES.path()), stored_jobs(client, None, {}))
        capacity: dict[str, str] = nodes["items"][0]["status"]["capacity"] if nodes["items"] else {}
        return capacity, Counter(job_state(in_v1_words(job)) or "new" for job in jobs)
