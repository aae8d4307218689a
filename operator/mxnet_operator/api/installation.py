"""Installation command of this distribution with an extra, for messages to users."""

from typing import Final

DISTRIBUTION: Final = "mxnet-operator"


def install_command(extra: str) -> str:
    """Return the command that adds an extra; the distribution is on no package index, so pip gets a checkout."""
    return f"pip install './{DISTRIBUTION}[{extra}]'  (beside a checkout of that name; it is on no package index)"
