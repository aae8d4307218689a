"""An API server's front for Argo's pods that loses one reply: the job is made, and who asked hears of a time-out.

The answer is the one that kube-apiserver gives when a create takes longer than it was given: it may have taken effect.
"""

import contextlib
import ssl

from aiohttp import web

_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive", "accept-encoding"})
TIMED_OUT = {
    "apiVersion": "v1",
    "kind": "Status",
    "status": "Failure",
    "reason": "Timeout",
    "code": 504,
    "message": "Timeout: request did not complete within requested timeout - context deadline exceeded",
}


class LosesReply:
    """Passes everything on to `api`; the reply to the first create of an MXJob is lost."""

    def __init__(self, server, api):
        self._server = server
        self._api = api
        self.url = ""
        self.lost = []
        """The requests that were carried out and answered with a time-out."""

    @contextlib.asynccontextmanager
    async def served(self):
        """The front with an address of its own."""
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._relay)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server.ca.issue_cert("127.0.0.1").configure_cert(context)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.url = f"https://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _relay(self, request):
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        body = await request.read()
        url = self._api.base + request.path_qs
        async with self._api.session.request(request.method, url, data=body or None, headers=headers) as answer:
            content = await answer.read()
        if request.method == "POST" and request.path.endswith("/mxjobs") and not self.lost:
            assert answer.status == 201, content
            self.lost.append(request.path)
            return web.json_response(TIMED_OUT, status=504)
        kind = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
        return web.Response(status=answer.status, body=content, headers=kind)
