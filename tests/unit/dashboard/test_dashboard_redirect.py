"""The dashboard's answer to an address with its token leads to a page of its own, whatever the path."""

import asyncio
from urllib.parse import urljoin, urlsplit

import pytest

from mxnet_operator.dashboard.server import Dashboard


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/", "/"),
        ("/jobs/default/a/1", "/jobs/default/a/1"),
        ("//evil.com/", "/evil.com/"),
        ("///evil.com", "/evil.com"),
        ("/%2F/evil.com", "/evil.com"),
        ("/\\evil.com", "/%5Cevil.com"),
        ("/%5Cevil.com", "/%5Cevil.com"),
        ("/%09/evil.com", "/%09/evil.com"),
    ],
)
async def test_the_token_never_leads_to_another_host(path, location):
    dashboard = Dashboard(None, "GOOD")
    port = await dashboard.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path}?token=GOOD HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
    finally:
        await dashboard.stop()

    assert answer.startswith("HTTP/1.1 303 "), answer
    found = next(line.partition(": ")[2] for line in answer.splitlines() if line.lower().startswith("location: "))
    assert found == location
    assert urlsplit(urljoin(f"http://127.0.0.1:{port}/", found)).netloc == f"127.0.0.1:{port}"
