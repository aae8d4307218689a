"""Which lines of a log are shown: all while it is slow, its newest and its last ones however fast it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnet_provider.job.log_budget import LogBudget, notice


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def budget(clock, at_once=10, per_second=2.0):
    return LogBudget(at_once=at_once, per_second=per_second, notice=lambda count: f"-{count}-", clock=clock)


def test_a_log_that_is_no_faster_than_the_allowance_is_shown_line_by_line():
    clock, shown = Clock(), []
    chosen = budget(clock)
    for number in range(1000):
        clock.now += 0.5
        shown.append(list(chosen.take(str(number))))
    assert shown == [[str(number)] for number in range(1000)]
    assert list(chosen.finish()) == []


def test_long_lines_count_for_more_and_the_last_one_is_always_shown():
    chosen = budget(Clock())
    assert list(chosen.take("x" * 6000)) == ["x" * 6000]
    assert list(chosen.take("y" * 6000)) == []
    for _ in range(30):
        assert list(chosen.take("z" * 65536)) == []
    last = list(chosen.finish())
    assert last[0] == "-16-"
    assert last[1:] == ["z" * 65536] * 15


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 200)), max_size=30))
def test_every_line_is_shown_once_in_order_or_counted_and_the_last_thousand_are_shown(steps):
    clock, shown, number = Clock(), [], 0
    chosen = budget(clock)
    for pause, lines in steps:
        clock.now += pause
        shown += chosen.release()
        for _ in range(lines):
            shown += chosen.take(str(number))
            number += 1
    shown += chosen.finish()
    numbers = [int(line) for line in shown if not line.startswith("-")]
    left_out = sum(int(line.strip("-")) for line in shown if line.startswith("-"))
    assert numbers == sorted(set(numbers))
    assert len(numbers) + left_out == number
    assert not number or numbers[-1] == number - 1


@pytest.mark.parametrize("per_second", [1, 20, 200])
def test_what_is_shown_of_a_firehose_is_bounded(per_second):
    clock, count = Clock(), 0
    chosen = budget(clock, per_second=per_second)
    for _ in range(100):
        clock.now += 1
        for number in range(1000):
            count += len(list(chosen.take(str(number))))
    assert count <= 10 + 100 * (per_second + 1)


def test_the_command_that_shows_all_lines_comes_once_and_the_number_of_lines_each_time() -> None:
    word = notice("worker-0", "digits-worker-0", "ml")
    texts = [word(count) for count in (10, 20, 30)]
    assert ["kubectl logs -n ml digits-worker-0" in text for text in texts] == [True, False, False]
    assert [text.split("... ")[1].split()[0] for text in texts] == ["10", "20", "30"]
