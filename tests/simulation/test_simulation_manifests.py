"""Manifests with mistakes at any path: rejected with a path, or run, or ended with a condition that names the path.

Never an exception of the controller, and never a job that waits without a reason. The seeds are fresh in every run, and
printed; `MXJOB_MANIFEST_SEED=<seed>` runs one alone, `MXJOB_MANIFESTS=<n>` so many.
"""

import asyncio
import os
from collections import Counter

import pytest
from fresh_seeds import drawn, first_fresh_seed
from manifest_mutations import mutate, seeds
from simulator.mutant import end_of

COUNT = int(os.environ.get("MXJOB_MANIFESTS") or drawn(500, 100))
SEED = os.environ.get("MXJOB_MANIFEST_SEED")


@pytest.mark.timeout(max(600, COUNT))
def test_a_manifest_with_mistakes_is_rejected_or_runs_or_ends_with_a_reason() -> None:
    manifests = seeds()
    first = first_fresh_seed() if SEED is None else int(SEED)
    ends: Counter[str] = Counter()
    for seed in range(first, first + (COUNT if SEED is None else 1)):
        try:
            end, said = asyncio.run(end_of(seed, manifests, mutate))
        except Exception as error:
            raise AssertionError(f"MXJOB_MANIFEST_SEED={seed}: an exception of the controller") from error
        assert not end.wrong, f"MXJOB_MANIFEST_SEED={seed}: {said}\n{end.how}: {end.wrong}\n{end.words}"
        ends[end.how] += 1
    print(f"{COUNT} manifests from seed {first}: {dict(ends)}")
    if SEED is None and COUNT >= 500:
        assert min(ends["rejected"], ends["Running"], ends["Failed"]) > COUNT // 100, ends
