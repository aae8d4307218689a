"""An asynchronous test that hangs ends in time, also where its loop is deaf to signals."""

import pytest

HANGS = """
import asyncio, pytest, signal

@pytest.mark.timeout(1)
async def test_that_hangs():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    await asyncio.Event().wait()

@pytest.mark.timeout(30)
async def test_with_a_timeout_of_its_own():
    async with asyncio.timeout(0):
        await asyncio.Event().wait()

async def test_that_ends(tmp_path):
    assert tmp_path.exists()
"""


def test_a_test_that_hangs_is_cancelled_and_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_hanging=HANGS)
    done = pytester.runpytest_inprocess("-p", "guards", "-p", "asyncio", "-o", "asyncio_mode=auto")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        ["*test_that_hangs - Failed: it hung for 1 s: cancelled", "*test_with_a_timeout_of_its_own - TimeoutError*"]
    )
