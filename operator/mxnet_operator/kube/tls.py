"""TLS connections that close at once, for clients and servers of short event loops."""

import contextlib
import ssl


class PromptTls(ssl.SSLObject):
    """TLS connection that closes without waiting for the other side to do so: an `SSLContext.sslobject_class`.

    The wait would outlive the event loop where a request is cancelled at its end, or where a server stops before its
    idle clients, and leave the socket open.
    """

    def unwrap(self) -> None:
        """Say that nothing more comes."""
        with contextlib.suppress(ssl.SSLWantReadError):
            super().unwrap()
