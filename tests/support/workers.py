"""How tests are dealt out to pytest's workers: a file at a time, since a file's tests share what they start."""

from xdist.scheduler import LoadScopeScheduling

SHARED = ("tests/airflow/", "tests/argo/")
"""Folders whose files share a server that is costly to start: all of one go to one worker."""


class ByFile(LoadScopeScheduling):
    """xdist's own `loadfile`, but for the shared folders."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SHARED if nodeid.startswith(folder)), nodeid.partition("::")[0])
