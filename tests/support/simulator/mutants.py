"""`make mutants`: make each mistake of `mutations` and `mutations_outside` in a copy, and show what catches it.

Ends with 0 where each is caught by what is declared to: the simulation, or the test that the mistake names.
"""

import argparse
import concurrent.futures
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from simulator.mutated import UNIT_TESTS, Result, judge, occurrences
from simulator.mutations import MUTATIONS, Mutation
from simulator.mutations_outside import OUTSIDE


def main() -> int:
    """Run; 1 where a mistake is not caught by what is declared to catch it, or no longer applies."""
    arguments = argparse.ArgumentParser(prog="mutants", description=__doc__)
    arguments.add_argument("--schedules", type=int, default=3000, help="how many at most for each mistake")
    arguments.add_argument("--only", default="", help="mistakes with these words in their names")
    asked = arguments.parse_args()
    mutations = [mutation for mutation in (*MUTATIONS, *OUTSIDE) if asked.only in mutation.name]
    stale = [mutation for mutation in mutations if occurrences(mutation) != 1]
    for mutation in stale:
        print(f"{mutation.name}: its text is {occurrences(mutation)} times in {mutation.file}", file=sys.stderr)
    if stale:
        return 1
    results = _judge(mutations, asked.schedules)
    Console(width=None if sys.stdout.isatty() else 150).print(_table(results))
    survivors = [result.mutation for result in results if not result.is_caught]
    for mutation in survivors:
        print(f"{mutation.name}: not caught by {mutation.test or 'the simulation'}", file=sys.stderr)
    print(
        f"{len(results) - len(survivors)} of {len(results)} mistakes are caught by what is declared to, "
        f"{sum(bool(result.invariant) for result in results)} by the simulation, "
        f"{sum(bool(result.unit_test) for result in results)} by {UNIT_TESTS}"
    )
    return 1 if survivors else 0


def _judge(mutations: list[Mutation], schedules: int) -> list[Result]:
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar,
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        task = bar.add_task("mistakes", total=len(mutations))
        running = [
            pool.submit(_judged, mutation, Path(folder, str(number)), schedules)
            for number, mutation in enumerate(mutations)
        ]
        for _ in concurrent.futures.as_completed(running):
            bar.advance(task)
        return [each.result() for each in running]


def _judged(mutation: Mutation, folder: Path, schedules: int) -> Result:
    """What becomes of a mistake; the simulation knows nothing of what lies outside the controller's core."""
    if mutation in OUTSIDE:
        return judge(mutation, folder, 0, unit_tests=False)
    return judge(mutation, folder, schedules)


def _table(results: list[Result]) -> Table:
    table = Table(
        "mistake", "in", "caught by", "invariant that breaks", "schedules", f"test of {UNIT_TESTS} that fails", box=None
    )
    for result in results:
        table.add_row(
            result.mutation.name,
            result.mutation.file,
            ("its test" if result.mutation.test else "simulation") if result.is_caught else "[bold]nothing[/]",
            result.invariant or "none",
            str(result.schedules or ""),
            result.mutation.test.rpartition("::")[2] or result.unit_test or "none",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
