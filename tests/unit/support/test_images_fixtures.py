"""Where an image can't be had, the tests that need it are skipped with the reason; in CI they fail with it."""

from pathlib import Path

import images_fixtures
import pytest

TESTS = """
def test_one(mxnet_python): pass
def test_another(mxnet_python): pass
"""


@pytest.mark.parametrize(("variable", "outcome"), [("", "skipped"), ("true", "errors")])
def test_an_image_that_can_not_be_had_is_said_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str, outcome: str
) -> None:
    for name, value in {
        "PYTHONPATH": str(Path(images_fixtures.__file__).parent),
        "MXJOB_HOME": str(pytester.path / "home"),
        "UV_CACHE_DIR": str(pytester.path / "cache"),
        "UV_OFFLINE": "1",
        "CI": variable,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    done = pytester.runpytest_subprocess("-p", "images_fixtures", "-p", "skips", "-q")
    done.assert_outcomes(**{outcome: 2})
    done.stdout.fnmatch_lines(["*the image mxjob/mxnet:1.9.1 can't be had: *"])
