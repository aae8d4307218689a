"""Runs a small ps-lite gang of MXNet processes and says how each ends: the facts about MXNet can be measured with it.

    uv venv --python 3.11 mx
    uv pip install --python mx/bin/python mxnet==1.9.1 numpy==1.23.5 requests graphviz
    mx/bin/python docs/facts/gang.py                                       # nothing goes wrong
    mx/bin/python docs/facts/gang.py --signal server-0=KILL
    mx/bin/python docs/facts/gang.py --script 'raise SystemExit(3)'        # in worker 0, after its first step

Each process has an address and a process group of its own; what still runs after `--wait` is said to hang, and killed.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = """
import os, sys, time
import mxnet as mx
kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros(1))
out = mx.nd.zeros(1)
for step in range(40):
    kv.push("w", mx.nd.ones(1))
    kv.pull("w", out=out)
    out.wait_to_read()
    if step == 0:
        print("first step", flush=True)
    if step == 1 and os.environ["INDEX"] == "0":
        exec(os.environ["SCRIPT"])
    time.sleep(0.1)
"""


def start(folder: Path, role: str, index: int, number: int, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start one process with what ps-lite reads from its environment."""
    address = f"127.77.0.{10 + number}"
    environment = {
        **os.environ,
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": options.root or "127.77.0.10",
        "DMLC_PS_ROOT_PORT": str(options.port),
        "DMLC_NUM_SERVER": str(options.servers),
        "DMLC_NUM_WORKER": str(options.workers),
        "DMLC_NODE_HOST": address,
        "OMP_NUM_THREADS": "1",
        "INDEX": str(index),
        "SCRIPT": options.script,
        **dict(pair.split("=", 1) for pair in options.env),
    }
    with (folder / f"{role}-{index}.log").open("wb") as log:
        command = [sys.executable, "-c", WORKER]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def main() -> None:
    """Run a gang and print one line for each process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--port", type=int, default=9091)
    parser.add_argument("--root", help="DMLC_PS_ROOT_URI, if not the scheduler's address")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for all processes")
    parser.add_argument("--script", default="", help="Python that worker 0 runs at its second step")
    parser.add_argument("--signal", metavar="ROLE-INDEX=NAME", help="sent after the first step: server-0=KILL")
    parser.add_argument("--wait", type=float, default=20.0, help="seconds from the first step on")
    options = parser.parse_args()
    members = [("scheduler", 0)]
    members += [(role, i) for role, n in (("server", options.servers), ("worker", options.workers)) for i in range(n)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gang = {f"{r}-{i}": start(folder, r, i, number, options) for number, (r, i) in enumerate(members)}
        first, limit = folder / "worker-0.log", time.monotonic() + 60
        while b"first step" not in first.read_bytes() and time.monotonic() < limit:
            time.sleep(0.1)
        began = time.monotonic()
        if options.signal:
            victim, _, word = options.signal.partition("=")
            os.killpg(gang[victim].pid, signal.Signals[f"SIG{word}"])
        ended: dict[str, float] = {}
        while len(ended) < len(gang) and time.monotonic() < began + options.wait:
            ended |= {n: time.monotonic() - began for n, p in gang.items() if n not in ended and p.poll() is not None}
            time.sleep(0.01)
        for member, process in gang.items():
            if member in ended:
                code = process.returncode if process.returncode >= 0 else 128 - process.returncode
                print(f"{member:12} ended with {code} after {ended[member]:.1f} s")
            else:
                print(f"{member:12} hangs")
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


if __name__ == "__main__":
    main()
