"""How much is left of a wait that began at somebody else's timestamp: never for ever, whatever the clocks say."""

from datetime import datetime, timedelta


def left_of(wait: timedelta, since: datetime | None, now: datetime) -> timedelta:
    """What is left of a wait; zero where its beginning is unknown, or so far ahead that a clock must have been set."""
    if since is None:
        return timedelta(0)
    left = since + wait - now
    return left if timedelta(0) < left <= 2 * wait else timedelta(0)
