"""A cluster whose certificates are replaced while a client runs: what is on disk is read anew."""

import asyncio
import base64
import contextlib
import dataclasses
import ssl

import pytest
import trustme
import yaml
from aiohttp import web

from mxnet_operator.controller.health import DISTRUST_SECONDS, Health
from mxnet_operator.kube import credentials as credentials_module
from mxnet_operator.kube import transport
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import ApiUnavailable
from mxnet_operator.kube.loader import loaders

POD = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}
PATH = "/api/v1/namespaces/default/pods"


class Cluster:
    """An API server that can be started again under another authority, and what its clients read of it."""

    def __init__(self, folder):
        self.folder = folder
        self.port = 0
        self.asked = []
        self.authority = trustme.CA()
        self._runner = None

    async def start(self, *, ask_for_certificates=False):
        await self.stop()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        if ask_for_certificates:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context).start()
        self.port = self._runner.addresses[0][1]

    async def rotate(self, **options):
        self.authority = trustme.CA()
        await self.start(**options)

    async def stop(self):
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request):
        self.asked.append((request.method, request.headers.get("Authorization")))
        return web.json_response(POD)


class FromFile:
    """A kubeconfig that names the authority's file, and a client certificate's."""

    def load(self, cluster, monkeypatch):
        self.write(cluster)
        return load_credentials(str(cluster.folder / "kubeconfig"))

    def write(self, cluster):
        cluster.authority.cert_pem.write_to_path(cluster.folder / "ca.pem")
        mine = cluster.authority.issue_cert("me@example.org")
        mine.private_key_and_cert_chain_pem.write_to_path(cluster.folder / "me.pem")
        self.config(
            cluster, {"certificate-authority": "ca.pem"}, {"client-certificate": "me.pem", "client-key": "me.pem"}
        )

    def config(self, cluster, authority, user):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{cluster.port}", **authority}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (cluster.folder / "kubeconfig").write_text(yaml.safe_dump(config))


class FromData(FromFile):
    """A kubeconfig that holds them itself."""

    def write(self, cluster):
        mine = cluster.authority.issue_cert("me@example.org").private_key_and_cert_chain_pem.bytes()
        authority = base64.b64encode(cluster.authority.cert_pem.bytes()).decode()
        mine = base64.b64encode(mine).decode()
        self.config(
            cluster,
            {"certificate-authority-data": authority},
            {"client-certificate-data": mine, "client-key-data": mine},
        )


class InPod:
    """A pod's service account."""

    def load(self, cluster, monkeypatch):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(cluster.port))
        monkeypatch.setenv("HOME", str(cluster.folder))
        monkeypatch.delenv("KUBECONFIG", raising=False)
        for name, path in (("SERVICE_TOKEN_FILENAME", "token"), ("SERVICE_CERT_FILENAME", "ca.crt")):
            monkeypatch.setattr(loaders().incluster_config, name, str(cluster.folder / path))
        monkeypatch.setattr(credentials_module, "_SERVICE_ACCOUNT_NAMESPACE", cluster.folder / "namespace")
        (cluster.folder / "token").write_text("secret")
        (cluster.folder / "namespace").write_text("default")
        self.write(cluster)
        return load_credentials()

    def write(self, cluster):
        cluster.authority.cert_pem.write_to_path(cluster.folder / "ca.crt")


@contextlib.asynccontextmanager
async def started(folder, **options):
    cluster = Cluster(folder)
    await cluster.start(**options)
    try:
        yield cluster
    finally:
        await cluster.stop()


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(transport, "_pause", lambda error, failures: 0.0)


@pytest.mark.parametrize("kind", [FromFile, FromData, InPod])
async def test_an_authority_that_was_replaced_is_read_anew_and_the_request_goes_through(tmp_path, monkeypatch, kind):
    async with started(tmp_path) as cluster:
        source = kind()
        async with Client(source.load(cluster, monkeypatch)) as client:
            await client.get(f"{PATH}/a")
            await cluster.rotate()
            source.write(cluster)
            assert await client.create(PATH, POD) == POD
            assert [method for method, _ in cluster.asked] == ["GET", "POST"]


