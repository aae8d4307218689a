"""Sets of indexes in the notation of a Job."""

import pytest

from mxnet_operator.plan.indexes import format_indexes, parse_indexes


@pytest.mark.parametrize(("text", "indexes"), [("", set()), ("0", {0}), ("0-2", {0, 1, 2}), ("0,2-3,9", {0, 2, 3, 9})])
def test_text_and_set_are_the_same_thing(text: str, indexes: set[int]) -> None:
    assert parse_indexes(text) == indexes
    assert format_indexes(indexes) == text


def test_text_that_is_not_in_the_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_indexes("1;2")
