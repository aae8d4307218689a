"""Sets of indexes in the notation of a Job."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnet_operator.api.types import MAX_REPLICAS
from mxnet_operator.plan.replicas import format_indexes, parse_indexes


@pytest.mark.parametrize(("text", "indexes"), [("", set()), ("0", {0}), ("0-2", {0, 1, 2}), ("0,2-3,9", {0, 2, 3, 9})])
def test_text_and_set_are_the_same_thing(text: str, indexes: set[int]) -> None:
    assert parse_indexes(text) == indexes
    assert format_indexes(indexes) == text


def test_text_that_is_not_in_the_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_indexes("1;2")


@given(replicas=st.integers(1, MAX_REPLICAS), done=st.floats(0, 1), step=st.integers(1, 9), seed=st.integers())
def test_any_set_of_any_job_is_read_back(replicas: int, done: float, step: int, seed: int) -> None:
    rng = random.Random(seed)
    indexes = {index for index in range(0, replicas, step) if rng.random() <= done}
    text = format_indexes(indexes)
    assert parse_indexes(text) == indexes
