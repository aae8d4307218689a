"""A newcomer without kubectl reads why tests were skipped in a line for each reason, not in hundreds."""

import pytest

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(40))
def test_by_kubectl(number):
    pytest.skip("no kubectl on PATH")

@pytest.fixture
def go():
    pytest.skip("etcd: no Go to build with")

def test_real(go): pass

@pytest.mark.skipif(True, reason="one seed alone")
def test_fresh(): pass

def test_passes(): pass
"""


def test_skips_are_summed_by_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    done = pytester.runpytest_inprocess("-p", "skips", "-q", "-rfE")
    done.assert_outcomes(passed=1, skipped=42)
    assert [line for line in done.outlines if "kip" in line][:-1] == [
        "40 skipped: no kubectl on PATH",
        "1 skipped: etcd: no Go to build with",
        "1 skipped: one seed alone",
    ]
