"""How tests are dealt out to pytest's workers: a file at a time, since a file's tests share what they start."""

from shared_folders import SHARED
from xdist.scheduler import LoadScopeScheduling


class ByFile(LoadScopeScheduling):
    """xdist's own `loadfile`, but all files of a shared folder go to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SHARED if nodeid.startswith(f"{folder}/")), nodeid.partition("::")[0])
