"""The time of a simulation: it passes when a schedule says so, and what the parties' clocks show can be off."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Clock:
    """Seconds since the beginning, and for each party by how many its wall clock is off."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.off: dict[str, float] = {}

    def monotonic(self) -> float:
        return self.seconds

    def wall(self, party: str) -> Callable[[], datetime]:
        """The wall clock of a party; it can be stepped, `monotonic` can't."""
        return lambda: START + timedelta(seconds=self.seconds + self.off.get(party, 0.0))
