"""Retryable exit codes for restartPolicy ExitCode: kubeflow/mxnet-operator's table, and 134.

134 is how MXNet aborts: a crash, or a race of its own at start-up (`docs/facts/mxnet.md`), so it is tried again. Any
other code is permanent unless the job's `runPolicy.exitCodes` says otherwise.
"""

from typing import Final

from mxnet_operator.api.types import ExitCodes

KILLED: Final = 137
"""Exit code of a container that SIGKILL ended, as the kernel does where memory runs out."""
RETRYABLE: Final = frozenset({130, 134, KILLED, 138, 143})
OUT_OF_MEMORY: Final = "OOMKilled"
"""Reason of a container that the kernel killed for its memory; its code is `KILLED`, as of any SIGKILL."""


def is_retryable(code: int, reason: str, exceptions: ExitCodes | None) -> bool:
    """Return whether a container with this exit code may be retried; `exceptions` are the job's own."""
    if exceptions is not None:
        if code in exceptions.permanent:
            return False
        if code in exceptions.retryable:
            return True
    # The same memory won't do next time.
    return code in RETRYABLE and reason != OUT_OF_MEMORY
