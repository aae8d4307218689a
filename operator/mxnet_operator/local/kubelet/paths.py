"""Rewrites the container paths in a command, its arguments and variables to the folders that stand for them.

There are no mounts without root, so `/data/train.csv` of a volume mounted at /data becomes
`<pod folder>/volumes/data/train.csv` wherever the spec writes it out. What a script itself has built in is not seen.
"""

import re
from collections.abc import Mapping
from pathlib import Path


class Paths:
    """Where the container's paths are on this machine."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """`folders` maps absolute paths in the container (files or folders) to real ones."""
        self._real = {inside.rstrip("/"): str(real) for inside, real in folders.items() if inside.strip("/")}
        # The longest first, for volumes mounted inside others. A path starts where no other path goes on, and ends
        # where its last name does.
        known = sorted(self._real, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, known))})(?=/|[^\w.-]|$)")

    def rewrite(self, text: str) -> str:
        """`text` with the real paths in it."""
        if not self._real:
            return text
        return self._pattern.sub(lambda match: self._real[match[1]], text)

    def real(self, inside: str) -> Path | None:
        """The real path of an absolute one in the container, None where nothing stands for it."""
        return Path(self.rewrite(inside)) if self._real and self._pattern.match(inside) else None
