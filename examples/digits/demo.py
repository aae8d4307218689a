"""What `make demo` does: a local cluster, the DAG `train_digits` on the real Airflow, and what came of it.

Everything it needs lives in the checkout: the cluster and the image under $MXJOB_HOME, Airflow's database under
`.airflow`. A cluster that runs there already is used and left running; one that this starts is stopped again.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
IMAGE = "mxjob/digits:1.0"
REPORT = ROOT / "report.html"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "AIRFLOW_HOME": str(ROOT / ".airflow"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # The tasks' own lines, of which the worker's log is the most: nothing of the machinery but its warnings.
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "airflow.task=INFO mxnet_provider=INFO",
    "AIRFLOW__LOGGING__LOG_FORMAT": "%(message)s",
    "PYTHONWARNINGS": "ignore",
    "MXNET_REPORT": str(REPORT),
}


def main() -> None:
    """Run the demo; exits with 0 only if the network was trained and is good enough."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    step("The image: MXNet 1.9.1 in a virtual environment (the first time, about 110 MB are fetched)")
    run("mxjob", "local", "image", "add", IMAGE, str(ROOT / "examples" / "digits"))
    run("mxjob", "local", "image", "build", IMAGE)
    started = time.monotonic()
    with local_cluster():
        step("Airflow's database")
        run("airflow", "db", "migrate", quiet=True)
        step("airflow dags test train_digits")
        accuracy = run_dag()
    seconds = time.monotonic() - started
    step("Done")
    print(
        f"An Airflow DAG trained MXNet 1.9.1 through an MXJob: 1 scheduler, 2 servers, 2 workers, in {seconds:.0f} s."
    )
    print(f"{accuracy}")
    print(f"Report: {REPORT}")


@contextmanager
def local_cluster() -> Iterator[None]:
    """A running local cluster, to which $KUBECONFIG points."""
    step("A local cluster")
    was_running = subprocess.run([BIN / "mxjob", "local", "status"], capture_output=True, check=False).returncode == 0
    run("mxjob", "local", "up", "--detach")
    try:
        ENVIRONMENT["KUBECONFIG"] = run("mxjob", "local", "kubeconfig", quiet=True).strip()
        yield
    finally:
        if not was_running:
            run("mxjob", "local", "down")


def run_dag() -> str:
    """Run the DAG, showing its log; returns the line about the accuracy."""
    command = [BIN / "airflow", "dags", "test", "train_digits"]
    found = ""
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as airflow:
        assert airflow.stdout is not None
        try:
            for line in airflow.stdout:
                print(line, end="", flush=True)
                if re.match(r"Accuracy: ", line):
                    found = line.strip()
        except KeyboardInterrupt:
            airflow.send_signal(signal.SIGINT)
            airflow.wait()
            raise
    if airflow.returncode != 0 or not found:
        fail("the DAG failed: its log above says why")
    return found


def run(program: str, *args: str, quiet: bool = False) -> str:
    """Run a program of this environment; returns what it printed if that was not shown."""
    done = subprocess.run(
        [BIN / program, *args],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=quiet,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(f"{program} {' '.join(args)} failed (exit code {done.returncode})\n{done.stderr or ''}")
    return done.stdout or ""


def step(title: str) -> None:
    """Say what comes next."""
    print(f"\n==> {title}", flush=True)


def fail(message: str) -> NoReturn:
    """End with a message."""
    sys.exit(f"make demo: {message}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
