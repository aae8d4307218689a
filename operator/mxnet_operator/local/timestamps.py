"""Timestamps as the API has them."""

from datetime import UTC, datetime


def now() -> str:
    """Format the current time as metav1.Time: seconds, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
