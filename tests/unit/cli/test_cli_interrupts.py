"""The signals that end a command in order, and those that it was told to ignore."""

import asyncio
import os
import signal

import pytest

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
