"""`make simulate`: many schedules on all cores, until the number is reached or one of them fails."""

import argparse
import concurrent.futures
import logging
import os
import sys
from collections import Counter

from rich.progress import track
from simulator.report import report
from simulator.run import run_seed

BATCH = 200
"""Seeds that a process takes at a time."""


def main() -> int:
    """Run; 1 where an invariant broke."""
    arguments = argparse.ArgumentParser(prog="simulator", description=__doc__)
    arguments.add_argument("schedules", type=int, help="how many")
    arguments.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (default: 0)")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (default: cores)")
    asked = arguments.parse_args()
    ends: Counter[str] = Counter()
    seeds = range(asked.first, asked.first + asked.schedules)
    batches = [seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH)]
    with concurrent.futures.ProcessPoolExecutor(asked.jobs, initializer=logging.disable) as pool:
        for batch, failed in track(pool.map(_run, batches), "schedules", len(batches), disable=not sys.stderr.isatty()):
            if failed is not None:
                pool.shutdown(cancel_futures=True)
                print(report(failed, run_seed(failed)))
                return 1
            ends += batch
    shown = ", ".join(f"{count} {state or 'deleted'}" for state, count in ends.most_common())
    print(f"{len(seeds)} schedules from seed {asked.first}: all invariants held ({shown})")
    return 0


def _run(seeds: range) -> tuple[Counter[str], int | None]:
    ends: Counter[str] = Counter()
    for seed in seeds:
        result = run_seed(seed)
        if result.wrong:
            return ends, seed
        ends[result.state] += 1
    return ends, None


if __name__ == "__main__":
    sys.exit(main())
