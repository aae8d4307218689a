"""Which trial of a sweep is the best, by what each reported. Argo's own reading of the rule: tests/unit/argo."""

import pytest

from mxnet_operator.description import ranking

NAN = float("nan")


@pytest.mark.parametrize(
    ("told", "direction", "best"),
    [
        ([{"a": 0.1}, {"a": 0.9}, {"a": 0.5}], "maximize", 1),
        ([{"a": 0.1}, {"a": 0.9}, {"a": 0.5}], "minimize", 0),
        ([{"a": -1}, {"a": 0}], "maximize", 1),
        ([{"a": 2}, {"a": 1.5}], "minimize", 1),
        ([{"a": NAN}, {"a": 0.1}, {"a": float("inf")}], "maximize", 1),
        ([{"a": True}, {"a": "0.9"}, {"a": None}, {}, None, "0.9", [0.9], {"a": 0.2}], "maximize", 7),
        ([{"a": 10**400}, {"a": 1}], "maximize", 1),
        ([{"a": 1}, {"b": 5}, {"a": 1}], "maximize", 0),
        ([{"a": 1}, {"b": 5}, {"a": 1}], "minimize", 0),
    ],
)
def test_the_best_has_the_best_finite_number_and_of_equals_is_the_first(told, direction, best):
    rows = ranking.ranked([(f"job-{index}", each) for index, each in enumerate(told)], "a", direction)
    assert ranking.best(rows)["job"] == f"job-{best}"
    assert sorted(row["job"] for row in rows) == [f"job-{index}" for index in range(len(told))]


@pytest.mark.parametrize("told", [[], [("x", None)], [("x", {"a": NAN}), ("y", {"b": 1})]])
def test_without_a_number_none_is_the_best(told):
    assert ranking.best(ranking.ranked(told, "a", "maximize")) is None


def test_without_a_number_it_is_said_what_the_trials_reported_within_a_bound():
    rows = ranking.ranked([("x", "loss is nan"), ("y", {"b": 1})], "a", "maximize")
    assert ranking.why_none_is_best(rows, "a", 3) == (
        'no trial reported a number "a": 2 of 3 succeeded, and reported x: "loss is nan"; y: {"b":1}'
    )
    assert ranking.why_none_is_best([], "a", 2) == 'no trial reported a number "a": 0 of 2 succeeded'
    long = ranking.ranked([("x", "z" * 5000)], "a", "maximize")
    assert len(ranking.why_none_is_best(long, "a", 1)) == ranking.LONGEST_REASON


@pytest.mark.parametrize("direction", ["max", "", None, "Minimize"])
def test_a_direction_that_is_neither_is_named(direction):
    with pytest.raises(ValueError, match=f"{direction!r} is neither maximize nor minimize"):
        ranking.check_direction(direction)
