"""`make simulate`: many schedules on all cores, until the number is reached or one of them fails."""

import argparse
import concurrent.futures
import itertools
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
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
    console = Console(stderr=True)
    ends: Counter[str] = Counter()
    seeds = range(asked.first, asked.first + asked.schedules)
    with _progress(console) as bar, concurrent.futures.ProcessPoolExecutor(asked.jobs, initializer=_in_worker) as pool:
        task = bar.add_task("schedules", total=len(seeds))
        for batch, failed in _batches(pool, seeds, 2 * asked.jobs):
            if failed is not None:
                pool.shutdown(cancel_futures=True)
                bar.stop()
                print(report(failed, run_seed(failed)))
                return 1
            ends += batch
            bar.advance(task, batch.total())
    print(f"{len(seeds)} schedules from seed {asked.first}: all invariants held ({_shown(ends)})")
    return 0


def _batches(
    pool: concurrent.futures.Executor, seeds: range, under_way: int
) -> Iterator[tuple[Counter[str], int | None]]:
    """The batches' answers in order, a few more batches being under way than there are cores."""
    batches = (seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH))
    ahead = [pool.submit(_run, batch) for batch in itertools.islice(batches, under_way)]
    while ahead:
        yield ahead.pop(0).result()
        ahead.extend(pool.submit(_run, batch) for batch in itertools.islice(batches, 1))


def _run(seeds: range) -> tuple[Counter[str], int | None]:
    ends: Counter[str] = Counter()
    for seed in seeds:
        result = run_seed(seed)
        if result.wrong:
            return ends, seed
        ends[result.state] += 1
    return ends, None


def _in_worker() -> None:
    logging.disable()  # Controllers complain about faults, as they should.


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _shown(ends: Counter[str]) -> str:
    return ", ".join(f"{count} {state or 'deleted'}" for state, count in ends.most_common())


if __name__ == "__main__":
    sys.exit(main())