async def test_requests_beside_the_one_that_reads_the_authority_anew_go_through(tmp_path, monkeypatch):
    async with started(tmp_path) as cluster:
        source = FromFile()
        async with Client(source.load(cluster, monkeypatch)) as client:
            await cluster.rotate()
            source.write(cluster)
            assert await asyncio.gather(*(client.create(PATH, POD) for _ in range(5))) == [POD] * 5


@pytest.mark.parametrize("kind", [FromFile, FromData])
async def test_a_client_certificate_that_was_replaced_is_read_anew(tmp_path, monkeypatch, kind):
    async with started(tmp_path, ask_for_certificates=True) as cluster:
        source = kind()
        async with Client(source.load(cluster, monkeypatch)) as client:
            await client.get(f"{PATH}/a")
            await cluster.rotate(ask_for_certificates=True)
            source.write(cluster)
            assert await client.create(PATH, POD) == POD


async def test_the_files_are_read_at_most_every_ten_seconds_and_by_one_request(tmp_path, monkeypatch, at_once):
    now, read = [1000.0], []
    async with started(tmp_path) as cluster:
        source = InPod()
        credentials = source.load(cluster, monkeypatch)

        async def reload():
            read.append(now[0])
            return credentials

        credentials = dataclasses.replace(credentials, reload=reload)
        async with Client(credentials, clock=lambda: now[0]) as client:
            await cluster.rotate()
            for _ in range(30):
                with pytest.raises(ApiUnavailable, match="its certificate is not to be trusted"):
                    await client.create(PATH, POD)
                now[0] += 1.0
    assert read == [1000.0, 1010.0, 1020.0]


class Controller:
    """As much of a controller as its health needs where only the server ails."""

    reflectors = ()

    class queue:  # noqa: N801
        @staticmethod
        def longest_work():
            return 0.0


async def test_liveness_fails_once_reading_anew_has_not_helped_for_long_and_not_for_an_outage(
    tmp_path, monkeypatch, at_once
):
    now = [1000.0]
    async with started(tmp_path) as cluster:
        source = InPod()
        async with Client(source.load(cluster, monkeypatch), clock=lambda: now[0]) as client:
            health = Health(Controller, client)
            await client.get(f"{PATH}/a")
            await cluster.stop()
            for _ in range(2):
                with pytest.raises(ApiUnavailable):
                    await client.create(PATH, POD)
                now[0] += 2 * DISTRUST_SECONDS
                assert await health.liveness() == ""
            await cluster.rotate()
            with pytest.raises(ApiUnavailable):
                await client.create(PATH, POD)
            now[0] += DISTRUST_SECONDS - 1
            assert await health.liveness() == ""
            now[0] += 2
            assert "TLS verification between the API server and this process has failed" in await health.liveness()
            source.write(cluster)
            await client.create(PATH, POD)
            assert await health.liveness() == ""


@pytest.mark.parametrize("when", ["at the next request", "while the certificates are read anew"])
async def test_an_outage_that_begins_with_a_failed_handshake_does_not_fail_liveness(
    tmp_path, monkeypatch, at_once, when
):
    now = [1000.0]
    async with started(tmp_path) as cluster:
        credentials = InPod().load(cluster, monkeypatch)

        async def reload():
            if when == "while the certificates are read anew" and now == [1000.0]:
                await cluster.stop()
            return credentials

        credentials = dataclasses.replace(credentials, reload=reload)
        async with Client(credentials, clock=lambda: now[0]) as client:
            health = Health(Controller, client)
            await cluster.rotate()
            with pytest.raises(ApiUnavailable):
                await client.create(PATH, POD)
            await cluster.stop()
            if when == "at the next request":
                with pytest.raises(ApiUnavailable, match="refused"):
                    await client.create(PATH, POD)
            now[0] += DISTRUST_SECONDS + 50
            assert await health.liveness() == ""
            await cluster.start()
            with pytest.raises(ApiUnavailable, match="not to be trusted"):
                await client.create(PATH, POD)
            now[0] += DISTRUST_SECONDS - 1
            assert await health.liveness() == ""
            now[0] += 2
            assert "has failed for 601 s" in await health.liveness()
