"""Exponential back-off with jitter."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubling delays in seconds, each cut at random to between half and all of it, to spread clients' retries."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after `failures` (at least 1) consecutive failures."""
        whole = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        return whole * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
