"""For how long the API server has been away, and for how long that is borne: pure but for its clock."""

import time
from collections.abc import Callable


class Outage:
    """Time since the API server's last answer.

    Args:
        tolerance: For how many seconds it may be away.
        clock: Seconds, monotonic.
    """

    def __init__(self, tolerance: float, clock: Callable[[], float] | None = None) -> None:
        self.failures = 0
        """How many requests have failed since the last answer."""
        self.away = 0.0
        """Seconds from the last answer to the last failure."""
        self.longest = 0.0
        self._tolerance = tolerance
        self._clock = clock or time.monotonic
        self._last_answer = self._clock()

    def answered(self) -> None:
        """Note that the server is there: what comes next is another outage."""
        self.failures = 0
        self._last_answer = self._clock()

    def lasts_too_long(self) -> bool:
        """Note that a request failed, and tell whether to give up."""
        self.failures += 1
        self.away = self._clock() - self._last_answer
        self.longest = max(self.longest, self.away)
        return self.away > self._tolerance
