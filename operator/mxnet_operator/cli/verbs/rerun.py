"""`mxjob rerun`: run a job again, as a new job."""

import asyncio
from typing import Any, Final

from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.cli.errors import leave
from mxnet_operator.cli.output.terminal import go_on_unread
from mxnet_operator.cli.running.run_job import Options, run_job
from mxnet_operator.cli.running.run_outputs import Record
from mxnet_operator.cli.server.connection import (
    ContextOption,
    JobNameArgument,
    KubeconfigOption,
    NamespaceOption,
    Target,
    connect,
)
from mxnet_operator.cli.server.job_kinds import find_job
from mxnet_operator.cli.verbs.job_options import DetachOption

EXAMPLES = """
[bold]Examples[/]

  mxjob rerun digits

  mxjob rerun digits --detach

[bold]Exit codes[/]  0 Succeeded, or started with --detach · 1 Failed, deleted, or no such job ·
3 API server unreachable, or rejects it · 130 Ctrl-C · 143 SIGTERM
"""

_QUEUE: Final = "kueue.x-k8s.io/"
_LONGEST_PREFIX: Final = 40


def rerun(
    *,
    name: JobNameArgument,
    detach: DetachOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Run a job again, as a new job with the same image, arguments and spec, and follow it as `mxjob run` does.

    The name of the new job is that of the old one with a random end. Labels and annotations are not copied, except
    Kueue's queue. A job that was suspended runs.
    """
    target = Target(kubeconfig, context, namespace)
    go_on_unread()
    leave(asyncio.run(_run_again(target, name, detach=detach)))


async def _run_again(target: Target, name: str, *, detach: bool) -> Any:
    async with connect(target) as client:
        job = await find_job(client, target.namespace or client.namespace, name)
    return await run_job(again(job), target, Options(detach=detach), Record())


def again(job: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a job that runs a stored job again."""
    manifest, old = without_server_fields(job), job["metadata"]
    prefix = old.get("generateName") or f"{old['name'][:_LONGEST_PREFIX].rstrip('-.')}-"
    labels = {key: value for key, value in (old.get("labels") or {}).items() if key.startswith(_QUEUE)}
    spec = dict(manifest["spec"])
    if "runPolicy" in spec:
        spec["runPolicy"] = {key: value for key, value in spec["runPolicy"].items() if key != "suspend"}
    metadata = {"generateName": prefix, "namespace": old["namespace"], **({"labels": labels} if labels else {})}
    return {**manifest, "metadata": metadata, "spec": spec}
