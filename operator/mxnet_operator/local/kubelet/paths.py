"""Rewriting of container paths in a command, its arguments and variables to the folders of this machine.

There are no mounts without root, so `/data/train.csv` of a volume mounted at /data becomes
`<pod folder>/volumes/data/train.csv` wherever the spec writes it out. What a script itself has built in is not seen.
"""

import re
from collections.abc import Mapping
from pathlib import Path


class Paths:
    """Map of a container's paths to folders of this machine."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """Create a map from absolute paths in the container (files or folders) to real ones."""
        self._real = {inside.rstrip("/"): str(real) for inside, real in folders.items() if inside.strip("/")}
        # The longest first, for volumes mounted inside others. A path starts where no other path goes on, and ends
        # where its last name does.
        known = sorted(self._real, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, known))})(?=/|[^\w.-]|$)")

    def rewrite(self, text: str) -> str:
        """Replace the container's paths in `text` by the real ones."""
        if not self._real:
            return text
        return self._pattern.sub(lambda match: self._real[match[1]], text)

    def real(self, inside: str) -> Path | None:
        """Return the real path of an absolute container path; None where it has none."""
        return Path(self.rewrite(inside)) if self._real and self._pattern.match(inside) else None
