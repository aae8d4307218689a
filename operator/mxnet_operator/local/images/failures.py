"""Messages for failures of uv: its last lines of output, and what to do next."""

import re
from collections.abc import Sequence
from pathlib import Path

_SHOWN_LINES = 12
_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"hash mismatch",
        "A file isn't the one that was locked. If an index or a proxy changes files, use another (UV_DEFAULT_INDEX); "
        "if uv's cache is damaged, `uv cache clean` empties it; if the lock is your own, write it again.",
    ),
    (
        r"no space left|os error 28|disk quota|os error 122",
        "The disk is full: an MXNet or TVM image needs about 400 MB in {home}, and uv's cache as much again. Make "
        "room, or set MXJOB_HOME (and UV_CACHE_DIR) to folders on a larger disk.",
    ),
    (
        r"network connectivity is disabled",
        "uv is set to stay offline (UV_OFFLINE, --offline), and its cache lacks what the image needs.",
    ),
    (
        r"dns error|error sending request|client error|failed to fetch|connection re|timed out|tls|certificate",
        "The package index can't be reached. uv honours HTTPS_PROXY, UV_DEFAULT_INDEX and SSL_CERT_FILE (not pip's "
        "settings). What has been downloaded is kept: the next try goes on from there.",
    ),
    (
        r"libcuda\.so",
        "This machine lacks NVIDIA's driver, which the MXNet for GPUs needs: the MXNet for CPUs is mxjob/mxnet:1.9.1.",
    ),
    (
        r"libgomp\.so",
        "MXNet needs the system's OpenMP library: `apt-get install libgomp1` or `dnf install libgomp`.",
    ),
    (
        r"no wheels? with a matching|no matching distribution|isn't compatible|not compatible|failed to build",
        "There is no ready-made package for this machine and Python. MXNet 1.9.1 has them for Linux on x86-64 and "
        "Python 3.11.",
    ),
    (
        r"permission denied|os error 13|read-only file system",
        "The user running this must be able to write to {home} and to uv's cache (UV_CACHE_DIR).",
    ),
)


def explain(what: str, lines: Sequence[str], home: Path) -> str:
    """Build a message: what failed, the last lines of the failed program, and advice that fits them."""
    said = [line for line in lines if line.strip()][-_SHOWN_LINES:]
    text = "\n".join(said).lower()
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, text)), "")
    quoted = "".join(f"\n    {line}" for line in said)
    return f"{what}:{quoted}" + (f"\n{advice.format(home=home)}" if advice else "")
