"""The name of a step's MXJob: the same for every attempt at the step, and for no other step, item, run or arguments.

Argo's `node.name` is that of the retried node, without the attempt's number, and has the item of a fan-out in it; the
workflow's uid makes another run's jobs others (`docs/facts/argo.md`, retries). The workflow's arguments, as they were
written, change with `argo retry -p` only; the step's own inputs are evaluated again for each attempt, and may differ.
"""

import re
from typing import Final

from mxnet_argo.values import Value, word

DIGEST: Final = 12
"""Characters of the hash: 48 bits."""
PREFIX: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
"""What a job's name may begin with."""


def job_name(prefix: str) -> Value:
    """`<prefix>-<hash>`.

    Raises:
        ValueError: the prefix is no DNS-1035 label, which the names of Services have to be.
    """
    check_prefix(prefix)
    return f"{prefix}-" + hashed()


def hashed() -> Value:
    """Return what tells a step's job from every other."""
    what = 'workflow.uid + "/" + node.name + "/" + toJson(workflow.parameters.json)'
    return word(f"sprig.trunc({DIGEST}, sprig.sha256sum({what}))")


def check_prefix(prefix: str) -> None:
    """Reject what can't begin a job's name; its length is checked with the job."""
    if not re.fullmatch(PREFIX, prefix):
        raise ValueError(
            f"{prefix!r} can't begin the name of an MXJob: small letters, digits and -, beginning with a letter and"
            " ending with a letter or digit. Give one as prefix"
        )


def example_name(prefix: str) -> str:
    """Return a name as long as the real one."""
    return f"{prefix}-{'0' * DIGEST}"


__all__ = ["PREFIX", "hashed", "job_name"]
