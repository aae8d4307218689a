"""A run in the background of a shell tests the same as one on a terminal."""

import subprocess
import sys
from pathlib import Path

import ignored_signals
import pytest

SUPPORT = Path(ignored_signals.__file__).parent
SHOWN = """
import signal
print(*(int(signal.getsignal(each) is signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGHUP)))
"""
RUN = f"""
import signal, subprocess, sys
sys.path.insert(0, {str(SUPPORT)!r})
for each in (signal.SIGINT, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
if sys.argv[1:] == ["configured"]:
    from ignored_signals import pytest_configure
    pytest_configure()
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.raise_signal(each)
subprocess.run([sys.executable, "-c", {SHOWN!r}], check=True)
"""


@pytest.mark.parametrize(("words", "ignored"), [([], "1 1"), (["configured"], "0 0")], ids=["as it is", "configured"])
def test_what_a_run_in_the_background_starts_ignores_no_signal(words: list[str], ignored: str) -> None:
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ignored.split()
