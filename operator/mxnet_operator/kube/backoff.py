"""How long to wait after the n-th failure in a row."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubling delays in seconds, each cut to between half and all, so that many who fail return one by one."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Seconds to wait after `failures` (at least 1) failures in a row."""
        whole = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        return whole * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
