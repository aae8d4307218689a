"""Day that the history of a script's folder proposes for `--as-of`."""

import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

_RECENT_DAYS: Final = 365
_SECONDS: Final = 10


def proposed_day(folder: Path) -> date | None:
    """Return the day of the last git commit of a folder.

    None where git doesn't track the folder, or the commit is younger than a year: packages of today fit it.
    """
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cI", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=_SECONDS)
        day = date.fromisoformat(done.stdout.strip()[:10])
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return day if (datetime.now(UTC).date() - day).days > _RECENT_DAYS else None
