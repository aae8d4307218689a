"""Ages as kubectl prints them, in at most two units."""

from datetime import datetime


def age(since: str | None, now: datetime) -> str:
    """Format the age of a timestamp as apimachinery's duration.HumanDuration; `<unknown>` where there is none."""
    if not since:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 0:
        return "0s" if seconds >= -2 else "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
