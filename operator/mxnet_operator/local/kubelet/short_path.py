"""Short path to a kubelet's folder, for TMPDIR: the path of a Unix socket has at most 107 bytes.

`multiprocessing` puts sockets 32 bytes below TMPDIR, and the folder of a pod alone has some 80. What is written there
still lies in the folder, on the disk and in the quota of the cluster's home.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from mxnet_operator.local.kubelet.processes import cluster_id

_TEMPORARY: Final = Path("/tmp")  # noqa: S108 - a link of our own there, which its owner alone can replace


class ShortPath:
    """Link to a kubelet's folder in /tmp."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.link: Final = _TEMPORARY / f"mxjob-{cluster_id(folder)[:10]}"

    def ensure(self) -> Path:
        """Return the link, made again where somebody has cleaned up /tmp; the folder itself where it can't be made."""
        with contextlib.suppress(OSError):
            if self.link.is_symlink() and self.link.lstat().st_uid == os.geteuid():
                if self.link.readlink() == self._folder:
                    os.utime(self.link, follow_symlinks=False)  # systemd removes what nobody used for ten days
                    return self.link
                self.link.unlink()
            self.link.symlink_to(self._folder)
            return self.link
        return self._folder

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            if self.link.readlink() == self._folder:
                self.link.unlink()
