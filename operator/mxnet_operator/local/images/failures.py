"""Errors for failures of a build: the last lines of output, what to do next, and whether trying again can help."""

import re
import signal
from pathlib import Path

from mxnet_operator.local.images.errors import BuildError, ImageError
from mxnet_operator.local.images.uv_process import Ended

_SHOWN_LINES = 12
_ADVICE: tuple[tuple[str, bool, str], ...] = (
    (
        r"hash mismatch",
        False,
        "A file isn't the one that was locked. If an index or a proxy changes files, use another (UV_DEFAULT_INDEX); "
        "if uv's cache is damaged, `uv cache clean` empties it; if the lock is your own, write it again.",
    ),
    (
        r"no space left|os error 28|disk quota|os error 122",
        True,
        "The disk is full: an MXNet or TVM image needs about 400 MB in {home}, and uv's cache as much again. Make "
        "room, or set MXJOB_HOME (and UV_CACHE_DIR) to folders on a larger disk.",
    ),
    (
        r"network connectivity is disabled",
        True,
        "uv is set to stay offline (UV_OFFLINE, --offline), and its cache lacks what the image needs.",
    ),
    (
        r"dns error|error sending request|client error|failed to fetch|connection re|timed out|tls|certificate",
        True,
        "The package index can't be reached. uv honours HTTPS_PROXY, UV_DEFAULT_INDEX and SSL_CERT_FILE (not pip's "
        "settings). What has been downloaded is kept: the next try goes on from there.",
    ),
    (
        r"libcuda\.so",
        False,
        "This machine lacks NVIDIA's driver, which the MXNet for GPUs needs: the MXNet for CPUs is mxjob/mxnet:1.9.1.",
    ),
    (
        r"libgomp\.so",
        False,
        "MXNet needs the system's OpenMP library: `apt-get install libgomp1` or `dnf install libgomp`.",
    ),
    (
        r"no wheels? with a matching|no matching distribution|isn't compatible|not compatible|failed to build",
        False,
        "There is no ready-made package for this machine and Python. MXNet 1.9.1 has them for Linux on x86-64 and "
        "Python 3.11.",
    ),
    (
        r"permission denied|os error 13|read-only file system",
        True,
        "The user running this must be able to write to {home} and to uv's cache (UV_CACHE_DIR).",
    ),
)
"""What is found in the output, whether a later try can succeed, and what to do."""


def build_error(what: str, ended: Ended, home: Path) -> ImageError:
    """Build the error for a program that failed: its last lines, and advice that fits them."""
    shown = [line for line in ended.lines if line.strip()][-_SHOWN_LINES:]
    text = "\n".join(shown).lower()
    can_pass, advice = next(
        ((passes, words) for pattern, passes, words in _ADVICE if re.search(pattern, text)), (False, "")
    )
    message = "\n".join(
        [f"{what}:", *(f"    {line}" for line in shown), *([advice.format(home=home)] if advice else [])]
    )
    return ImageError(message) if can_pass or ended.code == -signal.SIGKILL else BuildError(message)
