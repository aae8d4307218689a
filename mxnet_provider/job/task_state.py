"""States of a task, as Airflow names them, and what stands in their place where there is none to read."""

from typing import Final

ABSENT: Final = "absent"
"""Airflow has no such task instance, or no such try of one: its run was deleted, or it is another Airflow's."""

UNANSWERED: Final = "unanswered"
"""Airflow did not answer: the task may be in any state."""

OVER: Final = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
"""States in which no try of the task runs, or will by itself."""
