"""TLS connections that close at once, for clients and servers of short event loops."""

import contextlib
import ssl


class PromptTls(ssl.SSLObject):
    """TLS connection that closes without waiting for the other side to do so: an `SSLContext.sslobject_class`.

    The wait would outlive an event loop that ends just after a request was cancelled, or before a server's idle clients
    do. It would leave the socket open.
    """

    def unwrap(self) -> None:
        """Say that nothing more comes."""
        with contextlib.suppress(ssl.SSLWantReadError):
            super().unwrap()
