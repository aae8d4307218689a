"""docs/conditions.md lists every condition that a job can have, and the reasons that are this project's own."""

from pathlib import Path

from mxnet_operator.api import conditions

PAGE = Path(__file__).parents[3] / "docs" / "conditions.md"
UNLISTED = {"PodsCreated", "PodsTerminated", "NotSuspended", "MXJobResumed", "ReconcileSuccess"}
"""Reasons of a condition that no longer holds."""


def test_each_condition_and_reason_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    words = {value for name, value in vars(conditions).items() if name.isupper() and isinstance(value, str)}
    assert len(words) > 25
    assert {word for word in words - UNLISTED if f"`{word}`" not in text} == set()
