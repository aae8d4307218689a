"""A stop that is requested while something is being prepared."""

import asyncio

import pytest

from mxnet_operator.local.waiting import Stop, Stopped


@pytest.mark.parametrize("steps", range(12))
async def test_what_is_prepared_is_never_handed_on_after_the_stop(steps: int) -> None:
    stop, loop = Stop(), asyncio.get_running_loop()

    def request_after(steps: int) -> None:
        if steps:
            loop.call_soon(request_after, steps - 1)
        else:
            stop.request()

    async def work() -> str:
        request_after(steps)
        return "prepared"

    try:
        assert await stop.unless(work()) == "prepared"
    except Stopped:
        assert stop.requested
    else:
        assert not stop.requested


async def test_without_a_stop_what_the_work_gives_or_raises_is_handed_on() -> None:
    async def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        await Stop().unless(fail())
    assert await Stop().unless(asyncio.sleep(0, "done")) == "done"
