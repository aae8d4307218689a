"""States of a task, as Airflow names them, and what stands in their place where there is none to read."""

from typing import Final

ABSENT: Final = "absent"
"""Airflow has no such task instance, or no such try of one: its run was deleted, or it is another Airflow's."""

UNANSWERED: Final = "unanswered"
"""Airflow did not answer: the task may be in any state."""

OVER: Final = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
"""States in which no try of the task runs, or will by itself."""

CLEARED: Final = "restarting"
"""State of a task that was cleared while it ran, until its process has ended."""

ENDED_BY_A_USER: Final = OVER | {ABSENT, CLEARED}
"""States in which a try that still runs finds its task only where a user ended or cleared it, or deleted its run.

One that Airflow itself resets, because its worker or the scheduler was given up on, has no state at first, then waits
for its next try or is run by that: so it is not told from a task of which nobody wanted anything.
"""
