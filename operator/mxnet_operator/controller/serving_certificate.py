"""Serving certificate of an HTTPS endpoint: files of a mounted Secret, read again when they change."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
"""File names in a Secret of type kubernetes.io/tls."""
CHECK_SECONDS: Final = 10.0
"""Seconds between checks of the files; a kubelet needs a minute to update a mounted Secret."""

log = logging.getLogger(__name__)


class ServingCertificate:
    """TLS context of a server, with the certificate and key of a folder."""

    def __init__(self, folder: Path) -> None:
        """Read certificate and key.

        Raises:
            OSError: a file can't be read. ssl.SSLError: they are no certificate with its key.
        """
        self._files = (folder / CERTIFICATE, folder / KEY)
        self._read = self._content()
        self.context = self._loaded()

    def refresh(self) -> bool:
        """Load changed files; new connections use them. Files that are invalid leave the old ones in place."""
        try:
            content = self._content()
            if content == self._read:
                return False
            self._loaded()  # on a context of its own: a mismatched pair would leave the one in use half changed
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            log.warning("the certificate %s can't be used, the one before stays: %s", self._files[0], error)
            return False
        self._read = content
        log.info("the certificate %s has changed and was read again", self._files[0])
        return True

    async def keep_fresh(self) -> None:
        """Load changes until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.refresh()

    def _content(self) -> tuple[bytes, ...]:
        return tuple(file.read_bytes() for file in self._files)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._files)
        return context
