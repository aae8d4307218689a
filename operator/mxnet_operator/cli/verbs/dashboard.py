"""`mxjob dashboard`: web pages of all jobs of a cluster, live, on this machine."""

import asyncio
import os
import sys
import tempfile
import webbrowser
from html import escape
from pathlib import Path

from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.cli.running.local_files import local_job_files
from mxnet_operator.cli.server.connection import Target, connect
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.kube.errors import ApiError

EXAMPLES = """
[bold]Examples[/]

  mxjob dashboard

  mxjob dashboard --context prod -n team-a
"""


@asks_server
async def dashboard(target: Target) -> Exit:
    """Serve web pages of the cluster's jobs on this machine until Ctrl-C: states, figures, logs and events, live.

    Prints the address and opens it in a browser. Only this machine can open it, and only with the token in it. The
    pages show what your kubeconfig may read. They can stop and rerun jobs of the local cluster, and change nothing in
    another cluster. Jobs of all namespaces are listed, if you may list them, else those of the context's namespace.
    """
    async with connect(target) as client:
        from mxnet_operator.dashboard.server import Dashboard, new_token  # noqa: PLC0415

        namespace = target.namespace
        if namespace is None:
            try:
                await client.get(MXJOBS.path(None), {"limit": 1})
            except ApiError as error:
                if error.code != 403:
                    raise
                namespace = client.namespace
        pages = Dashboard(client, new_token(), namespace=namespace, local=local_job_files(client.server))
        await pages.start()
        try:
            write_line(pages.address)
            say(f"shows the jobs of {client.server}; press Ctrl-C to stop it")
            with tempfile.TemporaryDirectory(prefix="mxjob-") as folder:
                if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin":
                    await asyncio.to_thread(_open, pages.address, Path(folder))
                await asyncio.Event().wait()
        finally:
            await pages.stop()
    return Exit.OK


def _open(address: str, folder: Path) -> None:
    """Open the address by a private file that leads there: other users can read the arguments of a browser."""
    file = folder / "dashboard.html"
    file.write_text(f'<meta http-equiv="refresh" content="0;url={escape(address)}">', encoding="utf-8")
    webbrowser.open(file.as_uri())
