"""What `make tune` does: a local cluster, the tuning job, and a page that shows what it gained.

Everything it needs lives in the checkout, under $MXJOB_HOME. A cluster that runs there already is used and left
running; one that this starts is stopped again.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from demo_steps import BIN, ENVIRONMENT, ROOT, local_cluster, run, step

IMAGE = "mxjob/tune:1.0"
FOLDER = ROOT / "examples" / "tune"
REPORT = ROOT / "tuning.html"


def main() -> None:
    """Run the demo; exits with 0 only if the tuned program is right and was measured."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    step("The image: TVM 0.27 in a virtual environment (the first time, about 120 MB are fetched)")
    run("mxjob", "local", "image", "add", IMAGE, str(FOLDER), "--base", "mxjob/tvm:0.27")
    run("mxjob", "local", "image", "build", IMAGE)
    started = time.monotonic()
    with local_cluster():
        step("mxjob run -f examples/tune/mxjob.yaml")
        subprocess.run(
            [BIN / "mxjob", "delete", "tune"], env=ENVIRONMENT, capture_output=True, check=False
        )  # of before
        run("mxjob", "run", "-f", str(FOLDER / "mxjob.yaml"), "--report", str(REPORT))
    step("Done")
    print(f"A tracker, two servers and a tuner tuned a matrix multiplication, in {time.monotonic() - started:.0f} s.")
    print(f"Report: {REPORT}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
