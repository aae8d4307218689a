"""Answers that no Kubernetes API server gives: those of proxies, gateways, login pages and broken connections."""

import asyncio
import gzip

from aiohttp import web
from scripted_api import Turn

HTML = b"<!doctype html><html><body>Sign in to continue</body></html>"
_JSON = {"Content-Type": "application/json"}


def _transport(request: web.Request) -> asyncio.Transport:
    assert request.transport is not None
    return request.transport


def _answer(status: int, body: bytes = b"", **headers: str) -> Turn:
    async def act(request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, body=body, headers=_JSON | {k.replace("_", "-"): v for k, v in headers.items()}
        )

    return act


def _cut_short(body: bytes, then: str) -> Turn:
    """A body that ends before its announced length: the connection is aborted, or closed in order."""

    async def act(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=_JSON | {"Content-Length": str(len(body) + 100)})
        await response.prepare(request)
        await response.write(body)
        getattr(_transport(request), then)()
        return response

    return act


async def _hang_up(request: web.Request) -> web.StreamResponse:
    _transport(request).abort()
    return web.Response()


async def _not_http(request: web.Request) -> web.StreamResponse:
    _transport(request).write(b"\x00\x01\x02 this is no HTTP\r\n\r\n")
    _transport(request).close()
    return web.Response()


ODD = {
    "503 code is a word": _answer(503, b'{"code":"ServiceUnavailable"}'),
    "503 null": _answer(503, b"null"),
    "500 HTML": _answer(500, HTML),
    "502 nothing": _answer(502),
    "503 says 200": _answer(503, b'{"code":200,"status":"Success"}'),
    "503 Retry-After past date": _answer(503, b"{}", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "200 HTML": _answer(200, HTML),
    "200 null": _answer(200, b"null"),
    "200 list": _answer(200, b"[]"),
    "200 empty object": _answer(200, b"{}"),
    "200 nothing": _answer(200),
    "204": _answer(204),
    "200 metadata null": _answer(200, b'{"metadata":null,"items":[],"resources":null,"spec":null}'),
    "200 items null": _answer(200, b'{"metadata":{"resourceVersion":"5"},"items":null,"resources":[{"name":null}]}'),
    "200 a list without a version": _answer(200, b'{"kind":"PodList","metadata":{},"items":[]}'),
    "200 a Status": _answer(200, b'{"kind":"Status","metadata":{},"status":"Success"}'),
    "200 half a document": _answer(200, b'{"metadata":{"name":"a","resourc'),
    "200 no UTF-8": _answer(200, b'{"metadata":{"name":"\xff\xfe"},"items":[]}'),
    "200 no gzip": _answer(200, b"this is not compressed", Content_Encoding="gzip"),
    "200 half of a gzip": _answer(200, gzip.compress(HTML * 50)[:40], Content_Encoding="gzip"),
    "200 aborted": _cut_short(b'{"metadata":', "abort"),
    "200 half-closed": _cut_short(b'{"metadata":', "write_eof"),
    "302": _answer(302, HTML, Location="/login"),
    "307": _answer(307, b"", Location="http://127.0.0.1:1/"),
    "hangs up": _hang_up,
    "no HTTP": _not_http,
}
