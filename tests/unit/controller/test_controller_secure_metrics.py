"""Metrics over TLS: who gets them, and a certificate that is renewed while the controller runs."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
import pytest
import trustme
from apiserver_fixtures import running_server
from controller_fixtures import running_program

from mxnet_operator.controller.endpoints import Address, guarded, metrics_pages, served
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.controller.serving_certificate import ServingCertificate
from mxnet_operator.kube.reviews import AccessDecision


def write(folder, authority):
    """A certificate for 127.0.0.1, as a kubelet writes a Secret's."""
    issued = authority.issue_cert("127.0.0.1")
    (folder / "tls.crt").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    (folder / "tls.key").write_bytes(issued.private_key_pem.bytes())


@pytest.fixture
def authority():
    return trustme.CA()


@pytest.fixture
def folder(tmp_path, authority):
    write(tmp_path, authority)
    return tmp_path


class Reviewer:
    """Lets in who says `Bearer good`."""

    async def review(self, authorization, method, path):
        if not authorization:
            return AccessDecision(HTTPStatus.UNAUTHORIZED, "no token")
        return AccessDecision(HTTPStatus.OK if authorization == "Bearer good" else HTTPStatus.FORBIDDEN, "no")


@asynccontextmanager
async def serving(certificate):
    pages = guarded(metrics_pages(Metrics()), Reviewer())
    async with served("metrics", Address("127.0.0.1", 0), pages, certificate.context) as port:
        yield f"https://127.0.0.1:{port}/metrics"


async def ask(url, authority, method="GET", **headers):
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.request(method, url, headers=headers) as a,
    ):
        return a.status, a.headers, await a.text()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_only_who_is_let_in_gets_the_metrics(folder, authority, method):
    async with serving(ServingCertificate(folder)) as url:
        code, headers, text = await ask(url, authority, method)
        assert (code, headers["WWW-Authenticate"], "controller_runtime" in text) == (401, "Bearer", False)
        code, _, text = await ask(url, authority, method, Authorization="Bearer bad")
        assert (code, "controller_runtime" in text) == (403, False)
        code, _, text = await ask(url, authority, method, Authorization="Bearer good")
        assert (code, "controller_runtime" in text) == (200, method == "GET")


async def test_plain_http_is_not_answered(folder):
    async with serving(ServingCertificate(folder)) as url, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("https", "http"), headers={"Authorization": "Bearer good"})


async def test_a_renewed_certificate_is_taken_up_without_a_restart(folder, authority):
    certificate = ServingCertificate(folder)
    async with serving(certificate) as url:
        assert (await ask(url, authority, Authorization="Bearer good"))[0] == 200
        other = trustme.CA()
        write(folder, other)
        assert certificate.refresh()
        assert (await ask(url, other, Authorization="Bearer good"))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask(url, authority, Authorization="Bearer good")
        assert not certificate.refresh()


def half_written(folder):
    (folder / "tls.key").write_bytes(trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes())


@pytest.mark.parametrize(
    "broken",
    [
        half_written,
        lambda folder: (folder / "tls.crt").write_text(""),
        lambda folder: (folder / "tls.crt").write_text("not a certificate"),
        lambda folder: (folder / "tls.key").unlink(),
    ],
    ids=["the key of another", "empty", "no certificate", "gone"],
)
async def test_a_certificate_that_cannot_be_used_leaves_the_one_before(folder, authority, broken):
    certificate = ServingCertificate(folder)
    async with serving(certificate) as url:
        broken(folder)
        assert not certificate.refresh()
        assert (await ask(url, authority, Authorization="Bearer good"))[0] == 200
        write(folder, authority)
        assert certificate.refresh()
        assert (await ask(url, authority, Authorization="Bearer good"))[0] == 200


async def test_files_are_looked_at_again_and_again(folder, monkeypatch):
    monkeypatch.setattr("mxnet_operator.controller.serving_certificate.CHECK_SECONDS", 0.0)
    certificate = ServingCertificate(folder)
    seen = asyncio.Event()
    monkeypatch.setattr(certificate, "refresh", seen.set)
    task = asyncio.create_task(certificate.keep_fresh())
    await seen.wait()
    task.cancel()


async def test_a_controller_without_its_certificate_says_what_is_missing(tmp_path):
    async with (
        running_server(tmp_path) as running,
        running_program(running.kubeconfig, "--metrics-cert-path", str(tmp_path / "absent")) as program,
    ):
        _, said = await program.process.communicate()
        assert program.process.returncode == 1
        assert b"metrics can't be served over TLS with the certificate in" in said
        assert b"tls.crt" in said
