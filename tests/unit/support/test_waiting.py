"""A red test is red at once: a wait ends when what is waited for can't come any more."""

import asyncio
from pathlib import Path

import pytest
import waiting
from controller_fixtures import JOBS, gang, world
from waiting import eventually, while_runs


def test_a_look_that_fails_for_good_is_the_last_one() -> None:
    looks = []

    def look() -> None:
        looks.append(None)
        pytest.fail("its process has ended")

    with pytest.raises(pytest.fail.Exception, match="its process has ended"):
        eventually(look)
    assert len(looks) == 1


async def test_a_wait_for_one_who_has_ended_says_how() -> None:
    async def dies() -> None:
        raise ValueError("no such thing")

    with pytest.raises(pytest.fail.Exception, match=r"the controller has ended: ValueError\('no such thing'\)"):
        await while_runs(asyncio.create_task(dies()), "the controller", asyncio.Event().wait())


async def test_a_wait_that_is_over_has_its_answer_whoever_has_ended() -> None:
    async def answer() -> int:
        return 42

    for party in (None, asyncio.create_task(asyncio.Event().wait())):
        assert await while_runs(party, "the controller", answer()) == 42
        if party is not None:
            party.cancel()


async def test_a_job_that_has_ended_is_not_waited_for_to_run(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.submit(gang("digits"))
        await w.move(await w.pods(5), "Failed", exit_code=1)
        failed = await w.state("digits", "Failed")
        assert failed["metadata"]["name"] in await w.names(JOBS)
        with pytest.raises(pytest.fail.Exception, match="digits will never be Succeeded:"):
            await w.state("digits", "Succeeded")


TESTS = """
import asyncio, pytest, waiting

waiting.SECONDS = 0.2

@pytest.mark.parametrize("number", range(5))
def test_waits_in_vain(number):
    with open("patience", "a") as file:
        print(waiting.patience(), file=file)
    if number % 2:
        asyncio.run(waiting.until(lambda: False, within=0.1))
    waiting.eventually(lambda: False)

def test_fails_at_once():
    assert False
"""


@pytest.mark.exhaustive
def test_once_three_tests_have_waited_in_vain_the_others_wait_a_quarter_as_long(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(waiting.__file__).parent))
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.runpytest_subprocess("-p", "waiting", "-q").assert_outcomes(failed=6)
    assert (pytester.path / "patience").read_text().split() == ["0.2", "0.2", "0.2", "0.05", "0.05"]
