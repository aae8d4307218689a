"""What tests start takes Ctrl-C and a closed terminal as usual, though the run itself ignores them.

A shell has what it puts behind ignore SIGINT, and `nohup` SIGHUP; programs inherit that, and `mxjob` keeps to it.
"""

import signal


def pytest_configure() -> None:
    """Ignore by a handler what was ignored: only handlers are reset in the programs that are started."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
