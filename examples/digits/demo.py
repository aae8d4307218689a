"""What `make demo` does: a local cluster, the DAG `train_digits` on the real Airflow, and what came of it.

Everything it needs lives in the checkout: the cluster and the image under $MXJOB_HOME, Airflow's database under
`.airflow`. A cluster that runs there already is used and left running; one that this starts is stopped again.
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from demo_steps import BIN, ENVIRONMENT, ROOT, fail, local_cluster, run, step

IMAGE = "mxjob/digits:1.0"
REPORT = ROOT / "report.html"
ENVIRONMENT |= {
    "AIRFLOW_HOME": str(ROOT / ".airflow"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # Airflow's 30 seconds to import a DAG are too few on a busy machine.
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
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


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
