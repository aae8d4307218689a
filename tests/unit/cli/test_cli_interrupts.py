"""The signals that end a command in order, and those that it was told to ignore."""

import asyncio
import os
import signal

import pytest

from mxnet_operator.cli.errors import Exit, run_app
from mxnet_operator.cli.interrupts import CODES, first_signal, unless_interrupted


@pytest.fixture
def restored():
    before = {number: signal.getsignal(number) for number in CODES}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("ignored", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("arriving", CODES, ids=lambda number: number.name)
async def test_a_signal_that_was_ignored_at_the_start_stays_ignored(ignored, arriving):
    signal.signal(ignored, signal.SIG_IGN)
    with first_signal() as interrupted:
        assert signal.getsignal(ignored) is signal.SIG_IGN
        os.kill(os.getpid(), ignored)
        if arriving is not ignored:
            os.kill(os.getpid(), arriving)
            assert await interrupted is CODES[arriving]
        assert interrupted.done() is (arriving is not ignored)
    assert signal.getsignal(ignored) is signal.SIG_IGN


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
async def test_the_first_signal_cancels_the_work_and_gives_its_exit_code(number):
    async def work():
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    assert await unless_interrupted(work()) is CODES[number]


def test_ctrl_c_that_nothing_else_handles_has_its_exit_code_and_no_traceback(capfd):
    def app(**_):
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        run_app(app, "mxjob")
    assert (ended.value.code, capfd.readouterr().err) == (Exit.INTERRUPTED, "")


@pytest.mark.usefixtures("restored")
async def test_signals_within_half_a_second_are_one_and_a_later_one_exits_at_once(monkeypatch):
    ended, now = [], [100.0]
    monkeypatch.setattr(os, "_exit", ended.append)
    with first_signal(lambda: now[0]) as interrupted:
        for seconds, exited in ((0.0, []), (0.4, []), (0.6, [Exit.INTERRUPTED])):
            now[0] = 100.0 + seconds
            os.kill(os.getpid(), signal.SIGINT)
            await heard()
            assert ended == exited, seconds
        assert interrupted.result() is Exit.INTERRUPTED


@pytest.mark.usefixtures("restored")
async def test_the_innermost_block_alone_gets_a_signal_and_the_outer_one_those_after_it():
    with first_signal() as outer:
        with first_signal() as inner:
            os.kill(os.getpid(), signal.SIGINT)
            assert await inner is Exit.INTERRUPTED
        assert not outer.done()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await outer is Exit.TERMINATED


async def heard():
    """Return once the loop has had the signals that were sent before: SIGWINCH is handled after them."""
    seen = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, seen.set)
    os.kill(os.getpid(), signal.SIGWINCH)
    await seen.wait()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGWINCH)
